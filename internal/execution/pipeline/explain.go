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
func (p *Pipeline) Explain(ctx context.Context, on *catalog.Catalog, of Case) Explanation {
	of.Request.Caller.Agent.RequestID = cmp.Or(of.Request.Caller.Agent.RequestID, of.ID)
	x := p.begin(on, of.Request)
	x.id = cmp.Or(of.ID, x.id)
	if !of.Began.IsZero() {
		x.began = of.Began
	}
	if x.entry == nil && of.Request.Kind == call.Resources && of.Unknown&policylang.PartArgs != 0 {
		if x.entry = on.Entry(call.Templates, of.Request.Name); x.entry != nil {
			x.body = x.entry.Body
		}
	}
	x.hearing = newHearing(of, x.entry)
	_, err := x.attempt(ctx)
	e := Explanation{
		Kind: x.kind(), Name: x.name(), Found: x.entry != nil, Decider: x.hearing.denied, Error: err, DenyByDefault: on.DenyByDefault, Unknown: x.hearing.of.Unknown,
		ByDefault: err != nil && err.DeniedBy == ByDefault,
	}
	x.hearing.verdicts(&e, len(x.approval.consents), err)
	if x.entry != nil {
		x.hearOut(ctx)
		for _, l := range x.entry.Limits {
			e.Limits = append(e.Limits, l.Name)
		}
	}
	e.Rulings = x.hearing.rulings
	x.hideIn(&e)
	return e
}

func (x *execution) hideIn(e *Explanation) {
	hide := x.catalog.Sensitive
	if x.entry != nil {
		hide = hide.And(redact.NewText(x.req.Arguments, x.entry.Sensitive)).And(redact.NewText(x.input, x.entry.Sensitive)).
			And(redact.NewText(x.hearing.of.Returned, x.entry.SensitiveOutput))
	}
	hidden := func(text string) string {
		return hide.Hide(text, x.secrets())
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
type Case struct {
	Request call.Request
	// Began is when the call is supposed to begin; zero means now.
	Began time.Time
	// ID is that of the call; empty means a new one. Depth and Parent are what policies
	// know of the call that makes it.
	ID     string
	Depth  int
	Parent string
	// Unknown are the parts of the call of which not all is known.
	Unknown policylang.Parts
	// Returned is what the body is supposed to return: the value of a tool, or the reply of
	// anything else. Nil when that is not known.
	Returned json.RawMessage
}

// Verdict is what policies say of a call, all of them together.
type Verdict string

const (
	Allowed       Verdict = "allowed"
	Denied        Verdict = "denied"
	NeedsApproval Verdict = "needs_approval"
	// Refused is a call that ends for another reason than a policy: there is nothing of its
	// name, or its arguments do not fit.
	Refused Verdict = "refused"
	// Undecided depends on what is not known.
	Undecided Verdict = "unknown"
)

// Explanation is how a call is judged.
type Explanation struct {
	// Kind and Name are those of what is called, and Found says that there is such a thing.
	Kind  call.Kind
	Name  string
	Found bool
	// Verdict says whether the call may be made, and Shown whether what it returns may be
	// seen; Shown is empty when the call is not made, or nobody judges that.
	Verdict, Shown Verdict
	// Decider is the place in Rulings of the policy that has ended the call, or -1.
	Decider int
	// Error is what the caller is told when the call ends so; nil when it is made.
	Error *call.Error
	// DenyByDefault says that calls are denied that no policy allows, and ByDefault that
	// this one is.
	DenyByDefault, ByDefault bool
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
	Asked bool
	// Early says that the policy decided before the arguments were looked at.
	Early    bool
	Decision policylang.Decision
}

// Open reports whether a decision depends on what is not known.
func (r Ruling) Open() bool { return r.Decision.Outcome == policylang.Unknown }

// Decides reports whether the ruling at a place decides: it has ended the call, or holds
// it until the user approves.
func (e *Explanation) Decides(place int) bool {
	r := e.Rulings[place]
	return place == e.Decider || e.Verdict == NeedsApproval && r.Asked && r.Decision.Outcome == policylang.Consent
}

// verdicts sums up what was heard of a call that has ended with err.
func (h *hearing) verdicts(e *Explanation, consents int, err *call.Error) {
	isOpen := func(onResult bool) bool {
		return slices.ContainsFunc(h.rulings, func(r Ruling) bool { return r.OnResult == onResult && r.Asked && r.Open() })
	}
	switch {
	case h.let && isOpen(false):
		e.Verdict = Undecided
	case h.let && consents > 0:
		e.Verdict = NeedsApproval
	case h.let:
		e.Verdict = Allowed
	default:
		e.Verdict = verdictOf(err)
	}
	switch {
	case !h.let || !slices.ContainsFunc(h.rulings, func(r Ruling) bool { return r.OnResult }) && err == nil:
	case err != nil:
		e.Shown = verdictOf(err)
	case isOpen(true):
		e.Shown = Undecided
	default:
		e.Shown = Allowed
	}
}

func verdictOf(err *call.Error) Verdict {
	if err != nil && (err.Code == call.PolicyDenied || err.DeniedBy != "") {
		return Denied
	}
	return Refused
}

// hearing is what policies have said of a call that is judged and not made. A nil hearing,
// which calls have that are made, hears nothing.
type hearing struct {
	of Case
	// rulings are those of the policies of the entry, and then of those that judge results.
	rulings []Ruling
	// denied is the place of the ruling that has ended the call, or -1.
	denied int
	// let says that the call may be made, and result is what it is supposed to return.
	let    bool
	result call.Result
}

// newHearing returns the hearing of a call of an entry, which may be nil.
func newHearing(of Case, e *catalog.Entry) *hearing {
	h := &hearing{of: of, denied: -1}
	if e == nil {
		return h
	}
	const callers = policylang.PartPrincipal | policylang.PartAgent | policylang.PartSource | policylang.PartParent
	if len(e.From) > 0 && of.Unknown&callers != 0 {
		h.of.Unknown |= policylang.PartArgs // the server tells some of them
	}
	for i := range e.Rules {
		h.rulings = append(h.rulings, Ruling{Policy: &e.Rules[i]})
	}
	for i := range e.ResultRules {
		h.rulings = append(h.rulings, Ruling{Policy: &e.ResultRules[i], OnResult: true})
	}
	return h
}

func (h *hearing) hear(place int, decision policylang.Decision) {
	if h == nil {
		return
	}
	r := &h.rulings[place]
	r.Decision, r.Asked, r.Early = decision, true, false
	if decision.Outcome == policylang.Deny {
		h.denied = place
	}
}

// early returns what hears policies before the arguments are looked at.
func (h *hearing) early() catalog.Hearer {
	if h == nil {
		return nil
	}
	return func(place int, decision policylang.Decision) {
		h.hear(place, decision)
		h.rulings[place].Early = true
	}
}

// suppose makes facts those of the call that is supposed.
func (h *hearing) suppose(facts *policylang.Input) {
	if h == nil {
		return
	}
	facts.Call.Depth, facts.Call.Parent, facts.Unknown = h.of.Depth, h.of.Parent, h.of.Unknown
}

// may reports whether a policy whose decision is open may allow the call. It is asked of
// calls that are judged alone: in all others no decision is.
func (h *hearing) may(decision policylang.Decision) bool {
	return h != nil && decision.Outcome == policylang.Unknown
}

// supposed judges, in the place of running the body, what the call is supposed to return.
func (x *execution) supposed(ctx context.Context, facts policylang.Input) (call.Result, *call.Error) {
	x.hearing.let = true
	if x.hearing.of.Returned == nil {
		facts.Unknown |= policylang.PartResult
		return call.Result{}, x.judge(ctx, facts, call.Result{})
	}
	result, err := x.returning(x.hearing.of.Returned)
	if err != nil {
		return call.Result{}, err
	}
	x.hearing.result = result
	return result, x.judge(ctx, facts, result)
}

// returning is the result of a body that returns a value.
func (x *execution) returning(value json.RawMessage) (call.Result, *call.Error) {
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
func (x *execution) hearOut(ctx context.Context) {
	facts := x.facts()
	if x.input == nil && (x.body == nil && !x.known() || x.fillIn(ctx, facts) != nil) {
		facts.Unknown |= policylang.PartArgs
	}
	facts.Args = x.args
	if x.hearing.of.Returned == nil || len(x.entry.ResultRules) == 0 || show(&facts, x.entry.ResultRules, x.hearing.result) != nil {
		facts.Unknown |= policylang.PartResult
	}
	for i := range x.hearing.rulings {
		r := &x.hearing.rulings[i]
		switch compiled := r.Policy.Compiled; {
		case compiled == nil && !r.Asked:
			r.Decision = policylang.Decision{Outcome: policylang.Unknown}
		case compiled == nil:
		case !r.Asked, r.Early && r.Decision.Outcome == policylang.Unknown && compiled.UsesArgs():
			r.Asked, r.Early, r.Decision = false, false, compiled.Decide(ctx, facts)
		}
	}
}
