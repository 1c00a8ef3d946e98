package pipeline

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
	"github.com/mcpd/mcpd/scripting"
)

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

// hear takes down what a policy has said.
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
