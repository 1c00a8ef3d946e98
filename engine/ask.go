package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/internal/asking"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/state"
	"github.com/mcpd/mcpd/scripting"
)

// Capabilities are what the client of a call can be asked for.
type Capabilities = host.Capabilities

// Ask says that a call waits for its client: it has ended for now, and holds
// nothing. The same [Request] with a [Resume] goes on with it.
type Ask struct {
	// Requests are what the client is asked, at least one.
	Requests []AskRequest
	// State is sealed: the client can neither read nor change it, and it stands
	// for this call of this principal with these arguments alone, once.
	State string
	// Wait is how long the answers may take.
	Wait time.Duration
}

// AskRequest is one thing that a client is asked: Method is
// elicitation/create, sampling/createMessage or roots/list, and Params are
// MCP's.
type AskRequest = asking.Request

// Resume is what a client answered to an [Ask].
type Resume struct {
	// State is that of the Ask, untrusted.
	State string
	// Responses are results by the keys of the requests. Refused are the keys
	// that the client answered with an error.
	Responses map[string]json.RawMessage
	Refused   map[string]bool
}

// maxAskWait bounds how long a state can be opened, whatever ask_timeout says.
const maxAskWait = state.MaxLife

// resumed runs the body of a call that its client has answered. Of all who come
// with the same state the first runs it; the others get the same result.
func (x *execution) resumed(ctx context.Context) (Result, *CallError) {
	store, err := x.server.states.Open()
	if err != nil {
		return Result{}, failed(ExecutionError, err, "the server cannot keep what calls wait for")
	}
	pause, err := asking.Open(state.NewSealer(store, x.server.options.Now), x.req.Resume.State, state.Want{
		Owner: state.OwnerOf(x.req.Caller.Principal), Definition: x.entry.Key, Arguments: asking.Digest(x.args),
	})
	if err != nil {
		return Result{}, badState(err)
	}
	x.root, x.leg = pause.Root, int32(pause.Leg)+1
	complete, err := pause.Resume(x.req.Resume.Responses, x.req.Resume.Refused)
	if err != nil {
		return Result{}, invalidParams(err.Error())
	}
	if !complete {
		// Another state would be another right to go on from here.
		return asks(pause.Asks, x.req.Resume.State, pause.Expires.Sub(x.server.options.Now()))
	}
	claim, err := store.Claim(ctx, pause.Owner, pause.Nonce, pause.Expires)
	switch {
	case ctx.Err() != nil && err != nil:
		return Result{}, canceled(ctx)
	case err != nil:
		return Result{}, badState(err)
	case !claim.Won:
		return decodeOutcome(claim.Answer)
	}
	return x.first(ctx, store, pause)
}

// first runs the leg that a claim was won for, and ends the claim.
func (x *execution) first(ctx context.Context, store state.Store, pause *asking.Pause) (Result, *CallError) {
	ended := false
	defer func() {
		if !ended {
			// The store is closed, or has lost the claim by itself.
			_ = store.Lose(pause.Nonce)
		}
	}()
	result, failure := x.run(ctx, *pause)
	answer, err := encodeOutcome(result, failure)
	if err == nil {
		err = store.Finish(pause.Nonce, answer)
	}
	ended = err == nil
	if err != nil {
		return Result{}, failed(ExecutionError, err, "the server cannot keep what the call has answered")
	}
	return result, failure
}

// begun is the pause of a call that begins.
func (x *execution) begun() asking.Pause {
	return asking.Pause{Journal: scripting.NewJournal(), State: state.State{Root: x.id, Start: x.began}}
}

// suspended makes what the body asks the result of this leg. A client that sent
// the answers before it was asked is not asked.
func (x *execution) suspended(ctx context.Context, pause asking.Pause, asks []scripting.Ask, took time.Duration) (Result, *CallError) {
	open := make([]state.Ask, len(asks))
	for i, ask := range asks {
		open[i] = state.Ask{Seq: ask.Seq, Payload: ask.Payload}
	}
	pause.Asks, pause.Leg, pause.Used = open, pause.Leg+1, pause.Used+took
	if sent := x.req.Resume; sent != nil && sent.State == "" {
		if complete, err := pause.Resume(sent.Responses, sent.Refused); complete && err == nil {
			return x.run(ctx, pause)
		}
	}
	store, err := x.server.states.Open()
	if err != nil {
		return Result{}, failed(ExecutionError, err, "the server cannot keep what calls wait for")
	}
	pause.Owner, pause.Definition, pause.Arguments = state.OwnerOf(x.req.Caller.Principal), x.entry.Key, asking.Digest(x.args)
	return x.ask(store, &pause, open)
}

// ask is the result of a leg that leaves asks open.
func (x *execution) ask(store state.Store, pause *asking.Pause, open []state.Ask) (Result, *CallError) {
	wait := min(x.entry.AskTimeout, maxAskWait)
	sealed, err := pause.Seal(state.NewSealer(store, x.server.options.Now), open, wait, x.server.options.Now())
	if err != nil {
		return Result{}, badState(err)
	}
	return asks(open, sealed, wait)
}

// asks is the result that asks the client what is open.
func asks(open []state.Ask, sealed string, wait time.Duration) (Result, *CallError) {
	requests, err := asking.Requests(open)
	if err != nil {
		return Result{}, failed(ExecutionError, err, "the tool asks what cannot be read")
	}
	return Result{Ask: &Ask{Requests: requests, State: sealed, Wait: wait}}, nil
}

// badState is the error of a state that nothing can go on from.
func badState(err error) *CallError {
	var full *state.FullError
	if errors.As(err, &full) {
		return &CallError{Code: ExecutionError, Message: fmt.Sprintf("the server has no room for more %s", full.What), RetryAfter: full.Wait, Overloaded: true, cause: err}
	}
	e := invalidParams(asking.Refusal(err))
	e.cause = err
	return e
}

// invalidParams is the error of a request that its client wrote wrongly (2026-07-28
// basic/patterns/mrtr).
func invalidParams(message string) *CallError {
	const code = -32602
	return &CallError{Code: InvalidInput, Message: message, RPC: &RPCError{Code: code, Message: message}}
}
