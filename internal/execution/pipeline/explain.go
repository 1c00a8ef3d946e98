package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

// Explain judges a call as [Pipeline.Execute] does, on a catalog that need not serve, and
// runs no body. Policies in Go are asked. No hook hears of it, no limit counts it, and
// nothing is written down of it. What is sensitive is hidden.
func (p *Pipeline) Explain(ctx context.Context, on *catalog.Catalog, of HypotheticalCall) Explanation {
	of.Request.Caller.Agent.RequestID = cmp.Or(of.Request.Caller.Agent.RequestID, of.ID)
	x := p.newExecution(on, of.Request)
	x.id = cmp.Or(of.ID, x.id)
	if !of.Time.IsZero() {
		x.startTime = of.Time
	}
	if x.entry == nil && of.Request.Kind == call.Resources && of.Unknown&policylang.PartArgs != 0 {
		if x.entry = on.Entry(call.Templates, of.Request.Name); x.entry != nil {
			x.handler = x.entry.Handler
		}
	}
	x.explainer = newExplainer(of, x.entry)
	_, err := x.runStages(ctx)
	e := Explanation{
		Kind: x.kind(), Name: x.name(), Found: x.entry != nil, DecidingRuling: x.explainer.denied, Error: err, DenyByDefault: on.DenyByDefault, Unknown: x.explainer.call.Unknown,
		DeniedByDefault: err != nil && err.DeniedBy == DeniedByDefault,
	}
	x.explainer.summarize(&e, len(x.approval.reasons), err)
	if x.entry != nil {
		x.evaluateRemaining(ctx)
		for _, l := range x.entry.Limits {
			e.Limits = append(e.Limits, l.Name)
		}
	}
	e.Rulings = x.explainer.rulings
	x.redactExplanation(&e)
	return e
}

func (x *execution) redactExplanation(e *Explanation) {
	hide := x.catalog.Sensitive
	if x.entry != nil {
		hide = hide.And(redact.NewText(x.req.Arguments, x.entry.Sensitive)).And(redact.NewText(x.input, x.entry.Sensitive)).
			And(redact.NewText(x.explainer.call.Result, x.entry.SensitiveOutput))
	}
	hidden := func(text string) string {
		return hide.Hide(text, x.secretMatcher())
	}
	for i := range e.Rulings {
		e.Rulings[i].Decision.Reason = hidden(e.Rulings[i].Decision.Reason)
	}
	if e.Error != nil {
		shown := *e.Error
		shown.Message = hidden(shown.Message)
		e.Error = &shown
	}
}

// Case is a call that is judged and not made.
type HypotheticalCall struct {
	Request call.Request
	// Began is when the call is supposed to begin; zero means now.
	Time time.Time
	// ID is that of the call; empty means a new one. Depth and Parent are what policies
	// know of the call that makes it.
	ID     string
	Depth  int
	Parent string
	// Unknown are the parts of the call of which not all is known.
	Unknown policylang.Parts
	// Returned is what the body is supposed to return: the value of a tool, or the reply of
	// anything else. Nil when that is not known.
	Result json.RawMessage
}

// Verdict is what policies say of a call, all of them together.
type Verdict string

const (
	VerdictAllowed       Verdict = "allowed"
	VerdictDenied        Verdict = "denied"
	VerdictNeedsApproval Verdict = "needs_approval"
	// Refused is a call that ends for another reason than a policy: there is nothing of its
	// name, or its arguments do not fit.
	VerdictRejected Verdict = "refused"
	// Undecided depends on what is not known.
	VerdictUnknown Verdict = "unknown"
)

// Explanation is how a call is judged.
type Explanation struct {
	// Kind and Name are those of what is called, and Found says that there is such a thing.
	Kind  call.Kind
	Name  string
	Found bool
	// Verdict says whether the call may be made, and Shown whether what it returns may be
	// seen; Shown is empty when the call is not made, or nobody judges that.
	Verdict, ResultVerdict Verdict
	// Decider is the place in Rulings of the policy that has ended the call, or -1.
	DecidingRuling int
	// Error is what the caller is told when the call ends so; nil when it is made.
	Error *call.Error
	// DenyByDefault says that calls are denied that no policy allows, and ByDefault that
	// this one is.
	DenyByDefault, DeniedByDefault bool
	// Rulings are those of all policies that cover what is called, in the order in which
	// they are asked, those that judge results last.
	Rulings []Ruling
	// Limits are the names of those that the call would be counted against.
	Limits []string
	// Unknown are the parts of the call of which not all is known.
	Unknown policylang.Parts
}

// Ruling is what one policy says of a call.
type Ruling struct {
	// Policy is that of the snapshot which serves, and is not to be changed.
	Policy *catalog.Policy
	// OnResult says that the policy judges what the call returns.
	OnResult bool
	// Asked says that the call came to this policy. Of one that was not asked, Decision is
	// what it would have said.
	Evaluated bool
	// Early says that the policy decided before the arguments were looked at.
	BeforeArguments bool
	Decision        policylang.Decision
}

// Open reports whether a decision depends on what is not known.
func (r Ruling) IsUnknown() bool { return r.Decision.Outcome == policylang.Unknown }

// Decides reports whether the ruling at a place decides: it has ended the call, or holds
// it until the user approves.
func (e *Explanation) Decides(place int) bool {
	r := e.Rulings[place]
	return place == e.DecidingRuling || e.Verdict == VerdictNeedsApproval && r.Evaluated && r.Decision.Outcome == policylang.Consent
}

// verdicts sums up what was heard of a call that has ended with err.
func (h *explainer) summarize(e *Explanation, consents int, err *call.Error) {
	isOpen := func(onResult bool) bool {
		return slices.ContainsFunc(h.rulings, func(r Ruling) bool { return r.OnResult == onResult && r.Evaluated && r.IsUnknown() })
	}
	switch {
	case h.mayRun && isOpen(false):
		e.Verdict = VerdictUnknown
	case h.mayRun && consents > 0:
		e.Verdict = VerdictNeedsApproval
	case h.mayRun:
		e.Verdict = VerdictAllowed
	default:
		e.Verdict = verdictOf(err)
	}
	switch {
	case !h.mayRun || !slices.ContainsFunc(h.rulings, func(r Ruling) bool { return r.OnResult }) && err == nil:
	case err != nil:
		e.ResultVerdict = verdictOf(err)
	case isOpen(true):
		e.ResultVerdict = VerdictUnknown
	default:
		e.ResultVerdict = VerdictAllowed
	}
}

func verdictOf(err *call.Error) Verdict {
	if err != nil && (err.Code == call.PolicyDenied || err.DeniedBy != "") {
		return VerdictDenied
	}
	return VerdictRejected
}

// hearing is what policies have said of a call that is judged and not made. A nil hearing,
// which calls have that are made, hears nothing.
type explainer struct {
	call HypotheticalCall
	// rulings are those of the policies of the entry, and then of those that judge results.
	rulings []Ruling
	// denied is the place of the ruling that has ended the call, or -1.
	denied int
	// let says that the call may be made, and result is what it is supposed to return.
	mayRun bool
	result call.Result
}

// newHearing returns the hearing of a call of an entry, which may be nil.
func newExplainer(of HypotheticalCall, e *catalog.Entry) *explainer {
	h := &explainer{call: of, denied: -1}
	if e == nil {
		return h
	}
	const callers = policylang.PartPrincipal | policylang.PartAgent | policylang.PartSource | policylang.PartParent
	if len(e.From) > 0 && of.Unknown&callers != 0 {
		h.call.Unknown |= policylang.PartArgs // the server tells some of them
	}
	for i := range e.Rules {
		h.rulings = append(h.rulings, Ruling{Policy: &e.Rules[i]})
	}
	for i := range e.ResultRules {
		h.rulings = append(h.rulings, Ruling{Policy: &e.ResultRules[i], OnResult: true})
	}
	return h
}

func (h *explainer) record(place int, decision policylang.Decision) {
	if h == nil {
		return
	}
	r := &h.rulings[place]
	r.Decision, r.Evaluated, r.BeforeArguments = decision, true, false
	if decision.Outcome == policylang.Deny {
		h.denied = place
	}
}

// early returns what hears policies before the arguments are looked at.
func (h *explainer) recordStatic() catalog.DecisionFunc {
	if h == nil {
		return nil
	}
	return func(place int, decision policylang.Decision) {
		h.record(place, decision)
		h.rulings[place].BeforeArguments = true
	}
}

// suppose makes facts those of the call that is supposed.
func (h *explainer) applyTo(facts *policylang.Input) {
	if h == nil {
		return
	}
	facts.Call.Depth, facts.Call.Parent, facts.Unknown = h.call.Depth, h.call.Parent, h.call.Unknown
}

// may reports whether a policy whose decision is open may allow the call. It is asked of
// calls that are judged alone: in all others no decision is.
func (h *explainer) mayAllow(decision policylang.Decision) bool {
	return h != nil && decision.Outcome == policylang.Unknown
}

// supposed judges, in the place of running the body, what the call is supposed to return.
func (x *execution) evaluateHypothetical(ctx context.Context, facts policylang.Input) (call.Result, *call.Error) {
	x.explainer.mayRun = true
	if x.explainer.call.Result == nil {
		facts.Unknown |= policylang.PartResult
		return call.Result{}, x.evaluateResult(ctx, facts, call.Result{})
	}
	result, err := x.hypotheticalResult(x.explainer.call.Result)
	if err != nil {
		return call.Result{}, err
	}
	x.explainer.result = result
	return result, x.evaluateResult(ctx, facts, result)
}

// returning is the result of a body that returns a value.
func (x *execution) hypotheticalResult(value json.RawMessage) (call.Result, *call.Error) {
	if x.entry.Kind != call.Tools {
		return call.Result{Reply: value}, nil
	}
	kind := scripting.Value
	var text string
	if json.Unmarshal(value, &text) == nil {
		kind = scripting.Text
	}
	return x.result(&scripting.Result{Kind: kind, JSON: value})
}

// hearOut asks the policies that were not asked what they would say, now that the call
// has ended.
func (x *execution) evaluateRemaining(ctx context.Context) {
	facts := x.policyInput()
	if x.input == nil && (x.handler == nil && !x.hasArgument() || x.prepareArguments(ctx, facts) != nil) {
		facts.Unknown |= policylang.PartArgs
	}
	facts.Args = x.args
	if x.explainer.call.Result == nil || len(x.entry.ResultRules) == 0 || exposeResult(&facts, x.entry.ResultRules, x.explainer.result) != nil {
		facts.Unknown |= policylang.PartResult
	}
	for i := range x.explainer.rulings {
		r := &x.explainer.rulings[i]
		switch compiled := r.Policy.Compiled; {
		case compiled == nil && !r.Evaluated:
			r.Decision = policylang.Decision{Outcome: policylang.Unknown}
		case compiled == nil:
		case !r.Evaluated, r.BeforeArguments && r.Decision.Outcome == policylang.Unknown && compiled.UsesArgs():
			r.Evaluated, r.BeforeArguments, r.Decision = false, false, compiled.Decide(ctx, facts)
		}
	}
}
