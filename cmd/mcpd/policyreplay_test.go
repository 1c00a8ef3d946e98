package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
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

const replayed = `
tool "free" {
  run = "return 1;"
}
tool "args" {
  input "n" { type = integer }
  run = "return 1;"
}
tool "held" {
  run = "return 1;"
}
tool "shown" {
  run = "return 1;"
}
tool "both" {
  run = "return 1;"
}
tool "sunk" {
  run = "return 1;"
}
tool "shut" {
  run = "return 1;"
}
tool "counted" {
  run = "return 1;"
}
tool "nested" {
  run = "return 1;"
}
tool "night" {
  run = "return 1;"
}
resource_template "order" {
  uri_template = "order://{id}"
  text         = "Order {{id}}"
}
resource_template "item" {
  uri_template = "item://{id}"
  text         = "Item {{id}}"
}
resource_template "twice" {
  uri_template = "twice://{id}"
  text         = "{{id}}"
}
prompt "twice" {
  argument "id" {}
  message "user" { text = "{{id}}" }
}
prompt "greet" {
  argument "id" {}
  message "user" { text = "Hello {{id}}" }
}
prompt "secret" {
  argument "id" {}
  message "user" { text = "Hello {{id}}" }
}
policy "closed" {
  prompts = ["secret"]
  deny    = "true"
  reason  = "no"
}
policy "order_9" {
  resources = ["order"]
  deny      = "args.id == 'O 9'"
  reason    = "no"
}
policy "no_bots" {
  resources = ["order"]
  deny      = "agent.model == 'bot'"
  reason    = "no"
}
policy "small" {
  tools  = ["args"]
  deny   = "args.n > 5"
  reason = "no"
}
policy "asks" {
  tools             = ["held"]
  requires_approval = "true"
  reason            = "why"
}
policy "results" {
  on     = "result"
  tools  = ["shown"]
  deny   = "string(result) == '2'"
  reason = "no"
}
policy "careful" {
  tools             = ["both"]
  requires_approval = "true"
  reason            = "why"
}
policy "returns" {
  on     = "result"
  tools  = ["both"]
  deny   = "string(result) == '2'"
  reason = "no"
}
policy "slow" {
  tools             = ["sunk"]
  requires_approval = "true"
  reason            = "why"
}
policy "never" {
  on     = "result"
  tools  = ["sunk"]
  deny   = "principal.kind == 'anonymous'"
  reason = "no"
}
policy "shut" {
  tools  = ["shut"]
  deny   = "true"
  reason = "no"
}
limit "few" {
  tools = ["counted"]
  rate  = "3/h"
  key   = "principal.id"
}
policy "parents" {
  tools  = ["nested"]
  deny   = "call.parent == 'bad'"
  reason = "no"
}
policy "nights" {
  tools  = ["night"]
  deny   = "now.getHours() >= 20"
  reason = "no"
}
`

// withN sets the argument n of a record.
func withN(n string) func(*audit.Call) {
	return func(c *audit.Call) { c.Values, c.WholeArguments = json.RawMessage(`{"n":`+n+`}`), true }
}

// asRead makes the record one of the resource template, with values if any.
func asRead(values string) func(*audit.Call) {
	return func(c *audit.Call) {
		c.Kind, c.URI, c.Values, c.WholeArguments = "resource", "order://{id}", json.RawMessage(values), values != ""
	}
}

// completes makes the record one of a completion, whose argument is not recorded.
func completes(c *audit.Call) {
	c.Kind, c.Values, c.WholeArguments = "completion", json.RawMessage(`{"value":"a","params":{}}`), true
}

func unkept(c *audit.Call)  { c.WholeArguments = false }
func second(c *audit.Call)  { c.Leg = 2 }
func limited(c *audit.Call) { c.Limited = true }

// approval sets the state of the required approval.
func approval(state string, policies ...string) func(*audit.Call) {
	return func(c *audit.Call) { c.Leg, c.Approval = 2, &audit.Approval{State: state, Policies: policies} }
}

// comparisons are records with the expected result of replay.
var comparisons = []struct {
	tool, outcome, deniedBy string
	change                  func(*audit.Call)
	want                    string
}{
	{"free", "ok", "", nil, "same"},
	{"free", "TIMEOUT", "", nil, "same"},
	{"free", "EXECUTION_ERROR", "", nil, "same"},
	{"free", "EXECUTION_ERROR", "", func(c *audit.Call) { c.Declined = true }, "unknown: the server declined it"},
	{"free", "POLICY_DENIED", "gone", nil, "then denied by \"gone\", now allowed"},
	{"free", "TOOL_NOT_FOUND", "gone", nil, "then denied by \"gone\", now allowed"},
	{"free", "TOOL_NOT_FOUND", "", nil, "unknown: its name was unknown"},
	{"free", "POLICY_DENIED", "", nil, "unknown: the record does not say what denied it"},
	{"free", "POLICY_DENIED", "", func(c *audit.Call) { c.Message = "no policy allows this call" }, "then denied by default, now allowed"},
	{"free", "POLICY_DENIED", "(default)", nil, "then denied by default, now allowed"},
	{"free", "POLICY_DENIED", "(go)", nil, "unknown: it was denied by Go policies of a program"},
	{"free", "input_required", "", nil, "unknown: the record does not say if it waited for an approval"},
	{"free", "INVALID_INPUT", "", nil, "unknown: its arguments were invalid"},
	{"free", "ok", "", func(c *audit.Call) { c.WholePrincipal, c.WholeAgent = false, false }, "same"},
	{"order", "ok", "", completes, "unknown: policy \"order_9\" reads args"},
	{"order", "ok", "", func(c *audit.Call) { completes(c); c.Caller.Agent.Model = "bot" }, "then allowed, now denied by \"no_bots\""},
	{"order", "POLICY_DENIED", "no_bots", func(c *audit.Call) { completes(c); c.Caller.Agent.Model = "bot" }, "same"},
	{"greet", "INVALID_INPUT", "", completes, "unknown: its arguments were invalid"},
	{"greet", "ok", "", completes, "same"},
	{"greet", "POLICY_DENIED", "gone", completes, "then denied by \"gone\", now allowed"},
	{"secret", "ok", "", completes, "then allowed, now denied by \"closed\""},
	{"item", "ok", "", completes, "same"},
	{"twice", "ok", "", completes, "unknown: a prompt and a template have its name"},
	{"free", "ok", "", completes, "gone"},
	{"free", "ok", "", func(c *audit.Call) { c.Kind = "song" }, "unknown: its kind is unknown"},
	{"greet", "TOOL_NOT_FOUND", "", completes, "unknown: its name was unknown"},
	{"free", "ok", "", func(c *audit.Call) { c.WholeName = false }, "unknown: its name is incomplete"},
	{"free", "ok", "", func(c *audit.Call) { c.Kind, c.URI, c.WholeURI = "resource", "a://", false }, "unknown: its URI is incomplete"},
	{"free", "ok", "", func(c *audit.Call) { c.Name = "nowhere" }, "gone"},
	{"order", "ok", "", asRead(""), "unknown: policy \"order_9\" reads args"},
	{"order", "ok", "", asRead(`{"id":"O 9"}`), "then allowed, now denied by \"order_9\""},
	{"order", "ok", "", asRead(`{"id":"O 8"}`), "same"},
	{"order", "ok", "", func(c *audit.Call) { asRead("")(c); c.Caller.Agent.Model = "bot" }, "then allowed, now denied by \"no_bots\""},
	{"order", "ok", "", func(c *audit.Call) { asRead("")(c); c.URI = "gone://{id}" }, "gone"},
	{"order", "ok", "", func(c *audit.Call) { asRead("{}")(c); c.URI = "order://O%209" }, "then allowed, now denied by \"order_9\""},
	{"args", "ok", "", withN("1"), "same"},
	{"args", "ok", "", withN("9"), "then allowed, now denied by \"small\""},
	{"args", "ok", "", withN(`"x"`), "unknown: its arguments no longer match the schema"},
	{"args", "ok", "", unkept, "unknown: policy \"small\" reads args"},
	{"args", "POLICY_DENIED", "small", withN("9"), "same"},
	{"args", "POLICY_DENIED", "other", withN("9"), "same"},
	{"args", "INVALID_INPUT", "", withN(`"x"`), "same"},
	{"args", "INVALID_INPUT", "", withN("9"), "unknown: its arguments were invalid"},
	{"shut", "INVALID_INPUT", "", nil, "then refused, now denied by \"shut\""},
	{"shut", "input_required", "", nil, "then allowed to ask its user, now denied by \"shut\""},
	{"shut", "ok", "", unkept, "then allowed, now denied by \"shut\""},
	{"held", "ok", "", nil, "then allowed, now held for approval by \"asks\""},
	{"held", "ok", "", second, "unknown: the record has no approval"},
	{"held", "EXECUTION_ERROR", "", nil, "unknown: the record has no approval"},
	{"held", "POLICY_DENIED", "few", limited, "unknown: the record has no approval"},
	{"held", "POLICY_DENIED", "asks", nil, "same"},
	{"held", "POLICY_DENIED", "gone", nil, "then denied by \"gone\", now held for approval by \"asks\""},
	{"held", "input_required", "", approval("asked", "asks"), "same"},
	{"held", "ok", "", approval("given", "asks"), "same"},
	{"held", "ok", "", approval("given", "other"), "same"},
	{"held", "TIMEOUT", "", approval("given", "asks"), "same"},
	{"held", "POLICY_DENIED", "asks", approval("refused", "asks"), "same"},
	{"held", "TOOL_NOT_FOUND", "other", approval("unasked", "other"), "same"},
	{"held", "INVALID_INPUT", "", approval("void", "asks"), "same"},
	{"held", "EXECUTION_ERROR", "", approval("unasked", "asks"), "same"},
	{"held", "ok", "", approval("none"), "then allowed, now held for approval by \"asks\""},
	{"held", "input_required", "", approval("none"), "then allowed, now held for approval by \"asks\""},
	{"held", "ok", "", approval("given"), "then allowed, now held for approval by \"asks\""},
	{"free", "ok", "", approval("given", "gone"), "then held for approval by \"gone\", now allowed"},
	{"free", "POLICY_DENIED", "gone", approval("refused", "gone"), "then held for approval by \"gone\", now allowed"},
	{"free", "POLICY_DENIED", "", approval("refused"), "same"},
	{"free", "input_required", "", approval("none"), "same"},
	{"free", "ok", "", approval("none"), "same"},
	{"free", "POLICY_DENIED", "gone", approval("given", "asks"), "then denied by \"gone\", now allowed"},
	{"shut", "ok", "", approval("given", "asks"), "then held for approval by \"asks\", now denied by \"shut\""},
	{"shut", "input_required", "", approval("asked", "asks"), "then held for approval by \"asks\", now denied by \"shut\""},
	{"both", "ok", "", approval("given", "careful"), "unknown: policy \"returns\" reads result"},
	{"both", "POLICY_DENIED", "returns", approval("given", "careful"), "unknown: policy \"returns\" reads result"},
	{"both", "EXECUTION_ERROR", "", approval("given", "careful"), "same"},
	{"sunk", "ok", "", approval("given", "slow"), "then held for approval by \"slow\", now denied by \"never\""},
	{"shown", "ok", "", nil, "unknown: policy \"results\" reads result"},
	{"shown", "EXECUTION_ERROR", "", nil, "same"},
	{"shown", "POLICY_DENIED", "results", nil, "unknown: policy \"results\" reads result"},
	{"shown", "POLICY_DENIED", "gone", nil, "unknown: policy \"results\" reads result"},
	{"counted", "POLICY_DENIED", "few", limited, "same"},
	{"counted", "POLICY_DENIED", "few", nil, "unknown: it was denied by a limit with a key that failed to evaluate"},
	{"nested", "ok", "", nil, "same"},
	{"nested", "ok", "", func(c *audit.Call) { c.Depth = 1 }, "unknown: policy \"parents\" reads call.parent"},
	{"night", "ok", "", nil, "same"},
	{"night", "ok", "", func(c *audit.Call) { c.Began = c.Began.Add(12 * time.Hour) }, "then allowed, now denied by \"nights\""},
}

// Compares records of every kind with the decisions of current policies.
func TestReplay_records(t *testing.T) {
	s, err := engine.New(engine.Options{Name: "t", Files: engine.Files{Tools: fstest.MapFS{"a.hcl": {Data: []byte(replayed)}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	if report, err := s.Load(t.Context()); err != nil {
		t.Fatal(report.Problems)
	}
	for _, test := range comparisons {
		c := &audit.Call{
			Record:         audit.Record{Call: "c", Leg: 1, Via: "client", Kind: "tool", Name: test.tool, Outcome: test.outcome, DeniedBy: test.deniedBy, Caller: identity.Caller{Principal: identity.Anonymous()}, Values: json.RawMessage("{}")},
			Began:          time.Date(2026, 7, 28, 9, 0, 0, 0, time.UTC),
			WholePrincipal: true, WholeAgent: true, WholeName: true, WholeURI: true, WholeArguments: true,
		}
		if test.change != nil {
			test.change(c)
		}
		if got := comparison(t, s, c); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s, %s by %q: %s, want %s", test.tool, test.outcome, test.deniedBy, got, test.want)
		}
	}
}

// comparison replays one call and describes the result.
func comparison(t *testing.T, s *engine.Server, c *audit.Call) string {
	t.Helper()
	r := &replay.Replay{Evaluate: s.Inside().Explain}
	change, err := r.Compare(t.Context(), c)
	n := r.Counts
	switch {
	case err != nil || n.Calls != 1 || n.Same+n.Different+n.Unknown+n.Gone != 1:
		t.Fatalf("%v: %+v", err, n)
	case change != nil:
		return "then " + change.Recorded.String() + ", now " + change.Current.String()
	case n.Unknown == 1:
		return "unknown: " + strings.Join(slices.Collect(maps.Keys(n.Reasons)), "")
	case n.Gone == 1:
		return "gone"
	}
	return "same"
}

// The audit records of completions name their prompts and templates, so that replay finds these.
func TestReplay_completions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	s, err := engine.New(engine.Options{Name: "t", Files: engine.Files{
		Tools:  fstest.MapFS{"a.hcl": {Data: []byte(replayed)}},
		Config: fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "audit {\n  path = %q\n}\n", filepath.ToSlash(path))}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	if report, err := s.Load(t.Context()); err != nil {
		t.Fatal(report.Problems)
	}
	want := map[string]string{"greet": "same", "secret": "same", "item": "same", "order": `unknown: policy "order_9" reads args, which the record lacks or holds in part`}
	for _, request := range []call.Request{
		{Kind: call.Prompts, Name: "greet"}, {Kind: call.Prompts, Name: "secret"}, {Kind: call.Templates, Name: "item://{id}"}, {Kind: call.Templates, Name: "order://{id}"},
	} {
		request.Argument, request.Arguments, request.Caller = "id", json.RawMessage(`{"value":"a","params":{}}`), identity.Caller{Principal: identity.Anonymous()}
		s.Execute(t.Context(), request)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := judging(t, strings.TrimPrefix(replayed, "\n"), "", time.Now())
	got, edit := map[string]string{}, replay.Comparison{Serving: fresh.Inside().Explain, Candidate: fresh.Inside().Explain}
	if _, err := audit.Calls(path, 0, func(c *audit.Call) error {
		got[c.Name] = comparison(t, fresh, c)
		_, err := edit.Compare(t.Context(), c)
		return err
	}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
	if n := edit.Counts; n.Calls != 4 || n.Same != 3 || n.Unknown != 1 {
		t.Errorf("an edit without a change: %+v", n)
	}
}

// The number of distinct reasons and names is bounded, so that memory stays small.
func TestReplay_boundedReasons(t *testing.T) {
	r := &replay.Replay{Evaluate: func(context.Context, pipeline.HypotheticalCall) (pipeline.Explanation, error) {
		return pipeline.Explanation{}, nil
	}}
	for i := range 1000 {
		c := &audit.Call{Record: audit.Record{Kind: "tool", Name: strings.Repeat("x", i), Outcome: "ok"}, WholeName: true}
		if _, err := r.Compare(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Counts; n.Gone != 1000 || len(n.Names) != 101 || n.Names["…"] != 900 {
		t.Errorf("%d gone under %d names, %d of them beyond the bound", n.Gone, len(n.Names), n.Names["…"])
	}
}

// ledger configures the audit log: arguments of kept are captured, those of told are
// not.
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

// randomPolicies generates policies of every kind.
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

// judging returns a server with policies. It writes an audit log to path unless path is
// empty.
func judging(t *testing.T, policies, path string, now time.Time) *engine.Server {
	t.Helper()
	config := ""
	if path != "" {
		config = fmt.Sprintf("audit {\n  path = %q\n  capture = [\"kept\"]\n}\n", filepath.ToSlash(path))
	}
	s, err := engine.New(engine.Options{
		Name: "t", Files: engine.Files{
			Tools:  fstest.MapFS{"a.hcl": {Data: []byte(ledger + policies)}},
			Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config)}},
		},
		Now: func() time.Time { return now },
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

// Responses of a client to an approval request: none, because it cannot be asked or
// does not return, or an action.
const (
	mute     = ""
	silent   = "silent"
	approves = "accept"
	declines = "decline"
)

// legs makes a call, answers its input requests, and visits the result of each leg.
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

// judgement returns the decision of the policies about a call. If approved is set, the
// user approves it, so that policies over the result run too.
func judgement(t *testing.T, s *engine.Server, request call.Request, approved bool) (v pipeline.Verdict) {
	t.Helper()
	asked := false
	legs(t, s, request, approves, func(r call.Result) {
		switch v = ending(r); {
		case r.Ask != nil, asked && (v == pipeline.VerdictAllowed || !approved):
			asked, v = true, pipeline.VerdictNeedsApproval
		}
	})
	return v
}

// ending returns the verdict that a result implies.
func ending(r call.Result) pipeline.Verdict {
	switch {
	case r.Err == nil:
		return pipeline.VerdictAllowed
	case r.Err.Code == call.PolicyDenied, r.Err.DeniedBy != "":
		return pipeline.VerdictDenied
	default:
		return pipeline.VerdictRejected
	}
}

// A server logs calls, replays them with other policies, and makes the same calls with
// these policies. The verdicts must match.
func TestReplay_matchesRealCalls(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: single goroutine")
	}
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
		counts := &replay.Replay{Evaluate: fresh.Inside().Explain}
		strange, err := audit.Calls(path, 0, func(c *audit.Call) error {
			unknown := counts.Counts.Unknown
			change, err := counts.Compare(t.Context(), c)
			if err != nil || counts.Counts.Unknown > unknown {
				return err
			}
			is := judgement(t, fresh, requests[c.Call], approved[c.Call])
			if differs := ended[c.Call] != is; differs != (change != nil) {
				t.Errorf("%s %s: %s before and %s now, and the change is %v\nthen:\n%s\nnow:\n%s", c.Name, requests[c.Call].Arguments, ended[c.Call], is, change, then, today)
			}
			return nil
		})
		if err != nil || strange > 0 {
			t.Fatalf("%d invalid lines: %v", strange, err)
		}
		n := counts.Counts
		if round%4 == 0 && n.Different > 0 {
			t.Errorf("the same policies decide %d calls differently:\n%s", n.Different, then)
		}
		all.Same, all.Different, all.Unknown = all.Same+n.Same, all.Different+n.Different, all.Unknown+n.Unknown
	}
	t.Logf("%+v", all)
	if all.Same < 50 || all.Different < 50 || all.Unknown < 50 {
		t.Errorf("too few of some verdicts, the test proves nothing: %+v", all)
	}
}
