package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/audit"
	"github.com/mcpd/mcpd/internal/replay"
)

// ledger is what calls are written down by: kept has its arguments kept, and told has not.
const ledger = `
tool "kept" {
  input "n" {
    type     = integer
    required = false
  }
  run = "return input.n ?? 0;"
}
tool "told" {
  input "n" {
    type     = integer
    required = false
  }
  run = "return input.n ?? 0;"
}
`

// randomPolicies writes policies of every kind.
func randomPolicies(r *rand.Rand) string {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	condition := func() string {
		return pick("has(args.n) && args.n > 1", "has(args.n) && args.n == 2", "!has(args.n)", "principal.id == 'ada'", "principal.claims.level > 1.5", "'x' in principal.groups", "agent.model == 'm'", "now.getHours() < 12", "false")
	}
	var b strings.Builder
	for i := range r.IntN(4) {
		on, verdict := "", pick("allow", "deny", "deny", "requires_approval")
		if r.IntN(4) == 0 {
			on, verdict = "  on = \"result\"\n", pick("allow", "deny")
		}
		fmt.Fprintf(&b, "policy \"p%d\" {\n%s  tools = [\"%s\"]\n  %s = \"(%s) %s (%s)\"\n  reason = \"r\"\n  disclose = \"%s\"\n}\n",
			i, on, pick("kept", "told", "*"), verdict, condition(), pick("&&", "||"), condition(), pick("reason", "generic", "hide"))
	}
	return b.String()
}

// judging returns a server of policies, which writes its calls down at a path unless that is empty.
func judging(t *testing.T, policies, path string, now time.Time) *engine.Server {
	t.Helper()
	config := ""
	if path != "" {
		config = fmt.Sprintf("audit {\n  path = %q\n  capture = [\"kept\"]\n}\n", filepath.ToSlash(path))
	}
	s, err := engine.New(engine.Options{
		Name: "t", Tools: fstest.MapFS{"a.hcl": {Data: []byte(ledger + policies)}},
		Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config)}}, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	if report, err := s.Load(t.Context()); err != nil {
		t.Fatalf("%v\n%s", report.Problems, policies)
	}
	return s
}

// ending is how a call ended, as far as policies go.
func ending(r engine.Result) engine.Verdict {
	switch {
	case r.Err == nil:
		return engine.Allowed
	case r.Err.Code == engine.PolicyDenied, r.Err.DeniedBy != "":
		return engine.Denied
	default:
		return engine.Refused
	}
}

// TestAReplayTellsHowCallsWouldHaveEnded has a server write down calls, replays them with
// other policies, and makes the same calls with these.
func TestAReplayTellsHowCallsWouldHaveEnded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 4))
	var all replay.Counts
	for round := range 40 {
		now := time.Date(2026, 7, 28, r.IntN(24), 0, 0, 0, time.UTC)
		path := filepath.Join(t.TempDir(), "mcpd.jsonl")
		then, today := randomPolicies(r), randomPolicies(r)
		if round%4 == 0 {
			today = then
		}
		server, requests, ended := judging(t, then, path, now), map[string]engine.Request{}, map[string]engine.Verdict{}
		for range 12 {
			request := engine.Request{
				Name: []string{"kept", "told"}[r.IntN(2)], Arguments: json.RawMessage([]string{`{"n":1}`, `{"n":2}`, `{}`, `{"n":"x"}`}[r.IntN(4)]),
				Caller: identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: "bot", Model: []string{"m", ""}[r.IntN(2)]}},
			}
			if r.IntN(2) == 0 {
				request.Caller.Principal = identity.Principal{ID: "ada", Kind: identity.KindKey, Groups: []string{"x"}, Claims: map[string]any{"level": float64(r.IntN(3))}}
			}
			result := server.Execute(t.Context(), request)
			requests[result.CallID], ended[result.CallID] = request, ending(result)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh := judging(t, today, "", now)
		counts := &replay.Replay{Judge: fresh.Explain}
		strange, err := audit.Calls(path, 0, func(c *audit.Call) error {
			unknown := counts.Counts.Unknown
			change, err := counts.Compare(t.Context(), c)
			if err != nil || counts.Counts.Unknown > unknown {
				return err
			}
			is := ending(fresh.Execute(t.Context(), requests[c.Call]))
			if differs := ended[c.Call] != is; differs != (change != nil) && (change == nil || change.Now.Verdict != engine.NeedsApproval) {
				t.Errorf("%s %s: %s then and %s now, and the change is %v\nthen:\n%s\nnow:\n%s", c.Name, requests[c.Call].Arguments, ended[c.Call], is, change, then, today)
			}
			return nil
		})
		if err != nil || strange > 0 {
			t.Fatalf("%d lines are no records: %v", strange, err)
		}
		n := counts.Counts
		if round%4 == 0 && n.Different > 0 {
			t.Errorf("%d calls are decided otherwise by the same policies:\n%s", n.Different, then)
		}
		all.Same, all.Different, all.Unknown = all.Same+n.Same, all.Different+n.Different, all.Unknown+n.Unknown
	}
	t.Logf("%+v", all)
	if all.Same < 50 || all.Different < 50 || all.Unknown < 50 {
		t.Errorf("the records hardly ever end as one of these: the test shows nothing: %+v", all)
	}
}
