// Package tasks keeps calls going while their clients do not wait.
//
// [Tasks.Start] answers at once with a task, and runs the first leg of the call in the
// background. A leg ends the call, or asks: then nothing runs until the client has answered
// everything by [Tasks.UpdateTask], and the next leg goes on with the answers. All that is
// known of a task is in a [Store], so that a task that waits for its client outlives the
// process; a task that was running does not, and has failed.
//
// A task belongs to its principal: for everyone else there is none.
//
// Start at [Tasks.Start]: run.go runs legs, methods.go has what clients do with a task, and
// encode.go has what the store keeps.
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

// Store is what tasks need of a state store.
type Store interface {
	CreateTask(state.Task) (state.Task, error)
	Task(state.Owner, string) (state.Task, error)
	UpdateTask(state.Owner, string, func(*state.Task) error) (state.Task, error)
}

// Options are what tasks are made of. All but Store and Run may be left out.
type Options struct {
	// Store opens the store, or returns the one that is open.
	Store func() (Store, error)
	// Run runs one leg of a call, and returns soon after ctx has ended. It is called from
	// many goroutines.
	Run func(ctx context.Context, r call.Request) call.Result
	// Logger gets what the operator should know; nil drops it.
	Logger *slog.Logger
	// Now tells the time; nil means [time.Now].
	Now func() time.Time
}

// Tasks are the tasks of a server, with the methods of an [mcp.TaskBackend] that are about
// tasks. They are safe for concurrent use. [Tasks.Close] must come last.
type Tasks struct {
	// fixed at creation
	options Options

	// running counts legs.
	running workqueue.Calls

	// mu is held while a task changes, so that what is in the store, legs and
	// waits agree.
	mu sync.Mutex
	// legs end the leg that runs of a task.
	legs map[string]context.CancelCauseFunc
	// bytes is what these legs hold of their calls.
	bytes int
	// waits fire when a task has waited for too long.
	timers map[string]*time.Timer
	// unsaved are tasks whose end could not be stored, with its reason.
	unsaved map[string]string
	closed  bool

	watchMu  sync.Mutex
	watchers map[int]func(id string)
	nextID   int
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
		options: o, legs: map[string]context.CancelCauseFunc{}, timers: map[string]*time.Timer{},
		unsaved: map[string]string{}, watchers: map[int]func(string){},
	}
}

// poll is how often clients are told to ask how a task is.
const poll = time.Second

// Start has the call of a tool go on as a task, which is kept for ttl and does not end with
// ctx.
func (t *Tasks) Start(ctx context.Context, r call.Request, ttl time.Duration) (*mcp.Task, *call.Error) {
	task, err := t.start(ctx, r, ttl)
	return task, t.failure(r.Caller, err)
}

func (t *Tasks) start(ctx context.Context, r call.Request, ttl time.Duration) (*mcp.Task, error) {
	store, err := t.options.Store()
	if err != nil {
		return nil, err
	}
	leg := call.Request{Name: r.Name, Can: r.Can, Caller: r.Caller, Resume: r.Resume}
	if len(r.Arguments) > 0 {
		// A copy: the message that the arguments came in is not kept.
		if leg.Arguments, err = json.Marshal(r.Arguments); err != nil {
			return nil, fmt.Errorf("encode a call: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running.Draining() {
		return nil, errDraining
	}
	if err := t.checkRoom(&leg); err != nil {
		return nil, err
	}
	made, err := store.CreateTask(state.Task{Owner: state.OwnerOf(r.Caller.Principal), Tool: r.Name, TTL: ttl, Poll: poll})
	if err != nil {
		return nil, err
	}
	t.runLeg(ctx, store, made, leg, nil)
	return toTask(made)
}

// WatchTasks calls fn with the id of each task that has changed, until stop is
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

// tell tells the watchers of a change. mu is not held.
func (t *Tasks) notify(id string) {
	t.watchMu.Lock()
	defer t.watchMu.Unlock()
	for _, fn := range t.watchers {
		fn(id)
	}
}

// errDraining is the error of what would run while the server shuts down.
var errDraining = errors.New("the server is shutting down")

// answerError says what is wrong with an answer of the client.
type answerError struct{ error }

// failure returns what a client is told of an error; nil for none. The error of a store may
// hold what a disk said: it is for the operator alone.
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
	t.options.Logger.Error("a task cannot be kept", slog.String("request_id", caller.Agent.RequestID), slog.String("error", err.Error()))
	return &call.Error{Code: call.ExecutionError, Message: "the server cannot keep its tasks"}
}
