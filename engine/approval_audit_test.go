package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// approvalLine is an audit record with an approval.
type approvalLine struct {
	Kind      string                  `json:"kind"`
	Root      string                  `json:"root_id"`
	Leg       int                     `json:"leg"`
	Outcome   string                  `json:"outcome"`
	Message   string                  `json:"error.message"`
	DeniedBy  string                  `json:"denied_by"`
	Principal struct{ ID string }     `json:"principal"`
	Arguments struct{ Digest string } `json:"arguments"`
	Approval  struct {
		State, Why, Asked string
		Policies          []string
	} `json:"approval"`
}

// String returns the line without random values.
func (l approvalLine) String() string {
	a := l.Approval
	return strings.Join(strings.Fields(fmt.Sprintf("%s %d %s %s: %s %s %v", l.Kind, l.Leg, l.Outcome, l.Principal.ID, a.State, a.Why, a.Policies)), " ")
}

// approvalServer is a server with an approval policy, and its audit log.
type approvalServer struct {
	t     *testing.T
	s     *engine.Server
	tools fstest.MapFS
	path  string
}

// newApprovalServer returns a server that audits its calls in a mode.
func newApprovalServer(t *testing.T, mode, text string, pay func(context.Context) (string, error)) *approvalServer {
	t.Helper()
	a := &approvalServer{t: t, tools: files("refund.hcl", text), path: filepath.Join(t.TempDir(), "audit.jsonl")}
	a.s = unloaded(t, engine.Options{Files: engine.Files{Tools: a.tools, Config: files("mcpd.hcl", auditBlock(a.path, "  mode = \""+mode+"\"\n"))}})
	goTool(t, a.s, "pay", pay)
	if _, err := a.s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// reload changes the approval policy.
func (a *approvalServer) reload(text string) {
	a.t.Helper()
	a.tools["refund.hcl"] = files("refund.hcl", text)["refund.hcl"]
	if _, err := a.s.Load(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// closeAndRead closes the server, and returns the lines of refund and the whole log.
func (a *approvalServer) closeAndRead() (lines []approvalLine, text string) {
	a.t.Helper()
	if err := a.s.Close(context.Background()); err != nil {
		a.t.Fatal(err)
	}
	_, text = linesOf(a.t, a.path)
	for _, l := range bytes.Split([]byte(strings.TrimSpace(text)), []byte("\n")) {
		if !bytes.Contains(l, []byte(`"gen_ai.tool.name":"refund"`)) {
			continue
		}
		var one approvalLine
		if err := json.Unmarshal(l, &one); err != nil {
			a.t.Fatal(err)
		}
		lines = append(lines, one)
	}
	return lines, text
}

// unansweredRoots returns the root ids of approvals without a response.
func (a *approvalServer) unansweredRoots() (roots []string) {
	a.t.Helper()
	err := audit.PendingApprovals(a.path, 99, func(l *audit.Line) error {
		var one approvalLine
		err := json.Unmarshal(l.JSON, &one)
		roots = append(roots, one.Root)
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return roots
}

func wantLines(t *testing.T, lines []approvalLine, want ...string) {
	t.Helper()
	var got []string
	for _, l := range lines {
		got = append(got, l.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got)\n%s", diff)
	}
}

func paid(context.Context) (string, error) { return "paid", nil }

// All legs of a call have the same root, principal, arguments digest and question digest. The
// approval is on disk before the tool runs.
func TestApproval_auditStates(t *testing.T) {
	var before string
	var a *approvalServer
	a = newApprovalServer(t, "strict", refund, func(context.Context) (string, error) {
		_, before = linesOf(t, a.path)
		return "paid", nil
	})
	ask := mustAsk(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	approved := refundCall(`{"amount":70}`, respondWith(ask, "accept"))
	wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, &call.Resume{State: ask.State})), "asks approval") // without a response
	wantOutcome(t, a.s.Execute(t.Context(), approved), `"paid"`)
	wantOutcome(t, a.s.Execute(t.Context(), approved), `"paid"`) // the same request again
	// A later response to an answered question has no effect.
	wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, &call.Resume{State: ask.State})), "asks approval")
	if r := a.s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(ask, "perhaps"))); r.Err == nil || r.Err.Code != call.InvalidInput {
		t.Errorf("an invalid response gets %s, %v", r.Value, r.Err)
	}
	lines, text := a.closeAndRead()
	const by = " [large]"
	wantLines(t, lines,
		"outcome 1 input_required anonymous: asked"+by, "outcome 2 input_required anonymous: asked again"+by,
		"intent 2 anonymous: given"+by, "outcome 2 ok anonymous: given"+by, "outcome 2 ok anonymous: given"+by,
		"outcome 2 input_required anonymous: asked again"+by, "outcome 2 INVALID_INPUT anonymous: asked again"+by)
	for _, l := range lines {
		first := lines[0]
		if l.Root != first.Root || l.Root == "" || l.Arguments != first.Arguments || l.Approval.Asked != first.Approval.Asked || !strings.HasPrefix(l.Approval.Asked, "hmac-sha256:") {
			t.Errorf("%+v does not belong to the call %+v", l, first)
		}
	}
	if !strings.Contains(before, `"approval":{"state":"given"`) || strings.Contains(before, `"outcome":"ok"`) {
		t.Errorf("during the call, the log was %s", before)
	}
	if strings.Contains(text, "A refund of") {
		t.Errorf("the log contains the question: %s", text)
	}
	if roots := a.unansweredRoots(); len(roots) > 0 {
		t.Errorf("not answered are %v", roots)
	}
}

// The state is refused, unasked with a reason, or asked without a response.
func TestApproval_auditDeclined(t *testing.T) {
	a := newApprovalServer(t, "relaxed", refund+`
tool "outer" {
  allow {
    call { tools = ["refund"] }
  }
  run = "return await tools.refund({ amount: 70 }).catch(() => 0)"
}
`, paid)
	declined := mustAsk(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	left := mustAsk(t, a.s.Execute(t.Context(), refundCall(`{"amount":80}`, nil)))
	for range 2 { // a repeated request gets the same result
		wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(declined, "decline"))), "POLICY_DENIED: the user did not approve the call")
	}
	mute := refundCall(`{"amount":70}`, nil)
	mute.Can = call.Capabilities{}
	a.s.Execute(t.Context(), mute)
	outer := refundCall("", nil)
	outer.Name, outer.Arguments = "outer", nil
	wantOutcome(t, a.s.Execute(t.Context(), outer), "0")
	a.s.Execute(t.Context(), refundCall(`{"amount":7}`, nil))
	// Another principal or other arguments with the state leave it open.
	other := refundCall(`{"amount":80}`, respondWith(left, "accept"))
	other.Caller.Principal = identity.Principal{ID: "eve", Kind: identity.KindLocal}
	wantOutcome(t, a.s.Execute(t.Context(), other), "INVALID_INPUT: the request state belongs to another caller")
	a.s.Execute(t.Context(), refundCall(`{"amount":90}`, respondWith(left, "accept")))
	lines, text := a.closeAndRead()
	const by = " [large]"
	wantLines(t, lines,
		"outcome 1 input_required anonymous: asked"+by, "outcome 1 input_required anonymous: asked"+by,
		"outcome 2 POLICY_DENIED anonymous: refused"+by, "outcome 2 POLICY_DENIED anonymous: refused"+by,
		"outcome 1 POLICY_DENIED anonymous: unasked client"+by, "outcome 1 POLICY_DENIED anonymous: unasked nested"+by,
		"outcome 1 ok anonymous: []",
		"outcome 0 INVALID_INPUT eve: void foreign"+by, "outcome 0 INVALID_INPUT anonymous: void arguments"+by)
	if lines[0].Approval.Asked == lines[1].Approval.Asked || lines[2].Approval.Asked != lines[0].Approval.Asked || lines[2].Root != lines[0].Root {
		t.Errorf("the response to %+v is %+v", lines[0], lines[2])
	}
	if strings.Contains(text, "A refund of") {
		t.Errorf("the log contains the question: %s", text)
	}
	if diff := cmp.Diff([]string{lines[1].Root}, a.unansweredRoots()); diff != "" {
		t.Errorf("not answered (-want +got)\n%s", diff)
	}
}

// The policies are removed, changed, or have a different reason each time.
func TestApproval_auditChangedPolicy(t *testing.T) {
	tool, policy, _ := strings.Cut(refund, "policy \"large\"")
	policy = "policy \"large\"" + policy
	a := newApprovalServer(t, "relaxed", refund, paid)
	first := mustAsk(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	second := mustAsk(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	third := mustAsk(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, nil)))
	a.reload(tool)
	wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(first, "accept"))), `"paid"`)
	wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(second, "decline"))), "POLICY_DENIED: the user did not approve the call")
	a.reload(tool + strings.Replace(policy, `"A refund of " + string(args.amount)`, `"Call " + call.id`, 1))
	r := refundCall(`{"amount":70}`, respondWith(third, "accept"))
	for range 2 {
		r.Resume = respondWith(mustAsk(t, a.s.Execute(t.Context(), r)), "accept")
	}
	for range 2 { // a repeated request gets the same result
		a.s.Execute(t.Context(), r)
	}
	// A repeated request with the first state is asked the question of the current policy.
	wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":70}`, respondWith(third, "accept"))), "asks approval")
	lines, text := a.closeAndRead()
	const asked, by = "outcome 1 input_required anonymous: asked [large]", " [large]"
	wantLines(t, lines, asked, asked, asked, "outcome 2 ok anonymous: given []", "outcome 2 POLICY_DENIED anonymous: refused []",
		"outcome 2 input_required anonymous: asked"+by, "outcome 3 input_required anonymous: asked"+by, "outcome 4 POLICY_DENIED anonymous: unasked changing"+by,
		"outcome 4 POLICY_DENIED anonymous: unasked changing"+by, "outcome 2 input_required anonymous: []")
	// A denial has a policy name even if the policy is removed.
	if lines[4].DeniedBy != "(approval)" || lines[7].DeniedBy != "large" {
		t.Errorf("denied by %q and %q", lines[4].DeniedBy, lines[7].DeniedBy)
	}
	if lines[3].Approval.Asked != lines[0].Approval.Asked || lines[5].Approval.Asked == lines[2].Approval.Asked || lines[5].Root != lines[2].Root {
		t.Errorf("the questions are %+v", lines)
	}
	if strings.Contains(text, ": Call ") || strings.Contains(text, "A refund of") {
		t.Errorf("the log contains the question: %s", text)
	}
	if roots := a.unansweredRoots(); len(roots) > 0 {
		t.Errorf("not answered are %v", roots)
	}
}

// The log has the state none in each leg.
func TestApproval_auditElicitationOnly(t *testing.T) {
	const body = `
tool "refund" {
  input "amount" { type = number }
  allow {
    ask { elicit = true }
  }
  run = "return (await elicit('sure', { message: 'Sure?', schema: { type: 'object', properties: {} } })).action"
}
policy "large" {
  tools             = ["refund"]
  requires_approval = "args.amount > 50.0"
  reason            = "Money leaves"
}
`
	a := newApprovalServer(t, "relaxed", body, paid)
	for _, amount := range []string{"1", "70"} {
		r := refundCall(`{"amount":`+amount+`}`, nil)
		got := a.s.Execute(t.Context(), r)
		for got.Ask != nil {
			r.Resume = respondWith(got.Ask, "accept")
			got = a.s.Execute(t.Context(), r)
		}
		wantOutcome(t, got, `"accept"`)
	}
	lines, _ := a.closeAndRead()
	wantLines(t, lines, "outcome 1 input_required anonymous: none []", "outcome 2 ok anonymous: none []",
		"outcome 1 input_required anonymous: asked [large]", "outcome 2 input_required anonymous: given [large]", "outcome 3 ok anonymous: given [large]")
}

// Neither an approval nor a denial records its reason.
func TestApproval_auditRedactsReason(t *testing.T) {
	a := newApprovalServer(t, "strict", strings.Replace(refund, `"A refund of " + string(args.amount)`, `"With " + args.token`, 1)+`
tool "outer" {
  allow {
    call { tools = ["refund"] }
  }
  run = "return await tools.refund({ amount: 70, token: 't0ps3cret' })"
}
policy "odd" {
  tools  = ["refund"]
  deny   = "args.amount == 7.0"
  reason = <<CEL
    "Not with " + args.token
  CEL
}
`, paid)
	const arguments = `{"amount":70,"token":"t0ps3cret"}`
	ask := mustAsk(t, a.s.Execute(t.Context(), refundCall(arguments, nil)))
	a.s.Execute(t.Context(), refundCall(arguments, respondWith(ask, "decline")))
	mute := refundCall(arguments, nil)
	mute.Can = call.Capabilities{}
	wantOutcome(t, a.s.Execute(t.Context(), mute), "POLICY_DENIED: the call needs the approval of a user, and the client does not support it: With [sensitive]")
	outer := refundCall("", nil)
	outer.Name, outer.Arguments = "outer", nil
	a.s.Execute(t.Context(), outer)
	wantOutcome(t, a.s.Execute(t.Context(), refundCall(`{"amount":7,"token":"t0ps3cret"}`, nil)), "POLICY_DENIED: Not with [sensitive]")
	lines, text := a.closeAndRead()
	if strings.Contains(text, "t0ps3cret") || len(lines) != 5 || lines[4].Message != "Not with [sensitive]" {
		t.Errorf("the log is %s", text)
	}
}
