package engine_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
)

// planned is a call of run_code that plans.
func planned(text string) engine.Request {
	arguments, _ := json.Marshal(map[string]string{"code": text, "mode": "plan"})
	return tool("run_code", string(arguments))
}

func TestNoToolThatAPlanRunsCallsWhatThePlanWouldNot(t *testing.T) {
	var mu sync.Mutex
	var made []string
	s := server(t, engine.Options{
		Config: files("mcpd.hcl", "codeact {}\n"),
		Tools: files("a.hcl", `
tool "writes" {
  run = "return 'wrote';"
}
tool "says_it_reads" {
  read_only = true
  allow {
    call { tools = ["writes"] }
  }
  run = "return await tools.writes({});"
}
tool "rehearses" {
  allow {
    call { tools = ["writes"] }
  }
  run     = "return 1;"
  dry_run = "return await tools.writes({});"
}
`),
		Hooks: []engine.Hook{func(_ context.Context, e engine.HookEvent) {
			mu.Lock()
			defer mu.Unlock()
			if e.Tool == "writes" && e.Phase == engine.End {
				made = append(made, e.Outcome)
			}
		}},
	})
	got := called(t, s, planned(`
let refused;
try { await says_it_reads() } catch (e) { refused = e.message }
return [refused, await rehearses()];`))
	want := `{"result":["in a plan, a tool that reads cannot call \"writes\", which does more than that",null],"stdout":"","calls":[{"tool":"says_it_reads","outcome":"EXECUTION_ERROR"},{"tool":"rehearses","outcome":"dry_run","arguments":{}}]}`
	if string(got.Structured) != want {
		t.Errorf("got  %s %s\nwant %s", got.Structured, ended(got), want)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"rehearsed"}, made); diff != "" {
		t.Errorf("hooks hear of calls that ended so (-want +got)\n%s", diff)
	}
}
