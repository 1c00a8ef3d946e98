package pipeline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/policylang"
)

// TestCall is the call of a test block.
type TestCall struct {
	Request call.Request
	// Later is added to the time of the call, which scripts and policies see.
	Later time.Duration
	// Mocks replace host calls.
	Mocks *host.Mocks
	// Answers returns the responses to input requests; ok is false if one is missing.
	Answers func(asked []call.AskRequest) (answers map[string]json.RawMessage, ok bool)
	// Decided is called with each policy that denied or allowed the call, or required approval. A
	// policy may decide twice, before and after the arguments are known.
	Decided func(policy string, decision policylang.Outcome)
}

// ExecuteTest runs all legs of the call of a test block, on any catalog. The calls of one test have
// a state store of their own, in memory, that takes no capacity from real calls. No hook fires, no
// limit is charged, and nothing is logged.
func (p *Pipeline) ExecuteTest(ctx context.Context, c *catalog.Catalog, t TestCall) call.Result {
	states := &state.Lazy{Options: state.Options{Now: p.options.Now}, Logger: p.options.Logger}
	defer func() { _ = states.Close() }() // the store is in memory
	for {
		result := p.executeTestLeg(ctx, c, t, states)
		if result.Ask == nil {
			return result
		}
		answers, ok := t.Answers(result.Ask.Requests)
		switch {
		case !ok:
			return call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "no mock responds to an input request of the script"}}
		case ctx.Err() != nil:
			return call.Result{Err: &call.Error{Code: call.ExecutionError, Message: "the test was canceled", Cause: ctx.Err()}}
		}
		t.Request.Resume = &call.Resume{State: result.Ask.State, Responses: answers}
	}
}

func (p *Pipeline) executeTestLeg(ctx context.Context, c *catalog.Catalog, t TestCall, states *state.Lazy) call.Result {
	x := p.newExecution(c, t.Request)
	x.startTime = x.startTime.Add(t.Later)
	x.mocks, x.states, x.decided = t.Mocks, states, t.Decided
	result, err := x.runStages(ctx)
	if err != nil {
		return call.Result{Err: err}
	}
	return result
}

// recordDecision reports the decision of a policy with an index in the rulings of the entry.
func (x *execution) recordDecision(index int, p *catalog.Policy, decision policylang.Decision) {
	x.explainer.record(index, decision)
	if o := decision.Outcome; x.decided != nil && o != policylang.NotApplicable && o != policylang.Unknown {
		x.decided(p.Name, o)
	}
}

// recordStatic returns a function that records decisions made before the arguments are read; nil
// if nothing records them.
func (x *execution) recordStatic() catalog.DecisionFunc {
	if x.decided == nil {
		return x.explainer.recordStatic()
	}
	return func(index int, decision policylang.Decision) {
		x.recordDecision(index, &x.entry.Rules[index], decision)
	}
}
