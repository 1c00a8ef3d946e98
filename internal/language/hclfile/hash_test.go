package hclfile

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/definition"
)

const hashed = `
locals {
  used   = "u"
  unused = "n"
}
tool "t" {
  description = "${local.used} ${var.used}"
  run         = file("x.js")
}
policy "p" {
  deny   = "true"
  reason = "no"
}
hook "h" {
  on  = ["end"]
  run = "1"
}
`

// hashesOf decodes [hashed] with replacements, with the given variables and file.
func hashesOf(t *testing.T, vars, file string, replacements ...string) map[string]definition.Hashes {
	t.Helper()
	source := strings.NewReplacer(replacements...).Replace(hashed)
	defs := decodeTools(t, "x.hcl", source, Scope{
		Vars:     map[string]definition.Variable{"used": {Value: json.RawMessage(vars)}, "unused": {Value: json.RawMessage(strconv.Itoa(len(file)))}},
		ReadFile: func(string) ([]byte, error) { return []byte(file), nil },
	})
	return map[string]definition.Hashes{"tool": defs.Tools[0].Hashes, "policy": defs.Policies[0].Hashes, "hook": defs.Hooks[0].Hashes}
}

func TestHashes_dependencies(t *testing.T) {
	before := hashesOf(t, `"a"`, "return 1")
	for name, c := range map[string]struct {
		vars, file string
		edits      []string
		changed    string
		// placed means that only the position changed.
		placed bool
	}{
		"nothing":               {vars: `"a"`, file: "return 1"},
		"a variable it uses":    {vars: `"b"`, file: "return 1", changed: "tool"},
		"a file it reads":       {vars: `"a"`, file: "return 2", changed: "tool"},
		"a local it uses":       {vars: `"a"`, file: "return 1", edits: []string{`"u"`, `"v"`}, changed: "tool"},
		"an unused local":       {vars: `"a"`, file: "return 1", edits: []string{`"n"`, `"m"`}},
		"its own text":          {vars: `"a"`, file: "return 1", edits: []string{`"no"`, `"na"`}, changed: "policy"},
		"a blank line above it": {vars: `"a"`, file: "return 1", edits: []string{"hook \"h\"", "\nhook \"h\""}, changed: "hook", placed: true},
		"its name":              {vars: `"a"`, file: "return 1", edits: []string{"hook \"h\"", "hook \"i\""}, changed: "hook"},
	} {
		t.Run(name, func(t *testing.T) {
			after := hashesOf(t, c.vars, c.file, c.edits...)
			for kind := range before {
				if (before[kind].Hash != after[kind].Hash) != (kind == c.changed) {
					t.Errorf("the hash of the %s: changed is %v", kind, before[kind].Hash != after[kind].Hash)
				}
				if (before[kind].Semantic != after[kind].Semantic) != (kind == c.changed && !c.placed) {
					t.Errorf("the semantic hash of the %s: changed is %v", kind, before[kind].Semantic != after[kind].Semantic)
				}
			}
		})
	}
}

func TestHashes_jsonSiblings(t *testing.T) {
	hash := func(run string) definition.Hash {
		return decodeTools(t, "x.hcl.json", `{"tool": {"a": {"run": "`+run+`"}, "b": {"run": "1"}}}`, Scope{}).Tools[1].Hash
	}
	if hash("1") != hash("2") {
		t.Error("the hash of b changed with a")
	}
}

func TestLocals_hash(t *testing.T) {
	join := func(source string) definition.Hash {
		file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(source)}, ToolsKind)
		if file == nil {
			t.Fatal(problems)
		}
		locals, problems := JoinLocals([]*File{file}, nil, false)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return locals.Hash()
	}
	a, b, c := join("locals {\n  a = 1 + 1\n}"), join("# moved\nlocals {\n  a = 2\n}"), join("locals {\n  a = 3\n}")
	if a != b || a == c {
		t.Error("only equal values must have the same hash")
	}
}
