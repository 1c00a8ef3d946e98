package pipeline

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/content"
	"github.com/mcpd/mcpd/policylang"
)

// What becomes of a call that code plans.
const (
	planRan     = "ran"     // it only reads, and was made
	planDry     = "dry_run" // its body for rehearsals has answered
	planPlanned = "planned" // it was judged and not made
)

// plan is what becomes of a call that code plans.
type plan struct {
	how      string
	approval bool
	// reading says that the call is one of a body that is said to read and is run as in
	// any call: what it returns may be kept, and must not be made of answers that are none.
	reading bool
}

// within returns the plan of what the body of a planned call calls, nil of one that is
// made.
func (p *plan) within() *plan {
	if p == nil {
		return nil
	}
	return &plan{reading: p.how == planRan}
}

// runs reports whether a call is made as any other: one that only reads, and that no user
// has to approve first.
func (p *plan) runs(x *execution) bool {
	p.approval = len(x.consents) > 0
	if x.entry.Facts.ReadOnly && !p.approval {
		p.how = planRan
		return true
	}
	return false
}

// rehearsed reports whether the call was planned and not made.
func (x *execution) rehearsed() bool {
	return x.plan != nil && x.plan.how != planRan && x.plan.how != ""
}

// planned answers for a call that is not made. It counts for no limit.
func (x *execution) planned(ctx context.Context, _ policylang.Input) (call.Result, *call.Error) {
	if x.plan.reading {
		return call.Result{}, failed(call.ExecutionError, nil, "in a plan, a tool that reads cannot call %q, which does more than that", x.entry.Name)
	}
	x.plan.how, x.consents = planPlanned, nil
	if x.entry.DryRun == nil {
		return call.Result{Value: orNull(nil), Content: content.None()}, nil
	}
	x.plan.how, x.body = planDry, x.entry.DryRun
	return x.runBody(ctx)
}

// survey is what else the caller of a call may call.
type survey struct{ x *execution }

// Tools returns the entries of the tools that code may call for the caller.
func (s survey) Tools(ctx context.Context) []*catalog.Entry {
	facts := policylang.Input{
		Caller: s.x.req.Caller, Now: s.x.began,
		Call: policylang.CallFacts{Via: string(call.ViaCode), Depth: s.x.place.Depth() + 1, Parent: s.x.policyName()},
	}
	entries, hidden := s.x.catalog.Entries[call.Tools], s.x.catalog.Hidden(ctx, call.Tools, facts)
	seen := make([]*catalog.Entry, 0, len(entries))
	for i, e := range entries {
		if (hidden == nil || hidden[i] == 0) && !e.Surveys && !e.Alias {
			seen = append(seen, e)
		}
	}
	return seen
}

// Catalog returns that which serves the call.
func (s survey) Catalog() *catalog.Catalog { return s.x.catalog }

// Call makes a call of a tool for the body (see [catalog.Survey]).
func (s survey) Call(ctx context.Context, r catalog.Request) (catalog.Reply, error) {
	if s.x.mocks != nil {
		return s.mocked(r)
	}
	request := call.Request{Name: r.Name, Arguments: r.Arguments, Caller: s.x.req.Caller, Via: call.ViaCode, Can: s.x.req.Can, Resume: r.Resume}
	var p *plan
	if r.Rehearse {
		p = &plan{}
	}
	result, err := s.x.nest(ctx, request, p, r.Approved)
	if err != nil {
		return catalog.Reply{}, err
	}
	reply := catalog.Reply{Value: valueOf(result), Ask: result.Ask}
	if p != nil {
		reply.How, reply.Shown, reply.Approval = p.how, s.shown(r), p.approval
	}
	return reply, nil
}

// shown returns the arguments of a call, which are valid, for others to see.
func (s survey) shown(r catalog.Request) json.RawMessage {
	if entry := s.x.catalog.Entry(call.Tools, r.Name); entry != nil {
		return redact.Arguments(r.Arguments, true, entry.Sensitive, entry.InputNames)
	}
	return nil
}

// mocked answers for a tool in a test: neither its body nor its rules have a part in that.
func (s survey) mocked(r catalog.Request) (catalog.Reply, error) {
	reply := catalog.Reply{Shown: s.shown(r)}
	entry := s.x.catalog.Entry(call.Tools, r.Name)
	switch {
	case !r.Rehearse:
	case entry == nil || entry.Facts.ReadOnly:
		reply.How = planRan
	case entry.DryRun == nil:
		reply.Value, reply.How = orNull(nil), planPlanned
		return reply, nil
	default:
		reply.How = planDry
	}
	var err error
	reply.Value, err = s.x.mocks.CallTool(r.Name)
	return reply, err
}
