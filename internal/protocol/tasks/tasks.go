// Package tasks runs calls as tasks, for clients that do not wait for the
// result.
//
// [Tasks.Start] returns a task at once, and runs the first leg of the call in
// the background. A leg is one execution of the call: it ends the call or asks
// for client input. In the second case nothing runs until the client has
// answered all requests with [Tasks.UpdateTask]; then the next leg continues
// with the responses. The complete state of a task is in a [Store], so that a
// suspended task survives the process; a running task does not survive, and has
// failed.
//
// A task belongs to its principal; for all others it does not exist.
//
// Several servers may share a store. Each runs the legs that it has started, and
// any of them answers, continues or cancels a task.
//
// Start reading at [Tasks.Start]: run.go runs legs, methods.go has the
// operations of clients, follow.go the changes by other servers, and encode.go
// the stored form.
package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// Store is the part of a state store that tasks use.
type Store interface {
	CreateTask(state.Task) (state.Task, error)
	Task(state.Owner, string) (state.Task, error)
	UpdateTask(state.Owner, string, func(*state.Task) error) (state.Task, error)
}

// Options configure [Tasks]. Only Store and Run are required.
type Options struct {
	// Store opens the store, or returns the open one.
	Store func() (Store, error)
	// Run runs one leg of a call, and returns soon after ctx ends. It is called
	// concurrently.
	Run func(ctx context.Context, r call.Request) call.Result
	// Logger receives log records; nil discards them.
	Logger *slog.Logger
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Tasks holds the tasks of a server. It has the task methods of an
// [mcp.TaskBackend]. It is safe for concurrent use. [Tasks.Close] must be the
// last call.
type Tasks struct {
	// fixed at creation
	options Options

	// running counts running legs.
	running workqueue.Calls

	// turns order the operations on one task, so that the store, its leg and its
	// timer stay consistent. The turn of a task is held while its store is called;
	// mu is not, so that a slow store delays no other task. Turns are taken before
	// mu.
	turns turns

	// mu guards the fields below.
	mu sync.Mutex
	// legs are the running legs, by task. A leg stays until its outcome is stored.
	legs map[string]*leg
	// bytes is the total size of their calls.
	bytes int
	// timers end suspended tasks at their deadline.
	timers map[string]*time.Timer
	// unsaved holds failed tasks whose end could not be stored, and saving tries again.
	unsaved map[string]unsaved
	saving  *time.Timer
	// stopping ends legs that start later; closed ends timers, and background counts
	// those that have fired.
	stopping, closed bool
	background       sync.WaitGroup

	watchMu  sync.Mutex
	watchers map[int]func(id string)
	nextID   int

	followers *followers
}

// unsaved is a failed task whose end is still to be stored. task is as it was when
// its leg started.
type unsaved struct {
	store  Store
	task   state.Task
	reason string
}

// New returns the tasks of a store.
func New(o Options) *Tasks {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tasks{
		options: o, turns: turns{byTask: map[string]*turn{}}, legs: map[string]*leg{}, timers: map[string]*time.Timer{},
		unsaved: map[string]unsaved{}, watchers: map[int]func(string){}, followers: newFollowers(),
	}
}

// poll is the poll interval for clients.
const poll = time.Second

// Start runs the call of a tool as a task, which is stored for ttl and does not
// end with ctx.
func (t *Tasks) Start(ctx context.Context, r call.Request, ttl time.Duration) (*mcp.Task, *call.Error) {
	task, err := t.start(ctx, r, ttl)
	return task, t.failure(r.Caller, err)
}

func (t *Tasks) start(ctx context.Context, r call.Request, ttl time.Duration) (*mcp.Task, error) {
	store, err := t.options.Store()
	if err != nil {
		return nil, err
	}
	first := call.Request{Name: r.Name, Can: r.Can, Caller: r.Caller, Resume: r.Resume}
	if len(r.Arguments) > 0 {
		// A copy, so that the inbound message can be freed.
		if first.Arguments, err = json.Marshal(r.Arguments); err != nil {
			return nil, fmt.Errorf("encode a call: %w", err)
		}
	}
	if err := t.reserve(&first); err != nil {
		return nil, err
	}
	created, err := store.CreateTask(state.Task{Owner: state.OwnerOf(r.Caller.Principal), Tool: r.Name, TTL: ttl, Poll: poll})
	if err != nil {
		t.release(&first)
		return nil, err
	}
	t.runLeg(ctx, &leg{store: store, task: created, call: first})
	return toTask(created)
}

// WatchTasks calls fn with the id of each task that this server changes, and of
// each task that [Tasks.FollowTask] follows, whoever changes it, until stop is
// called. fn must not block.
func (t *Tasks) WatchTasks(fn func(id string)) (stop func()) {
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	id := t.nextID
	t.nextID++
	t.watchers[id] = fn
	return func() {
		t.watchMu.Lock()
		defer t.watchMu.Unlock()
		delete(t.watchers, id)
	}
}

// notify tells the watchers that this server has changed a task. The caller must
// not hold mu.
func (t *Tasks) notify(id string) {
	if !t.followers.has(id) { // its follower calls the watchers
		t.callWatchers(id)
	}
}

func (t *Tasks) callWatchers(id string) {
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	for _, fn := range t.watchers {
		fn(id)
	}
}

// errDraining is the error of new work during a shutdown.
var errDraining = errors.New("the server is shutting down")

// answerError is the error of an invalid input response.
type answerError struct{ error }

// failure returns the error for a client; nil for none. The error of a store
// may contain paths and is only logged.
func (t *Tasks) failure(caller identity.Caller, err error) *call.Error {
	var full *state.FullError
	var answer answerError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, state.ErrNotFound):
		return &call.Error{Code: call.ToolNotFound, Message: err.Error()}
	case errors.As(err, &answer):
		return &call.Error{Code: call.InvalidInput, Message: answer.Error()}
	case errors.Is(err, errDraining):
		return &call.Error{Code: call.ExecutionError, Message: err.Error(), RetryAfter: time.Second, Overloaded: true}
	case errors.As(err, &full):
		return &call.Error{
			Code: call.ExecutionError, RetryAfter: full.Wait, Overloaded: true,
			Message: fmt.Sprintf("the server has no room for more %s; try again in %s", full.What, full.Wait),
		}
	}
	t.options.Logger.Error("access task", slog.String("request_id", caller.Agent.RequestID), slog.String("error", err.Error()))
	return &call.Error{Code: call.ExecutionError, Message: "the server cannot store its tasks"}
}
