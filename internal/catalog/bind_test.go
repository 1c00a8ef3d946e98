package catalog

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
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
