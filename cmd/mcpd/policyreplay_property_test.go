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

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/replay"
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

// replies are what a client says that is asked for an approval: nothing, as it cannot be
// asked or does not come back, or an action.
const (
	mute     = ""
	silent   = "silent"
	approves = "accept"
	declines = "decline"
)

// legs makes a call and answers what it asks, and visits what came of each leg.
func legs(t *testing.T, s *engine.Server, request call.Request, reply string, visit func(call.Result)) {
	t.Helper()
	request.Can.Form = reply != mute
	result := s.Execute(t.Context(), request)
	visit(result)
	if result.Ask != nil && reply != silent {
		request.Resume = &call.Resume{State: result.Ask.State, Responses: map[string]json.RawMessage{"approval": json.RawMessage(`{"action":"` + reply + `"}`)}}
		visit(s.Execute(t.Context(), request))
	}
}

// judgement is what the policies of a server decide of a call, which its user approves
// where they want that. Who approved the call sees whether its result may be shown.
func judgement(t *testing.T, s *engine.Server, request call.Request, approved bool) (v pipeline.Verdict) {
	t.Helper()
	asked := false
	legs(t, s, request, approves, func(r call.Result) {
		switch v = ending(r); {
		case r.Ask != nil, asked && (v == pipeline.Allowed || !approved):
			asked, v = true, pipeline.NeedsApproval
		}
	})
	return v
}

// ending is how a call ended, as far as policies go.
func ending(r call.Result) pipeline.Verdict {
	switch {
	case r.Err == nil:
		return pipeline.Allowed
	case r.Err.Code == call.PolicyDenied, r.Err.DeniedBy != "":
		return pipeline.Denied
	default:
		return pipeline.Refused
	}
}

// TestAReplayTellsHowCallsWouldHaveEnded has a server write down calls, replays them with
// other policies, and makes the same calls with these.
func TestAReplayTellsHowCallsWouldHaveEnded(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 4))
	var all replay.Counts
	for round := range 40 {
		now := time.Date(2026, 7, 28, r.IntN(24), 0, 0, 0, time.UTC)
		path := filepath.Join(t.TempDir(), "mcpd.jsonl")
		then, today := randomPolicies(r), randomPolicies(r)
		if round%4 == 0 {
			today = then
		}
		server, twin := judging(t, then, path, now), judging(t, then, "", now)
		requests, ended, approved := map[string]call.Request{}, map[string]pipeline.Verdict{}, map[string]bool{}
		for range 12 {
			request := call.Request{
				Name: []string{"kept", "told"}[r.IntN(2)], Arguments: json.RawMessage([]string{`{"n":1}`, `{"n":2}`, `{}`, `{"n":"x"}`}[r.IntN(4)]),
				Caller: identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: "bot", Model: []string{"m", ""}[r.IntN(2)]}},
			}
			if r.IntN(2) == 0 {
				request.Caller.Principal = identity.Principal{ID: "ada", Kind: identity.KindKey, Groups: []string{"x"}, Claims: map[string]any{"level": float64(r.IntN(3))}}
			}
			reply, leg := []string{mute, silent, approves, declines}[r.IntN(4)], 0
			legs(t, server, request, reply, func(result call.Result) {
				leg++
				id := result.CallID
				requests[id], approved[id] = request, reply == approves && leg == 2
				ended[id] = judgement(t, twin, request, approved[id])
			})
		}
		if err := server.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		fresh := judging(t, today, "", now)
		counts := &replay.Replay{Judge: fresh.Inside().Explain}
		strange, err := audit.Calls(path, 0, func(c *audit.Call) error {
			unknown := counts.Counts.Unknown
			change, err := counts.Compare(t.Context(), c)
			if err != nil || counts.Counts.Unknown > unknown {
				return err
			}
			is := judgement(t, fresh, requests[c.Call], approved[c.Call])
			if differs := ended[c.Call] != is; differs != (change != nil) {
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
