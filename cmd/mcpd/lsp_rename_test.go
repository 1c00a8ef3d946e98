package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// renamable matches the head of a tool, or of an input of a tool, in a formatted file.
var renamable = regexp.MustCompile(`(?m)^(?:tool|  input) "([^"]+)"`)

// TestLSP_renamesShippedTools renames each tool and each input of tools.d, one after the other. The
// tests of the renamed files pass.
func TestLSP_renamesShippedTools(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("checks all files twice for each name")
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "tools.d"), os.DirFS("../../tools.d")); err != nil {
		t.Fatal(err)
	}
	ed := startLSP(t, dir)
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{"general":{"positionEncodings":["utf-8"]}}}`)
	ed.send(`{"method":"initialized","params":{}}`)
	id, renamed := 2, 0
	err := fs.WalkDir(os.DirFS(dir), "tools.d", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".hcl" {
			return err
		}
		for number := 0; ; number++ {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			heads := renamable.FindAllSubmatchIndex(text, -1)
			if number == len(heads) {
				return nil
			}
			start, old := heads[number][2], string(text[heads[number][2]:heads[number][3]])
			line := strings.Count(string(text[:start]), "\n")
			column := start - strings.LastIndexByte(string(text[:start]), '\n') - 1
			ed.send(fmt.Sprintf(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/%s","languageId":"hcl","version":1,"text":%s}}}`, name, encode(t, string(text))))
			got := ed.request(id, "textDocument/rename", fmt.Sprintf(`{"textDocument":{"uri":"ROOT/%s"},"position":{"line":%d,"character":%d},"newName":"%s_renamed"}`, name, line, column, old))
			ed.send(fmt.Sprintf(`{"method":"textDocument/didClose","params":{"textDocument":{"uri":"ROOT/%s"}}}`, name))
			id++
			if got["error"] != nil {
				t.Errorf("%s is not renamed: %v", old, got["error"])
				continue
			}
			renamed++
			applyEdits(t, dir, got["result"])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if renamed < 50 {
		t.Errorf("%d names renamed, want more", renamed)
	}
	ed.request(id, "shutdown", "null")
	ed.close()
	e, err := scenarioEnv(dir, []string{"PATH=" + os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	e.stdout, e.stderr = &out, &out
	if code := run(e, []string{"test"}); code != exitOK {
		t.Errorf("the tests of the renamed files fail:\n%s", out.String())
	}
}

// applyEdits writes the changes of a WorkspaceEdit, whose edits are each on one line, with offsets in bytes.
func applyEdits(t *testing.T, dir string, edit any) {
	t.Helper()
	type position struct{ Line, Character int }
	var decoded struct {
		Changes map[string][]struct {
			Range   struct{ Start, End position }
			NewText string
		}
	}
	if err := json.Unmarshal([]byte(encode(t, edit)), &decoded); err != nil {
		t.Fatal(err)
	}
	for uri, edits := range decoded.Changes {
		name, err := url.PathUnescape(strings.TrimPrefix(uri, "ROOT/"))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for _, e := range slices.Backward(edits) {
			line := &lines[e.Range.Start.Line]
			*line = (*line)[:e.Range.Start.Character] + e.NewText + (*line)[e.Range.End.Character:]
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
