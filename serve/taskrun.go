package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// runner has the engine run the legs of tasks.
type runner struct{ engine *engine.Server }

// taskBody is what a task keeps of its call beside the name of the tool.
type taskBody struct {
	Arguments json.RawMessage   `json:"arguments,omitempty"`
	Can       call.Capabilities `json:"can"`
}

// Run runs one leg as a call of its own, which nobody hears while it runs.
func (r runner) Run(ctx context.Context, leg tasks.Leg) tasks.Outcome {
	var body taskBody
	if err := json.Unmarshal(leg.Body, &body); err != nil {
		return failedTask(&call.Error{Code: call.ExecutionError, Message: "what the server kept of the call cannot be read"})
	}
	result := r.engine.Execute(ctx, call.Request{Name: leg.Tool, Arguments: body.Arguments, Caller: leg.Caller, Can: body.Can, Resume: leg.Resume, Cancelled: cancellation})
	switch {
	case result.Err != nil && ctx.Err() != nil && errors.Is(result.Err, context.Cause(ctx)):
		return tasks.Outcome{Cut: true}
	case result.Ask != nil:
		return tasks.Outcome{Ask: result.Ask}
	}
	return tasks.Outcome{Result: encodeEnd(result), Failed: result.Err != nil}
}

// Unanswered returns the end of a call whose client did not answer.
func (r runner) Unanswered(wait time.Duration) []byte {
	return failedTask(&call.Error{Code: call.Timeout, Message: fmt.Sprintf("the client did not answer within %v", wait)}).Result
}

func failedTask(e *call.Error) tasks.Outcome {
	return tasks.Outcome{Result: encodeEnd(call.Result{Err: e}), Failed: true}
}

// storedEnd is the response of a task as it is kept: what clients are told of it.
type storedEnd struct {
	Content    json.RawMessage `json:"content,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Err        *storedError    `json:"error,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	CallID     string          `json:"call,omitempty"`
}

type storedError struct {
	Code       call.Code       `json:"code"`
	Message    string          `json:"message"`
	Trace      string          `json:"trace,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	Required   json.RawMessage `json:"required,omitempty"`
	RetryAfter time.Duration   `json:"retry,omitempty"`
	Overloaded bool            `json:"overloaded,omitempty"`
	RPC        *storedRPC      `json:"rpc,omitempty"`
}

type storedRPC struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func encodeEnd(r call.Result) []byte {
	stored := storedEnd{Content: r.Content, Structured: r.Structured, Revision: r.Revision, CallID: r.CallID}
	if e := r.Err; e != nil {
		stored.Err = &storedError{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.DetailsJSON(), Schema: e.Schema, Required: e.Required,
			RetryAfter: e.RetryAfter, Overloaded: e.Overloaded, RPC: (*storedRPC)(e.RPC),
		}
	}
	encoded, err := json.Marshal(stored)
	if err != nil {
		// What the engine returns as JSON is JSON.
		return nil
	}
	return encoded
}

// unreadable is told of an end that is not as encodeEnd makes it.
const unreadable = "what the task has come to cannot be read"

// endOf returns the response that a task has ended with. One that the server
// gave up has failed by an error of the protocol.
func endOf(t tasks.Task) call.Result {
	var stored storedEnd
	if len(t.Result) == 0 {
		return call.Result{Err: lostTask(cmp.Or(t.Message, unreadable))}
	}
	if json.Unmarshal(t.Result, &stored) != nil {
		return call.Result{Err: lostTask(unreadable)}
	}
	r := call.Result{Content: stored.Content, Structured: stored.Structured, Revision: stored.Revision, CallID: stored.CallID}
	if e := stored.Err; e != nil {
		r.Err = &call.Error{
			Code: e.Code, Message: e.Message, Trace: e.Trace, Details: e.Details, Schema: e.Schema, Required: e.Required,
			RetryAfter: e.RetryAfter, Overloaded: e.Overloaded, RPC: (*call.RPCError)(e.RPC),
		}
		if e.Code == call.InvalidInput && json.Unmarshal(e.Details, &r.Err.Violations) == nil {
			r.Err.Details = nil
		}
	}
	return r
}

func lostTask(message string) *call.Error {
	const internal = -32603 // JSON-RPC 2.0, section 5.1
	return &call.Error{Code: call.ExecutionError, Message: message, RPC: &call.RPCError{Code: internal, Message: message}}
}
