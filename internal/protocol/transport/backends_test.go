package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// taskBackend is a backend with two more tools that run as tasks: "task" works
// until finish, "task_asks" first asks for a name. The ids are "task-1",
// "task-2" and so on; real ids must not be guessable.
type taskBackend struct {
	*mcptest.Backend
	// ask is the tool that asks for a name.
	ask mcptest.Run

	mu      sync.Mutex
	tasks   []*task
	watcher func(id string)
}

// task is a task with its caller.
type task struct {
	mcp.Task
	owner string
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTaskBackend(b *mcptest.Backend) *taskBackend {
	b.Publish(append(mcptest.Tools(), tool("task", taskOnly), tool("task_asks", taskOnly))...)
	return &taskBackend{Backend: b, ask: mcptest.InputTools()[0].Run, watcher: func(string) {}}
}

// tool returns a tool without arguments.
func tool(name string, run mcptest.Run) mcptest.Tool {
	info := mcptest.Tools()[0].ToolInfo
	info.Name, info.Description = name, "The tool "+name+"."
	return mcptest.Tool{ToolInfo: info, Run: run}
}

// taskOnly rejects a client without task support.
func taskOnly(context.Context, call.Request) call.Result {
	return call.Result{Err: &call.Error{
		Code: call.ExecutionError, Message: "the tool runs as a task", Required: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`),
	}}
}

// Call implements [mcp.Backend].
func (b *taskBackend) Call(ctx context.Context, r call.Request) (call.Result, *mcp.Task) {
	if r.Name != "task" && r.Name != "task_asks" || r.Kind != call.Tools || !r.Can.Tasks || r.RejectErr != nil {
		return b.Backend.Call(ctx, r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	made := &task{owner: r.Caller.Agent.AgentID, Task: mcp.Task{
		ID: fmt.Sprintf("task-%d", len(b.tasks)+1), Created: epoch, Updated: epoch, TTL: time.Hour, Poll: time.Second,
	}}
	if r.Name == "task_asks" {
		made.Requests = b.ask(ctx, call.Request{Name: "ask"}).Ask.Requests
	}
	b.tasks = append(b.tasks, made)
	started := made.Task
	return call.Result{Revision: b.Info().Revision}, &started
}

// finish ends a task with a response.
func (b *taskBackend) finish(id string, r call.Result) {
	b.change(id, func(t *task) { t.Requests, t.Response = nil, &r })
}

// change changes a task and notifies the watcher.
func (b *taskBackend) change(id string, how func(*task)) {
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
func (b *taskBackend) Task(_ context.Context, c identity.Caller, id string) (*mcp.Task, *call.Error) {
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
func (b *taskBackend) UpdateTask(ctx context.Context, c identity.Caller, id string, responses map[string]json.RawMessage) *call.Error {
	found, e := b.Task(ctx, c, id)
	if e != nil || found.Requests == nil {
		return e
	}
	if r := b.ask(ctx, call.Request{Name: "ask", Resume: &call.Resume{State: "state of ask", Responses: responses}}); r.Ask == nil {
		b.finish(id, r)
	}
	return nil
}

// CancelTask implements [mcp.TaskBackend].
func (b *taskBackend) CancelTask(ctx context.Context, c identity.Caller, id string) *call.Error {
	_, e := b.Task(ctx, c, id)
	if e == nil {
		b.change(id, func(t *task) { t.Requests, t.Cancelled, t.Message = nil, true, "cancelled by its client" })
	}
	return e
}

// WatchTasks implements [mcp.TaskBackend], for one watcher.
func (b *taskBackend) WatchTasks(fn func(id string)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watcher = fn
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watcher = func(string) {}
	}
}

// FollowTask implements [mcp.TaskBackend]; there are no other servers.
func (*taskBackend) FollowTask(context.Context, identity.Caller, string) (leave func()) {
	return func() {}
}

// One block of each type, and the two types that older revisions lack.
const (
	soundBlock = `{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"priority":1}}`
	linkBlock  = `{"type":"resource_link","uri":"file:///a.csv","name":"a.csv","description":"All rows."}`
	allBlocks  = `[{"type":"text","text":"audio"},{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},` +
		`{"type":"resource","resource":{"uri":"test://readme","text":"Hello."}},` + soundBlock + `,` + linkBlock + `]`
)

// blockTools returns tools that return a block of each type, and one that asks
// to describe a sound.
func blockTools() []mcptest.Tool {
	sound := call.AskRequest{Key: "sound", Method: "sampling/createMessage", Params: json.RawMessage(
		`{"messages":[{"role":"user","content":` + soundBlock + `},{"role":"user","content":{"type":"text","text":"What is it?"}}],"maxTokens":100}`)}
	all := func(context.Context, call.Request) call.Result {
		return call.Result{Value: json.RawMessage("null"), Rich: true, Content: json.RawMessage(allBlocks)}
	}
	return []mcptest.Tool{tool("blocks", all), tool("listen", mcptest.Asks(sound))}
}

// blockPrompt returns a prompt with a sound and a link.
func blockPrompt(t *testing.T) mcptest.Item {
	entry, err := mcp.NewEntry(mcp.EntryInfo{Kind: call.Prompts, Address: "blocks"})
	if err != nil {
		t.Fatal(err)
	}
	return mcptest.Item{Kind: call.Prompts, Entry: entry, Run: func(context.Context, call.Request) call.Result {
		return call.Result{Reply: json.RawMessage(
			`{"description":"All.","messages":[{"role":"user","content":` + soundBlock + `},{"role":"assistant","content":` + linkBlock + `}]}`)}
	}}
}
