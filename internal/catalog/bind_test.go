package catalog_test

import (
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/internal/catalog"
)

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
	built := catalog.New(catalog.Options{Tools: tools}).Build(catalog.Change{All: true}, nil)
	if len(built.Problems) > 0 {
		t.Fatal(built.Problems)
	}
	policy := func(tool string) any { return built.Catalog.Entry(tool).Rules[0].Compiled }
	if policy("a") != policy("b") || policy("a") == policy("c") {
		t.Error("a and b should have one compiled policy, and c another")
	}
}
