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

// Explain evaluates the policies for a call like [Pipeline.Execute], without running its handler,
// on any catalog. Go policies are called. No hook fires, no limit is charged, and nothing is
// audited. Sensitive values are redacted.
func (p *Pipeline) Explain(ctx context.Context, c *catalog.Catalog, hypothetical HypotheticalCall) Explanation {
	hypothetical.Request.Caller.Agent.RequestID = cmp.Or(hypothetical.Request.Caller.Agent.RequestID, hypothetical.ID)
	x := p.newExecution(c, hypothetical.Request)
	x.id = cmp.Or(hypothetical.ID, x.id)
	if !hypothetical.Time.IsZero() {
		x.startTime = hypothetical.Time
	}
	if request := &hypothetical.Request; hypothetical.Unknown&policylang.PartArgs != 0 {
		switch {
		case request.Kind == call.Templates && request.Argument == "":
			x.entry = c.Template(request.Name)
		case request.Kind == call.Resources && x.entry == nil:
			x.entry = c.Entry(call.Templates, request.Name)
		}
		if x.entry != nil && x.entry.Kind == call.Templates && x.handler == nil {
			x.handler = x.entry.Handler
		}
	}
	x.explainer = newExplainer(hypothetical, x.entry)
	_, err := x.runStages(ctx)
	e := Explanation{
		Kind: x.kind(), Name: x.name(), Found: x.entry != nil, DecidingRuling: x.explainer.denied, Error: err, DenyByDefault: c.DenyByDefault, Unknown: x.explainer.call.Unknown,
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

// HypotheticalCall is a call to explain.
type HypotheticalCall struct {
	// Request is the call. Without arguments it may have less than a real one: the address of a template
	// instead of a URI, or the name of a template or prompt without the argument to complete.
	Request call.Request
	// Time is the start time of the call; zero means now.
	Time time.Time
	// ID is the call id; empty means a new one. Depth and Parent describe the enclosing call.
	ID     string
	Depth  int
	Parent string
	// Unknown are the parts of the call that are not fully known.
	Unknown policylang.Parts
	// Result is the hypothetical result of the handler: the value of a tool, or the reply of any
	// other item. Nil if unknown.
	Result json.RawMessage
}

// WithoutArguments returns the call with unknown arguments, if it has none and needs some. A template
// stands for all its resources.
func (h HypotheticalCall) WithoutArguments() HypotheticalCall {
	if h.Request.Arguments == nil && h.Request.Kind != call.Resources {
		h.Unknown |= policylang.PartArgs
	}
	if h.Request.Kind == call.Templates {
		h.Request.Kind = call.Resources
	}
	return h
}

// Verdict is the combined decision of all policies.
type Verdict string

const (
	VerdictAllowed       Verdict = "allowed"
	VerdictDenied        Verdict = "denied"
	VerdictNeedsApproval Verdict = "needs_approval"
	// VerdictRejected is a call that fails for a reason other than policy: the item does not exist,
	// or the arguments are invalid.
	VerdictRejected Verdict = "refused"
	// VerdictUnknown depends on unknown parts of the call.
	VerdictUnknown Verdict = "unknown"
)

// Explanation is the result of explaining a call.
type Explanation struct {
	// Kind and Name identify the item, and Found reports that it exists.
	Kind  call.Kind
	Name  string
	Found bool
	// Verdict says whether the call is allowed, and ResultVerdict whether its result may be
	// returned. ResultVerdict is empty if the call is not made, or has no result policies.
	Verdict, ResultVerdict Verdict
	// DecidingRuling is the index in Rulings of the policy that ended the call, or -1.
	DecidingRuling int
	// Error is the error for the caller; nil if the call is made.
	Error *call.Error
	// DenyByDefault reports that calls are denied unless a policy allows them, and DeniedByDefault
	// that this call is.
	DenyByDefault, DeniedByDefault bool
	// Rulings has all policies that cover the item, in evaluation order; result policies come last.
	Rulings []Ruling
	// Limits are the names of the limits that the call would be charged to.
	Limits []string
	// Unknown are the parts of the call that are not fully known.
	Unknown policylang.Parts
}

// Ruling is the decision of one policy.
type Ruling struct {
	// Policy belongs to the serving snapshot and must not be modified.
	Policy *catalog.Policy
	// OnResult reports that the policy is evaluated on the result.
	OnResult bool
	// Evaluated reports that the call reached this policy. If not, Decision is hypothetical.
	Evaluated bool
	// BeforeArguments reports that the policy decided before the arguments were read.
	BeforeArguments bool
	Decision        policylang.Decision
}

// IsUnknown reports whether the decision depends on unknown parts of the call.
func (r Ruling) IsUnknown() bool { return r.Decision.Outcome == policylang.Unknown }

// Decides reports whether the ruling at an index decides: it ended the call, or requires approval.
func (e *Explanation) Decides(index int) bool {
	r := e.Rulings[index]
	return index == e.DecidingRuling || e.Verdict == VerdictNeedsApproval && r.Evaluated && r.Decision.Outcome == policylang.NeedsApproval
}

// summarize sets the verdicts of a call that ended with err.
func (ex *explainer) summarize(e *Explanation, consents int, err *call.Error) {
	isOpen := func(onResult bool) bool {
		return slices.ContainsFunc(ex.rulings, func(r Ruling) bool { return r.OnResult == onResult && r.Evaluated && r.IsUnknown() })
	}
	switch {
	case ex.mayRun && isOpen(false):
		e.Verdict = VerdictUnknown
	case ex.mayRun && consents > 0:
		e.Verdict = VerdictNeedsApproval
	case ex.mayRun:
		e.Verdict = VerdictAllowed
	default:
		e.Verdict = verdictOf(err)
	}
	switch {
	case !ex.mayRun || !slices.ContainsFunc(ex.rulings, func(r Ruling) bool { return r.OnResult }) && err == nil:
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

// explainer records the decisions of policies for an explained call. A nil explainer, as in a real
// call, records nothing.
type explainer struct {
	call HypotheticalCall
	// rulings has the policies of the entry, followed by its result policies.
	rulings []Ruling
	// denied is the index of the ruling that ended the call, or -1.
	denied int
	// mayRun reports that the call is allowed; result is its hypothetical result.
	mayRun bool
	result call.Result
}

// newExplainer returns the explainer of a call; e may be nil.
func newExplainer(hypothetical HypotheticalCall, e *catalog.Entry) *explainer {
	ex := &explainer{call: hypothetical, denied: -1}
	if e == nil {
		return ex
	}
	const callers = policylang.PartPrincipal | policylang.PartAgent | policylang.PartSource | policylang.PartParent
	if len(e.From) > 0 && hypothetical.Unknown&callers != 0 {
		ex.call.Unknown |= policylang.PartArgs // the server computes some of them
	}
	for i := range e.Rules {
		ex.rulings = append(ex.rulings, Ruling{Policy: &e.Rules[i]})
	}
	for i := range e.ResultRules {
		ex.rulings = append(ex.rulings, Ruling{Policy: &e.ResultRules[i], OnResult: true})
	}
	return ex
}

func (ex *explainer) record(index int, decision policylang.Decision) {
	if ex == nil {
		return
	}
	r := &ex.rulings[index]
	r.Decision, r.Evaluated, r.BeforeArguments = decision, true, false
	if decision.Outcome == policylang.Deny {
		ex.denied = index
	}
}

// recordStatic returns a function that records decisions made before the arguments are read.
func (ex *explainer) recordStatic() catalog.DecisionFunc {
	if ex == nil {
		return nil
	}
	return func(index int, decision policylang.Decision) {
		ex.record(index, decision)
		ex.rulings[index].BeforeArguments = true
	}
}

// applyTo sets the hypothetical parts of the policy input.
func (ex *explainer) applyTo(facts *policylang.Input) {
	if ex == nil {
		return
	}
	facts.Call.Depth, facts.Call.Parent, facts.Unknown = ex.call.Depth, ex.call.Parent, ex.call.Unknown
}

// mayAllow reports whether an unknown decision may allow the call. Real calls have no unknown
// decisions.
func (ex *explainer) mayAllow(decision policylang.Decision) bool {
	return ex != nil && decision.Outcome == policylang.Unknown
}

// evaluateHypothetical evaluates the hypothetical result instead of running the handler.
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

// hypotheticalResult converts a value to the result of a call.
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

// evaluateRemaining evaluates the policies that the call did not reach.
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
