package lockfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// hiding are entries with a zero-width space in each member of a definition.
var hiding = map[string]string{
	"name":                 `{"name":"a\u200bb"}`,
	"title":                `{"name":"a","title":"x\u200by"}`,
	"description":          `{"name":"a","description":"x\u200by"}`,
	"annotation":           `{"name":"a","annotations":{"title":"x\u200by"}}`,
	"name of annotation":   `{"name":"a","annotations":{"x\u200by":true}}`,
	"property":             `{"name":"a","inputSchema":{"properties":{"x\u200by":{}}}}`,
	"property description": `{"name":"a","inputSchema":{"properties":{"x":{"description":"x\u200by"}}}}`,
	"enum":                 `{"name":"a","inputSchema":{"properties":{"x":{"enum":["x\u200by"]}}}}`,
	"default":              `{"name":"a","inputSchema":{"properties":{"x":{"default":{"y":["x\u200by"]}}}}}`,
	"output":               `{"name":"a","outputSchema":{"$comment":"x\u200by"}}`,
}

func TestCheck_hiddenDefinitions(t *testing.T) {
	for part, entry := range hiding {
		t.Run(part, func(t *testing.T) {
			listed := []lockfile.Tool{tool(t, entry), tool(t, `{"name":"plain","description":"می\u200cخواهم ✔\ufe0f"}`)}
			v := new(lockfile.Lock).Check("github", listed, lockfile.FirstUse)
			if !v.FirstUse || len(v.Served) != 1 || v.Served[0].Name() != "plain" || len(v.Changes) != 1 || v.Changes[0].Kind != lockfile.Added {
				t.Fatalf("first use serves %d, with the changes %v", len(v.Served), v.Changes)
			}
			if diff := v.Changes[0].Diff(); !strings.Contains(diff, `\u200b`) {
				t.Errorf("the diff is\n%s", diff)
			}
			for _, raw := range []bool{false, true} {
				c := v.Changes[0]
				if raw {
					c.New = c.New.AsRaw()
				}
				lock := new(lockfile.Lock).WithTools("github", v.Served...).Accept(c)
				read, err := lockfile.Parse(lock.Encode())
				if err != nil {
					t.Fatal(err)
				}
				if len(lock.Encode()) != lock.EncodedSize() {
					t.Errorf("raw %t: it has %d bytes, and says %d", raw, len(lock.Encode()), lock.EncodedSize())
				}
				later := read.Check("github", listed, lockfile.Strict)
				if len(later.Served) != 2 || len(later.Changes) != 0 || later.Served[0].Raw() != raw || read.Hash() != lock.Hash() {
					t.Errorf("raw %t: served %v, changes %v", raw, later.Served, later.Changes)
				}
			}
		})
	}
}

func TestParse_raw(t *testing.T) {
	lock := func(entry string) string {
		return string(new(lockfile.Lock).WithTools("github", tool(t, entry)).Encode())
	}
	hidden := tool(t, hiding["title"])
	for name, row := range map[string]struct {
		file, mistake string
		raw           bool
	}{
		"without":          {lock(hiding["title"]), "", false},
		"with":             {strings.Replace(lock(hiding["title"]), "\n{", "\nraw\n{", 1), "", true},
		"with CRLF":        {strings.Replace(lock(hiding["title"]), "\n{", "\nraw\r\n{", 1), "", true},
		"of nothing":       {strings.Replace(lock(`{"name":"a"}`), "\n{", "\nraw\n{", 1), `line 8: tool "github" "a": the line raw is for definitions with invisible characters, and this one has none; remove the line`, false},
		"of another word":  {strings.Replace(lock(hiding["title"]), "\n{", "\nrare\n{", 1), `line 8: tool "github" "a": want { and the definition in the line after its sha256`, false},
		"of a second line": {strings.Replace(lock(hiding["title"]), "\n{", "\nraw\nraw\n{", 1), `line 8: tool "github" "a": want { and the definition in the line after its sha256`, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := lockfile.Parse([]byte(row.file))
			if got := fmt.Sprint(err); row.mistake != "" && got != row.mistake || row.mistake == "" && err != nil {
				t.Fatalf("got  %v\nwant %s", err, row.mistake)
			}
			if row.mistake != "" {
				return
			}
			held := l.Tools("github")[0]
			if held.Raw() != row.raw || !held.Equal(hidden) || string(l.Encode()) != strings.ReplaceAll(row.file, "\r", "") {
				t.Errorf("raw is %t; (-want +got)\n%s", held.Raw(), cmp.Diff(row.file, string(l.Encode())))
			}
		})
	}
}

func TestHash_raw(t *testing.T) {
	hidden := tool(t, hiding["title"])
	if new(lockfile.Lock).WithTools("github", hidden).Hash() == new(lockfile.Lock).WithTools("github", hidden.AsRaw()).Hash() {
		t.Error("the lock is the same whether it is raw or not")
	}
}
