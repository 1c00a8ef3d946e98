package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
	"github.com/mcpd/mcpd/policylang"
)

// policyGenerator generates random policies for courtTools, and random calls.
type policyGenerator struct{ *rand.Rand }

const courtTools = `
tool "pay" {
  input "amount" { type = integer }
  input "note" {
    type     = string
    required = false
  }
  input "tenant" {
    type = string
    from = "principal.groups.exists(g, g == 'leads') ? 'lead' : agent.agent_id"
  }
  output "total" { type = integer }
  run = <<JS
    return { total: input.amount };
  JS
}
`

func (c policyGenerator) pick(choices ...string) string { return choices[c.IntN(len(choices))] }

func (c policyGenerator) condition(depth int, onResult bool) string {
	if depth > 0 {
		return fmt.Sprintf("(%s %s %s(%s))", c.condition(depth-1, onResult), c.pick("&&", "||"), c.pick("", "!"), c.condition(depth-1, onResult))
	}
	if onResult && c.IntN(2) == 0 {
		return c.pick("result.total > 1", "result.total == 2", "content.size() > 0")
	}
	return c.pick("args.amount > 1", "args.amount == 2", "has(args.note)", "args.tenant == 'lead'", "args.tenant == 'bot'", "principal.id == 'ada'",
		"principal.groups.exists(g, g == 'leads')", "agent.agent_id == 'bot'", "call.parent == 'outer'", "call.depth > 0", "source.ip == '10.0.0.1'",
		"principal.claims.nope == 1", "tool.read_only", "now.getHours() < 12", "true", "false")
}

// policies returns a file with random policies.
func (c policyGenerator) policies(prefix string) string {
	var b strings.Builder
	for i := range c.IntN(4) {
		onResult := c.IntN(4) == 0
		verdict := c.pick("allow", "deny", "deny", "requires_approval")
		on := ""
		if onResult {
			verdict, on = c.pick("allow", "deny"), "  on = \"result\"\n"
		}
		fmt.Fprintf(&b, "policy \"%s_%d\" {\n%s  tools = [\"pay\"]\n  %s = \"%s\"\n  reason = \"because %d\"\n  disclose = \"%s\"\n", prefix, i, on, verdict,
			c.condition(c.IntN(3), onResult), i, c.pick("reason", "generic", "hide"))
		if c.IntN(3) == 0 {
			fmt.Fprintf(&b, "  when = \"%s\"\n", c.condition(c.IntN(2), onResult))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// request returns a random call, sometimes of a missing tool or with invalid arguments.
func (c policyGenerator) request() call.Request {
	caller := identity.Caller{Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: c.pick("bot", "anonymous")}, Source: identity.Source{IP: c.pick("10.0.0.1", "")}}
	if c.IntN(2) == 0 {
		caller.Principal = identity.Principal{ID: "ada", Kind: identity.KindKey, Groups: []string{c.pick("leads", "staff")}, Claims: map[string]any{}}
	}
	return call.Request{
		Name: c.pick("pay", "pay", "pay", "pay", "pya"), Caller: caller,
		Arguments: json.RawMessage(c.pick(`{"amount":1}`, `{"amount":2}`, `{"amount":2,"note":"n"}`, `{"amount":3}`, `{"amount":"x"}`, `{}`)),
	}
}

// Explanations of fully and partially known calls must match the results of the calls.
func TestExplain_matchesExecute(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	c := policyGenerator{rand.New(rand.NewPCG(3, 9))}
	seen := map[pipeline.Verdict]int{}
	for range 150 {
		config := ""
		if c.IntN(3) == 0 {
			config = "server {\n  default_decision = \"deny\"\n}\n"
		}
		config += c.policies("first")
		now := time.Date(2026, 7, 28, c.IntN(24), 0, 0, 0, time.UTC)
		s := unloaded(t, engine.Options{
			Files: engine.Files{Config: files("mcpd.hcl", config), Tools: files("pay.hcl", courtTools+c.policies("last"))}, Now: func() time.Time { return now },
			Policies: []engine.Policy{func(in engine.PolicyInput) engine.Decision {
				if in.Args["amount"] == int64(3) {
					return engine.Deny("three is too much")
				}
				return engine.Allow()
			}},
		})
		if report, err := s.Load(t.Context()); err != nil {
			t.Fatalf("%v\n%s", report.Problems, config)
		}
		for range 12 {
			request := c.request()
			result := s.Execute(t.Context(), request)
			checkExplanation(t, s, request, result, seen)
			checkPartialExplanation(t, s, request, result, policylang.Parts(1+c.IntN(63)), seen)
		}
	}
	t.Logf("%v", seen)
	for _, v := range []pipeline.Verdict{pipeline.VerdictAllowed, pipeline.VerdictDenied, pipeline.VerdictNeedsApproval, pipeline.VerdictRejected, pipeline.VerdictUnknown} {
		if seen[v] < 20 {
			t.Errorf("the calls hardly ever end as %s: the test shows nothing", v)
		}
	}
}

// checkExplanation compares the explanation of a call with its result.
func checkExplanation(t *testing.T, s *engine.Server, request call.Request, result call.Result, seen map[pipeline.Verdict]int) {
	t.Helper()
	x := explain(t, s, pipeline.HypotheticalCall{Request: request, Result: json.RawMessage(fmt.Sprintf(`{"total":%d}`, amountOf(request)))})
	seen[x.Verdict]++
	switch {
	case x.Verdict == pipeline.VerdictUnknown || x.ResultVerdict == pipeline.VerdictUnknown:
		t.Errorf("%s: all parts are known, but the verdict is unknown", request.Arguments)
	case x.Verdict == pipeline.VerdictNeedsApproval:
		asks := slices.ContainsFunc(x.Rulings, func(r pipeline.Ruling) bool {
			return result.Err != nil && r.Policy.Name == result.Err.DeniedBy && r.Decision.Outcome == policylang.NeedsApproval
		})
		if !asks {
			t.Errorf("%s: needs approval, but the call ends with %v", request.Arguments, result.Err)
		}
	case x.Verdict == pipeline.VerdictAllowed && (x.ResultVerdict == "" || x.ResultVerdict == pipeline.VerdictAllowed):
		if result.Err != nil || x.Error != nil {
			t.Errorf("%s: allowed, and the call ends with %v", request.Arguments, result.Err)
		}
	case result.Err == nil || x.Error == nil:
		t.Errorf("%s: %s, and the call ends with %v", request.Arguments, x.Verdict, result.Err)
	case x.Error.Code != result.Err.Code || x.Error.Message != result.Err.Message || x.Error.DeniedBy != result.Err.DeniedBy:
		t.Errorf("%s: explained by %v, and the call ends with %v", request.Arguments, x.Error, result.Err)
	case x.DecidingRuling >= 0 && x.Rulings[x.DecidingRuling].Policy.Compiled != nil && x.Rulings[x.DecidingRuling].Policy.Name != result.Err.DeniedBy:
		t.Errorf("%s: decided by %s, and the call is denied by %s", request.Arguments, x.Rulings[x.DecidingRuling].Policy.Name, result.Err.DeniedBy)
	}
}

// checkPartialExplanation compares the explanation of a call with unknown parts with its result: it must agree
// or be unknown.
func checkPartialExplanation(t *testing.T, s *engine.Server, request call.Request, result call.Result, lacking policylang.Parts, seen map[pipeline.Verdict]int) {
	t.Helper()
	of := pipeline.HypotheticalCall{Request: request, Unknown: lacking}
	for part, hide := range map[policylang.Parts]func(){
		policylang.PartArgs:      func() { of.Request.Arguments = nil },
		policylang.PartPrincipal: func() { of.Request.Caller.Principal = identity.Anonymous() },
		policylang.PartAgent:     func() { of.Request.Caller.Agent = identity.Agent{AgentID: "?"} },
		policylang.PartSource:    func() { of.Request.Caller.Source = identity.Source{IP: "?"} },
		policylang.PartParent:    func() { of.Parent = "?" },
	} {
		if lacking&part != 0 {
			hide()
		}
	}
	x := explain(t, s, of)
	seen[x.Verdict]++
	fits := result.Err == nil || result.Err.Code != call.InvalidInput
	denied := result.Err != nil && (result.Err.Code == call.PolicyDenied || result.Err.DeniedBy != "")
	switch {
	case x.Verdict == pipeline.VerdictDenied && !denied && fits:
		t.Errorf("%s without %s: denied by %v, and the call ends with %v", request.Arguments, lacking, x.Error, result.Err)
	case x.Verdict == pipeline.VerdictAllowed && x.ResultVerdict != pipeline.VerdictUnknown && x.ResultVerdict != pipeline.VerdictDenied && denied:
		t.Errorf("%s without %s: allowed, and the call is denied by %s", request.Arguments, lacking, result.Err.DeniedBy)
	case x.Verdict == pipeline.VerdictAllowed && x.ResultVerdict == pipeline.VerdictDenied && !denied && fits:
		t.Errorf("%s without %s: its result is denied, and the call ends with %v", request.Arguments, lacking, result.Err)
	case x.Verdict == pipeline.VerdictNeedsApproval && !denied && fits:
		t.Errorf("%s without %s: needs approval, and the call ends with %v", request.Arguments, lacking, result.Err)
	}
}

func amountOf(r call.Request) (amount int) {
	var args struct{ Amount int }
	_ = json.Unmarshal(r.Arguments, &args) // invalid arguments are rejected earlier
	return args.Amount
}

func explain(t *testing.T, s *engine.Server, of pipeline.HypotheticalCall) pipeline.Explanation {
	t.Helper()
	x, err := s.Inside().Explain(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// No limit is charged, and no hook fires.
func TestExplain_runsNothing(t *testing.T) {
	told := 0
	s := server(t, engine.Options{
		Files: engine.Files{Tools: files("a.hcl", `
tool "once" {
  run = "return 1;"
}
limit "once" {
  tools = ["once"]
  rate  = "1/h"
}`)},
		Hooks: []engine.Hook{func(context.Context, call.Event) { told++ }},
	})
	for range 3 {
		if x := explain(t, s, pipeline.HypotheticalCall{Request: call.Request{Name: "once", Caller: anonymous()}}); x.Verdict != pipeline.VerdictAllowed || !slices.Equal(x.Limits, []string{"once"}) {
			t.Fatalf("%+v", x)
		}
	}
	if status := s.Status(); told != 0 || status.Calls != 0 {
		t.Errorf("%d hook events, and %d calls counted", told, status.Calls)
	}
	if r := s.Execute(t.Context(), call.Request{Name: "once", Caller: anonymous()}); r.Err != nil {
		t.Errorf("the limit was charged: %v", r.Err)
	}
}

func TestExplain_notLoaded(t *testing.T) {
	s := unloaded(t, engine.Options{Files: engine.Files{Tools: files("a.hcl", `tool "broken" {}`)}})
	if _, err := s.Inside().Explain(t.Context(), pipeline.HypotheticalCall{Request: call.Request{Name: "broken"}}); err == nil {
		t.Error("an explanation without a snapshot")
	}
}
