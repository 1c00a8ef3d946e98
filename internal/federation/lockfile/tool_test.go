package lockfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// tool parses an entry of the upstream github.
func tool(t testing.TB, entry string) lockfile.Tool {
	t.Helper()
	read, err := lockfile.ParseTool("github", json.RawMessage(entry))
	if err != nil {
		t.Fatalf("%.200s: %v", entry, err)
	}
	return read
}

func TestParseTool(t *testing.T) {
	got := tool(t, ` {
		"title": "Create", "name": "create\u005fissue", "description": "Creates an issue.\n",
		"inputSchema": {"type": "object", "properties": {"n": {"minimum": 1.50, "default": 1e2}}, "$defs": null},
		"outputSchema": null,
		"annotations": {"readOnlyHint": false},
		"_meta": {"session": 7}, "icons": [], "execution": {"taskSupport": "optional"}, "x": 1
	}`)
	want := `{"annotations":{"readOnlyHint":false},"description":"Creates an issue.\n",` +
		`"inputSchema":{"$defs":null,"properties":{"n":{"default":100,"minimum":1.5}},"type":"object"},"name":"create_issue","title":"Create"}`
	if diff := cmp.Diff(want, string(got.Definition())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.Upstream() != "github" || got.Name() != "create_issue" {
		t.Errorf("it is %s of %s", got.Name(), got.Upstream())
	}
	// printf %s '{"name":"a"}' | sha256sum
	if got, want := tool(t, `{"name":"a"}`).Hash(), "d9d719b27480b55cd4918020e7473e716ed3569c8adafe926cf9b10b4f8ef064"; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

func TestParseTool_errors(t *testing.T) {
	for _, row := range []struct{ entry, want string }{
		{``, "read definition: the JSON text ends where a value should be (at byte 0)"},
		{`[]`, "read definition: it is not an object"},
		{`{}`, "read definition: it has no name of 1 to 1024 bytes"},
		{`{"name":null}`, "read definition: it has no name of 1 to 1024 bytes"},
		{`{"name":""}`, "read definition: it has no name of 1 to 1024 bytes"},
		{`{"name":"` + strings.Repeat("x", 1025) + `"}`, "read definition: it has no name of 1 to 1024 bytes"},
		{`{"name":1}`, "read definition: the name is not a string"},
		{`{"name":"a","title":{}}`, "read definition: the title is not a string"},
		{`{"name":"a","description":["x"]}`, "read definition: the description is not a string"},
		{`{"name":"a","inputSchema":true}`, "read definition: the inputSchema is not an object"},
		{`{"name":"a","outputSchema":"x"}`, "read definition: the outputSchema is not an object"},
		{`{"name":"a","annotations":[]}`, "read definition: the annotations is not an object"},
		{`{"name":"a","Description":"x"}`, "read definition: a member name differs from description only in case"},
		{`{"name":"a","description":"x","DESCRIPTION":null}`, "read definition: a member name differs from description only in case"},
		{`{"name":"a","input` + "\u017f" + `chema":{}}`, "read definition: a member name differs from inputSchema only in case"},
		{`{"name":"a","name":"b"}`, "read definition: an object has two members of the same name (at byte 12)"},
		{`{"name":"\ud800"}`, "read definition: a string contains an unpaired surrogate escape (at byte 9)"},
		{`{"name":"a","inputSchema":` + strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat("}", 65), "read definition: arrays and objects are nested deeper than the limit of 64 levels (at byte 341)"},
		{`{"name":"a","_meta":"` + strings.Repeat("x", 1<<20) + `"}`, "read definition: the JSON text is longer than the limit of 1048576 bytes (at byte 1048576)"},
	} {
		read, err := lockfile.ParseTool("github", json.RawMessage(row.entry))
		if err == nil {
			t.Errorf("%.80s is %s", row.entry, read.Definition())
		} else if diff := cmp.Diff(row.want, err.Error()); diff != "" {
			t.Errorf("%.80s (-want +got)\n%s", row.entry, diff)
		}
	}
}

// FuzzParseTool checks that a definition is itself an entry with the same definition, and that
// its lock survives encoding and parsing.
func FuzzParseTool(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","description":"One. Two!\n\nThree"}`, `{"name":"\u202e","inputSchema":{"a. b":[1e-7,-0,123456789012345678901234.50]}}`,
		`{"name":"a","_meta":{},"title":null,"annotations":{"x":[[],{},"",null,true]}}`, `{"name":"a","Name":"b"}`, `[[`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		read, err := lockfile.ParseTool("github", entry)
		if err != nil {
			return
		}
		if !json.Valid(read.Definition()) {
			t.Fatalf("%q is no JSON", read.Definition())
		}
		if again, err := lockfile.ParseTool("github", read.Definition()); err == nil && again != read {
			t.Fatalf("%q becomes %q", read.Definition(), again.Definition())
		}
		lock := new(lockfile.Lock).WithTools("github", read)
		file := lock.Encode()
		parsed, err := lockfile.Parse(file)
		if err != nil {
			t.Fatalf("%v:\n%s", err, file)
		}
		if diff := cmp.Diff(lock.Tools("github"), parsed.Tools("github")); diff != "" {
			t.Fatal(diff)
		}
		checkShown(t, string(file))
		checkShown(t, lockfile.Change{Kind: lockfile.Added, Upstream: "github", Name: read.Name(), New: read}.Diff())
	})
}
