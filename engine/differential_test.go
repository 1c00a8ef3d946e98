package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

// variants are the contents of each file, the usual one first; empty means no file. Each step
// changes some dependency of a definition.
var variants = map[string][]string{
	"a.hcl": {`tool "a" { run = file("a.js") }`, "\n\n" + `tool "a" { run = file("a.js") }`,
		`tool "a" { run = "return local.x" }`, `tool "a" {
  description = "${local.x} ${var.v}"
  input "n" {
    type    = string
    default = var.v
  }
  run = "return [input.n, vars.v]"
}`, `tool "a" { run = file("gone.js") }`, `tool "b" { run = "return 0" }`, ""},
	"a.js":      {"return 1", "import { b } from './lib/b.js'; return b", "import { b } from './lib/b.js'; return b + vars.v", "return (", ""},
	"lib/b.js":  {"export const b = 'b1'", "import { c } from '../c.js'; export const b = 'b2' + c", "export const c = 1", ""},
	"c.js":      {"export const c = 'c1'", "export const c = 'c2'", ""},
	"local.hcl": {"locals {\n  x = \"x1\"\n}", "locals {\n  x = \"x2 ${var.v}\"\n}", "locals {\n  y = 1\n}", ""},
	"b.hcl": {`tool "b" { run = "return 'b'" }`, `tool "b" {
  output "s" { type = string }
  run = "return { s: vars.v }"
}`, `tool "b" {
  output = jsondecode(file("out.json"))
  run = "return 1"
}`, ""},
	"out.json": {`{"type": "integer"}`, `{"type": "string"}`, ""},
	"p.hcl": {"", `policy "p" {
  tools  = ["a"]
  deny   = "vars.v == 'two'"
  reason = "no ${var.v}"
}`, `policy "p" {
  tools  = ["b"]
  deny   = "true"
  reason = file("reason.txt")
}`, `policy "p" {
  deny   = "has(args.n) && args.n == 'one'"
  reason = "n"
}`},
	"reason.txt": {"because", "why not", ""},
	"h.hcl": {"", `hook "h" {
  on  = ["end"]
  run = file("a.js")
}`, `tool "a" { run = "return 'twice'" }`},
	"mcpd.hcl": {"variable \"v\" {\n  default = \"one\"\n}", "variable \"v\" {\n  default = \"two\"\n}",
		"variable \"v\" {\n  default = \"one\"\n}\npolicy \"o\" {\n  tools = [\"b\"]\n  deny = \"vars.v == 'one'\"\n  reason = \"o\"\n}",
		"server {\n  default_decision = \"deny\"\n}\nvariable \"v\" {\n  default = \"one\"\n}",
		"variable \"w\" {\n  default = \"one\"\n}", "variable"},
}

// serverState is the observable state of a server.
type serverState struct {
	Revision string
	Tools    []string
	Results  map[string]string
}

func stateOf(t *testing.T, s *engine.Server) serverState {
	t.Helper()
	out := serverState{Results: map[string]string{}}
	if s.Snapshot() == nil {
		return out
	}
	out.Revision = s.Snapshot().Revision()
	for _, tool := range s.Snapshot().Tools() {
		metadata, err := json.Marshal(tool.Metadata())
		if err != nil {
			t.Fatal(err)
		}
		out.Tools = append(out.Tools, string(metadata))
		r := s.Execute(context.Background(), call.Request{Name: tool.Name()})
		out.Results[tool.Name()] = string(r.Value)
		if r.Err != nil {
			out.Results[tool.Name()] = fmt.Sprint(r.Err.Message, scripting.StackOf(r.Err))
		}
	}
	return out
}

// Files change at random. After each reload the server must equal a new server with the same files.
func TestReload_sameAsFirstLoad(t *testing.T) {
	tools, config := fstest.MapFS{}, fstest.MapFS{}
	random := rand.New(rand.NewPCG(1, 2))
	names := slices.Sorted(maps.Keys(variants))
	change := func(name, text string) {
		folder := tools
		if name == "mcpd.hcl" {
			folder = config
		}
		if folder[name] = (&fstest.MapFile{Data: []byte(text), Mode: 0o644}); text == "" {
			delete(folder, name)
		}
	}
	for _, name := range names {
		change(name, variants[name][0])
	}
	options := engine.Options{Name: "t", Files: engine.Files{Tools: tools, ToolsPath: "tools.d", Config: config, ConfigPath: "mcpd.hcl"}}
	s := server(t, options)
	good, steps := 0, 150
	switch {
	case checksCost():
		steps = 1000
	case testing.Short():
		steps = 30
	}
	for step := range steps {
		var reload engine.Change
		for range 1 + random.IntN(3) {
			name := names[random.IntN(len(names))]
			change(name, variants[name][random.IntN(1+random.IntN(len(variants[name])))])
			if name == "mcpd.hcl" {
				reload.Config = true
			} else {
				reload.Paths = append(reload.Paths, name)
			}
		}
		report, err := s.Reload(t.Context(), reload)
		fresh := unloaded(t, options)
		want, wantErr := fresh.Load(t.Context())
		if diff := cmp.Diff(want.Problems, report.Problems); diff != "" || (err == nil) != (wantErr == nil) {
			t.Fatalf("step %d %v: %v, want %v; problems (-want +got)\n%s", step, reload.Paths, err, wantErr, diff)
		}
		if err != nil {
			continue
		}
		good++
		if diff := cmp.Diff(stateOf(t, fresh), stateOf(t, s)); diff != "" {
			t.Fatalf("step %d %v: (-want +got)\n%s", step, reload.Paths, diff)
		}
	}
	if good < steps/3 {
		t.Errorf("only %d sets of files were valid", good)
	}
}
