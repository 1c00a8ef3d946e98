package catalog

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/hclfile"
)

func TestPoliciesThatCoverTooManyInputsAreRefused(t *testing.T) {
	var text strings.Builder
	for i := range 4 {
		fmt.Fprintf(&text, "tool \"t%d\" {\n  input \"n\" { type = integer }\n  input \"i%[1]d\" { type = integer }\n  run = \"return 1\"\n}\n", i)
		fmt.Fprintf(&text, "policy \"p%d\" {\n  deny   = \"args.n == %[1]d\"\n  reason = \"no\"\n}\n", i)
	}
	tools := fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(text.String())}}
	b := New(Options{Tools: tools})
	b.maxPolicies = 15
	built := b.Build(Change{All: true}, nil)
	if len(built.Problems) != 1 || built.Problems[0].Code != "too-many" {
		t.Errorf("found %v", built.Problems)
	}
	b.maxPolicies = 16
	if built := b.Build(Change{All: true}, nil); len(built.Problems) != 0 {
		t.Errorf("found %v", built.Problems)
	}
}

func TestToolsWithTheSameInputsShareTheirPolicies(t *testing.T) {
	tools := fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte(`
tool "a" {
  input "n" { type = integer }
  run = "return 1"
}
tool "b" {
  input "n" { type = integer }
  run = "return 2"
}
tool "c" {
  input "n" { type = string }
  run = "return 3"
}
policy "p" {
  deny   = "string(args.n) == '1'"
  reason = "no"
}
`)}}
	built := New(Options{Tools: tools}).Build(Change{All: true}, nil)
	if len(built.Problems) > 0 {
		t.Fatal(built.Problems)
	}
	policy := func(tool string) any { return built.Catalog.Entry(Tools, tool).Rules[0].Compiled }
	if policy("a") != policy("b") || policy("a") == policy("c") {
		t.Error("a and b should have one compiled policy, and c another")
	}
}

// TestWhatAnUpstreamOffersBeyondTheBoundIsLeftOut: what others serve stays, and files go on
// loading.
func TestWhatAnUpstreamOffersBeyondTheBoundIsLeftOut(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" { url = \"https://lab.test/mcp\" }\n"})
	tools := fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte("tool \"own\" {\n  input \"n\" { type = integer }\n  run = \"return 1\"\n}\n" +
		"policy \"p\" {\n  deny   = \"args.n == 1\"\n  reason = \"no\"\n}\n")}}
	with := func(i int) *Item {
		return offering(fmt.Sprintf("lab_%d", i), fmt.Sprintf(`{"type":"object","properties":{"n":{"type":"number"},"i%d":{"type":"number"}}}`, i))
	}
	offered := []*Item{with(5)}
	b := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl", Federate: func([]hclfile.Upstream, map[string]string, LockFile) Federated { return Federated{Items: offered} }})
	b.maxPolicies = 3
	if built := b.Build(Change{All: true}, nil); built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	b.Served()
	offered = []*Item{with(1), with(2), with(3), with(5)}
	for _, change := range []Change{{Upstreams: true}, {All: true}} {
		built := b.Build(change, nil)
		var served, left []string
		for _, e := range built.Catalog.Entries[Tools] {
			served = append(served, e.Name)
		}
		for _, l := range built.Catalog.LeftOut {
			left = append(left, l.Address+": "+l.Why)
		}
		const why = ": the rules that read args cover too many items"
		if diff := cmp.Diff([][]string{{"lab_1", "lab_5", "own"}, {"lab_2" + why, "lab_3" + why}}, [][]string{served, left}); diff != "" || built.Problems.HasErrors() {
			t.Errorf("%v (-want +got)\n%s", built.Problems, diff)
		}
	}
}
