package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/mcp"
)

// TaskBackend is a [Backend] some of whose tools go on as tasks: "task" works
// until it is finished, "task_asks" asks for a name first. The ids are "task-1",
// "task-2" and so on, which is no example to follow.
type TaskBackend struct {
	*Backend

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
	t := &TaskBackend{Backend: b, watcher: func(string) {}}
	form := mcp.AskRequest{Key: "name", Method: "elicitation/create", Params: json.RawMessage(nameForm)}
	b.Publish(append(tools,
		Tool{ToolInfo: describe("task", noInput), Run: t.start()},
		Tool{ToolInfo: describe("task_asks", noInput), Run: t.start(form)},
	)...)
	return t
}

// start begins a task that asks for something.
func (b *TaskBackend) start(asks ...mcp.AskRequest) Run {
	return func(_ context.Context, r mcp.Request) mcp.Response {
		if !r.Can.Tasks {
			return mcp.Response{Err: &mcp.CallError{
				Code: mcp.ExecutionError, Message: "the tool runs as a task", Required: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`),
			}}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		made := &task{owner: r.Caller.Agent.AgentID, Task: mcp.Task{
			ID: fmt.Sprintf("task-%d", len(b.tasks)+1), Created: epoch, Updated: epoch, TTL: time.Hour, Poll: time.Second, Requests: asks,
		}}
		b.tasks = append(b.tasks, made)
		answer := made.Task
		return mcp.Response{Task: &answer}
	}
}

// Finish ends a task with a response.
func (b *TaskBackend) Finish(id string, r mcp.Response) {
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
func (b *TaskBackend) Task(_ context.Context, c identity.Caller, id string) (*mcp.Task, *mcp.CallError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.tasks {
		if t.ID == id && t.owner == c.Agent.AgentID {
			found := t.Task
			return &found, nil
		}
	}
	return nil, &mcp.CallError{Code: mcp.ToolNotFound, Message: "there is no such task"}
}

// UpdateTask implements [mcp.TaskBackend].
func (b *TaskBackend) UpdateTask(ctx context.Context, c identity.Caller, id string, responses map[string]json.RawMessage) *mcp.CallError {
	found, e := b.Task(ctx, c, id)
	if e != nil || found.Requests == nil || !answered(&mcp.Resume{Responses: responses}, found.Requests) {
		return e
	}
	b.Finish(id, told(&mcp.Resume{Responses: responses}, found.Requests))
	return nil
}

// CancelTask implements [mcp.TaskBackend].
func (b *TaskBackend) CancelTask(ctx context.Context, c identity.Caller, id string) *mcp.CallError {
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
