//go:build unix

package lsp

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

// TestReadFile_onlyRegular reads neither links nor pipes nor devices.
func TestReadFile_onlyRegular(t *testing.T) {
	outside, tools := filepath.Join(t.TempDir(), "outside.hcl"), t.TempDir()
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, device := filepath.Join(tools, "link.hcl"), filepath.Join(tools, "device.hcl")
	for name, target := range map[string]string{link: outside, device: "/dev/zero"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{link, device} {
		if text := readFile(path); text != "" {
			t.Errorf("read %d bytes of %s", len(text), filepath.Base(path))
		}
	}
	walkTools(tools, func(path string, info fs.FileInfo) {
		if info.Mode().IsRegular() {
			t.Errorf("%s is indexed", path)
		}
	})
	v := &view{session: &session{unit: utf16}, texts: map[string]string{}}
	where := diag.Range{Start: diag.Pos{Line: 3, Column: 5}}
	if path := v.pathFor(diag.Range{File: link}); path != link {
		t.Errorf("a diagnostic of a link is shown in %q", path)
	}
	if diff := cmp.Diff(span{position{2, 0}, position{2, 0}}, v.rangeOf(link, where)); diff != "" {
		t.Error(diff)
	}

	if v.rangeOf(outside, diag.Range{}); len(v.texts) != 1 {
		t.Error("a file is read for a diagnostic without a line")
	}
}

// TestReadFile_noPipe has a writer for the pipe, so that a reader would get a text and not block.
func TestReadFile_noPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.hcl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("x"), 0o600) }()
	if readFile(pipe) != "" {
		t.Fatal("the pipe is read")
	}
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := io.ReadAll(reader); err != nil {
		t.Error(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
