package engine_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// The members of event, agent and call that the linter knows are those that exist at run time.
func TestGlobals_members(t *testing.T) {
	log := &logBuffer{}
	s, err := engine.New(engine.Options{Name: "test", Logger: log.logger(), Files: engine.Files{Tools: files("t.hcl", `
tool "keys" {
  input "fail" {
    type     = bool
    required = false
  }
  run = <<JS
    if (input.fail) throw new Error("failed");
    return { agent: Object.keys(agent), call: Object.keys(call), no: [agent.nope, call.nope] };
  JS
}
tool "calls" {
  allow {
    call { tools = ["keys"] }
  }
  run = "return await tools.keys({});"
}
tool "asks" {
  allow {
    ask { roots = true }
  }
  run = "return await roots();"
}
tool "again" {
  read_only = true
  cache {
    ttl   = "1m"
    scope = "server"
  }
  run = "return 1;"
}
resource "r" {
  uri  = "x:r"
  text = "r"
}
hook "keys" {
  on  = ["start", "end", "error"]
  run = <<JS
    log.info("event=" + Object.keys(event).join() + ";", { no: event.nope });
  JS
}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	report, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for _, p := range report.Problems {
		if object, _, ok := strings.Cut(p.Summary, " has no member "); ok {
			told[object] = sorted(strings.Split(strings.TrimSuffix(strings.TrimPrefix(p.Detail, "there is "), "."), ", "))
		}
	}
	result, err := s.Call(t.Context(), "calls", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	if err := json.Unmarshal(result.Value, &found); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Call(t.Context(), "keys", map[string]any{"fail": true}); err == nil {
		t.Fatal("the tool did not fail")
	}
	s.Execute(t.Context(), call.Request{Kind: call.Resources, Name: "x:r"})
	for range 2 {
		s.Execute(t.Context(), call.Request{Name: "again"})
	}
	if result := s.Execute(t.Context(), call.Request{Name: "asks", Can: call.Capabilities{Roots: true}}); result.Ask == nil {
		t.Fatal("the tool did not ask")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	s.Execute(cancelled, call.Request{Name: "keys", Cancelled: func(error) call.Cancellation {
		return call.Cancellation{By: call.CancelledByClient, Reason: "enough"}
	}})
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	event := map[string]bool{}
	for _, keys := range regexp.MustCompile(`event=([^;]*);`).FindAllStringSubmatch(log.String(), -1) {
		for key := range strings.SplitSeq(keys[1], ",") {
			event[key] = true
		}
	}
	want := map[string][]string{
		"agent": sorted(found["agent"]), "call": sorted(found["call"]), "event": slices.Sorted(maps.Keys(event)),
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-at run time +in the linter)\n%s", diff)
	}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
