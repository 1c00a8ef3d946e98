package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// TaskBackend is a [Backend] some of whose tools go on as tasks: "task" works
// until it is finished, "task_asks" asks for a name first. The ids are "task-1",
// "task-2" and so on, which is no example to follow.
type TaskBackend struct {
	*Backend
	// asks are the requests of each tool that becomes a task, by the name of the tool.
	asks map[string][]call.AskRequest

	mu      sync.Mutex
	tasks   []*task
	watcher func(id string)
}

// task is a task and whose it is.
type task struct {
	mcp.Task
	owner string
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// NewTaskBackend returns a backend with those tools beside the ones of b.
func NewTaskBackend(b *Backend, tools ...Tool) *TaskBackend {
	form := call.AskRequest{Key: "name", Method: "elicitation/create", Params: json.RawMessage(nameForm)}
	t := &TaskBackend{Backend: b, asks: map[string][]call.AskRequest{"task": nil, "task_asks": {form}}, watcher: func(string) {}}
	b.Publish(append(tools,
		Tool{ToolInfo: describe("task", noInput), Run: taskOnly},
		Tool{ToolInfo: describe("task_asks", noInput), Run: taskOnly},
	)...)
	return t
}

// taskOnly refuses a client that takes no tasks.
func taskOnly(context.Context, call.Request) call.Result {
	return call.Result{Err: &call.Error{
		Code: call.ExecutionError, Message: "the tool runs as a task", Required: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`),
	}}
}

// Call implements [mcp.Backend].
func (b *TaskBackend) Call(ctx context.Context, r call.Request) (call.Result, *mcp.Task) {
	asks, isTask := b.asks[r.Name]
	if !isTask || r.Kind != call.Tools || !r.Can.Tasks || r.Declined != nil {
		return b.Backend.Call(ctx, r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	made := &task{owner: r.Caller.Agent.AgentID, Task: mcp.Task{
		ID: fmt.Sprintf("task-%d", len(b.tasks)+1), Created: epoch, Updated: epoch, TTL: time.Hour, Poll: time.Second, Requests: asks,
	}}
	b.tasks = append(b.tasks, made)
	started := made.Task
	return call.Result{Revision: b.Info().Revision}, &started
}

// Finish ends a task with a response.
func (b *TaskBackend) Finish(id string, r call.Result) {
	b.change(id, func(t *task) { t.Requests, t.Response = nil, &r })
}

// change changes a task and tells the watcher.
func (b *TaskBackend) change(id string, how func(*task)) {
	b.mu.Lock()
	for _, t := range b.tasks {
		if t.ID == id && t.Response == nil && !t.Cancelled {
			how(t)
			t.Updated = t.Updated.Add(time.Second)
		}
	}
	watcher := b.watcher
	b.mu.Unlock()
	watcher(id)
}

// Task implements [mcp.TaskBackend].
func (b *TaskBackend) Task(_ context.Context, c identity.Caller, id string) (*mcp.Task, *call.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tasks {
		if t.ID == id && t.owner == c.Agent.AgentID {
			found := t.Task
			return &found, nil
		}
	}
	return nil, &call.Error{Code: call.ToolNotFound, Message: "there is no such task"}
}

// UpdateTask implements [mcp.TaskBackend].
func (b *TaskBackend) UpdateTask(ctx context.Context, c identity.Caller, id string, responses map[string]json.RawMessage) *call.Error {
	found, e := b.Task(ctx, c, id)
	if e != nil || found.Requests == nil || !answered(&call.Resume{Responses: responses}, found.Requests) {
		return e
	}
	b.Finish(id, told(&call.Resume{Responses: responses}, found.Requests))
	return nil
}

// CancelTask implements [mcp.TaskBackend].
func (b *TaskBackend) CancelTask(ctx context.Context, c identity.Caller, id string) *call.Error {
	_, e := b.Task(ctx, c, id)
	if e == nil {
		b.change(id, func(t *task) { t.Requests, t.Cancelled, t.Message = nil, true, "cancelled by its client" })
	}
	return e
}

// WatchTasks implements [mcp.TaskBackend], for one watcher.
func (b *TaskBackend) WatchTasks(fn func(id string)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watcher = fn
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watcher = func(string) {}
	}
}
