package catalog

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestBinding_maxPolicies(t *testing.T) {
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

func TestBinding_sharesPolicies(t *testing.T) {
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
	policy := func(tool string) any { return built.Base.Entry(Tools, tool).Rules[0].Compiled }
	if policy("a") != policy("b") || policy("a") == policy("c") {
		t.Error("a and b should have one compiled policy, and c another")
	}
}

// Without capacity for all policies, tools that are not accepted are left out first.
func TestOverlay_boundOfRules(t *testing.T) {
	config := files(map[string]string{"mcpd.hcl": "upstream \"lab\" { url = \"https://lab.test/mcp\" }\n"})
	tools := fstest.MapFS{"t.hcl": {Mode: 0o644, Data: []byte("tool \"own\" {\n  input \"n\" { type = integer }\n  run = \"return 1\"\n}\n" +
		"policy \"p\" {\n  deny   = \"args.n == 1\"\n  reason = \"no\"\n}\n")}}
	with := func(i int) *Item {
		return newOffering(fmt.Sprintf("lab_%d", i), fmt.Sprintf(`{"type":"object","properties":{"n":{"type":"number"},"i%d":{"type":"number"}}}`, i))
	}
	b := New(Options{Tools: tools, Config: config, ConfigPath: "mcpd.hcl"})
	b.maxPolicies = 3
	offers := Offers{Items: []*Item{with(1), with(2), with(3), with(5)}, Known: []ToolName{{"lab", "lab_5"}}}
	for range 2 { // the second time with compiled policies
		c := buildOverlay(t, b, Change{All: true}, offers)
		var served, left []string
		for _, e := range c.Entries[Tools] {
			served = append(served, e.Name)
		}
		for _, l := range c.LeftOut {
			left = append(left, l.Address+": "+l.Reason)
		}
		const why = ": the rules that read args cover too many items"
		if diff := cmp.Diff([][]string{{"lab_1", "lab_5", "own"}, {"lab_2" + why, "lab_3" + why}}, [][]string{served, left}); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
