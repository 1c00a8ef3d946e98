package serve

import (
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

func newTasks(e *engine.Server) *tasks.Tasks {
	return tasks.New(tasks.Options{
		Store:  func() (tasks.Store, error) { return e.Inside().State() },
		Runner: runner{e}, Logger: e.Logger(),
	})
}

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

// taskOf returns a task as the protocol knows it.
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
