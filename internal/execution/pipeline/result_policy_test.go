package pipeline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
)

// blocks returns a result with many content blocks.
func blocks() call.Result {
	block := `{"type":"text","text":"one of many"}`
	return call.Result{Value: json.RawMessage(`1`), Content: json.RawMessage("[" + strings.Repeat(block+",", 999) + block + "]")}
}

// judges are result policies, with and without access to content.
var judges = map[string][]catalog.Policy{
	"content": {{Compiled: new(policylang.Policy), ReadsContent: true}},
	"result":  {{Compiled: new(policylang.Policy)}},
}

// Content that no policy reads must not cost anything.
func TestExposeResult_unreadContent(t *testing.T) {
	for name, most := range map[string]float64{"result": 10, "content": 10_000} {
		rules, result, facts := judges[name], blocks(), policylang.Input{}
		allocations := testing.AllocsPerRun(10, func() {
			if err := exposeResult(&facts, rules, result); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > most || (facts.Content != nil) != rules[0].ReadsContent {
			t.Errorf("%s: %.0f allocations, and the policy sees content: %v", name, allocations, facts.Content != nil)
		}
	}
}

func BenchmarkExposeResult(b *testing.B) {
	for name, rules := range judges {
		b.Run(name, func(b *testing.B) {
			result := blocks()
			b.ReportAllocs()
			for b.Loop() {
				if err := exposeResult(new(policylang.Input), rules, result); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
