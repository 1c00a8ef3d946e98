package examples_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
)

func TestTypeScript_testBlocks(t *testing.T) {
	passes(t, load(t, "typescript", engine.Options{}), 4)
}

func TestNumbers_roundTrip(t *testing.T) {
	server := load(t, "typescript", engine.Options{})
	for number := 1; number <= 3999; number += 37 {
		result, err := server.Call(t.Context(), "to_roman", map[string]any{"number": number})
		if err != nil {
			t.Fatal(err)
		}
		back, err := server.Call(t.Context(), "from_roman", result.Value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fmt.Sprintf(`{"number":%d}`, number), string(back.Value)); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

func TestErrors_sourcePositions(t *testing.T) {
	_, err := load(t, "typescript", engine.Options{}).Call(t.Context(), "from_roman", map[string]any{"roman": "ABC"})
	stack := scripting.StackOf(err)
	if len(stack) == 0 {
		t.Fatalf("got %v, want an error with a stack", err)
	}
	got := stack[0].Range
	if got.File != "tools.d/roman.hcl" || got.Start.Line != 42 {
		t.Errorf("the error is at %s, want tools.d/roman.hcl, line 42", got)
	}
}
