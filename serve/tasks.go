package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
)

// keyTasks names MCP's extension for tasks, as what a client lacks.
const keyTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// asTask starts the call of a tool as a task if the tool and the client take tasks. It
// returns the task, or else why the call is declined; both are nil for a call that runs
// without a task.
func (b *backend) asTask(ctx context.Context, r call.Request) (*mcp.Task, *call.Error) {
	if r.Kind != call.Tools {
		return nil, nil
	}
	mode := b.taskMode(ctx, r)
	if mode.TTL == 0 || !r.Can.Tasks && !mode.Required {
		return nil, nil
	}
	if !r.Can.Tasks {
		return nil, &call.Error{
			Code: call.ExecutionError, Required: json.RawMessage(keyTasks),
			Message: "the tool runs as a task only, and its client does not support tasks",
		}
	}
	if mode.AskFirst && (r.Resume == nil || r.Resume.State == "") {
		return nil, nil
	}
	body, err := json.Marshal(taskBody{Arguments: r.Arguments, Can: r.Can})
	if err != nil {
		return nil, b.taskError(r.Caller, fmt.Errorf("encode a call: %w", err))
	}
	task, err := b.tasks.Start(ctx, r.Caller, tasks.Call{Tool: r.Name, TTL: mode.TTL, Body: body, Resume: r.Resume})
	if err != nil {
		return nil, b.taskError(r.Caller, err)
	}
	return taskOf(task), nil
}

// taskMode returns whether a tool that the caller may see runs as a task.
func (b *backend) taskMode(ctx context.Context, r call.Request) engine.Task {
	if snap := b.engine.Snapshot(); snap != nil {
		if tool := snap.Tool(r.Name); tool == nil || tool.Task().TTL == 0 {
			return engine.Task{}
		}
	}
	if tool := b.engine.Find(ctx, r.Caller, r.Name); tool != nil {
		return tool.Task()
	}
	return engine.Task{}
}

// Task returns a task of the caller.
func (b *backend) Task(_ context.Context, caller identity.Caller, id string) (*mcp.Task, *call.Error) {
	task, err := b.tasks.Task(caller.Principal, id)
	if err != nil {
		return nil, b.taskError(caller, err)
	}
	return taskOf(task), nil
}

// UpdateTask passes on what the client answered.
func (b *backend) UpdateTask(ctx context.Context, caller identity.Caller, id string, responses map[string]json.RawMessage) *call.Error {
	return b.taskError(caller, b.tasks.Update(ctx, caller, id, responses))
}

// CancelTask ends a task of the caller.
func (b *backend) CancelTask(_ context.Context, caller identity.Caller, id string) *call.Error {
	return b.taskError(caller, b.tasks.Cancel(caller.Principal, id))
}

// WatchTasks passes on which tasks change.
func (b *backend) WatchTasks(fn func(id string)) (stop func()) { return b.tasks.Watch(fn) }

// taskError returns what a client is told of an error; nil for none.
func (b *backend) taskError(caller identity.Caller, err error) *call.Error {
	var full *tasks.FullError
	var answer *tasks.AnswerError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tasks.ErrNotFound):
		return &call.Error{Code: call.ToolNotFound, Message: err.Error()}
	case errors.As(err, &answer):
		return &call.Error{Code: call.InvalidInput, Message: answer.Error()}
	case errors.Is(err, tasks.ErrDraining):
		return &call.Error{Code: call.ExecutionError, Message: err.Error(), RetryAfter: time.Second, Overloaded: true}
	case errors.As(err, &full):
		return &call.Error{
			Code: call.ExecutionError, RetryAfter: full.Wait, Overloaded: true,
			Message: fmt.Sprintf("the server has no room for more %s; try again in %s", full.What, full.Wait),
		}
	}
	b.engine.Logger().Error("a task cannot be kept", slog.String("request_id", caller.Agent.RequestID), slog.String("error", err.Error()))
	return &call.Error{Code: call.ExecutionError, Message: "the server cannot keep its tasks"}
}

func taskOf(t tasks.Task) *mcp.Task {
	task := &mcp.Task{
		ID: t.ID, Message: t.Message, Created: t.Created, Updated: t.Updated, TTL: t.TTL, Poll: t.Poll, Cancelled: t.Cancelled, Requests: t.Requests,
	}
	if t.Ended && !t.Cancelled {
		response := endOf(t)
		task.Response = &response
	}
	return task
}

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
