// Package tasks keeps calls going while their clients do not wait.
//
// [Tasks.Start] answers at once with a [Task], and has a [Runner] run the first
// leg of the call in the background. A leg ends the call, or asks: then nothing
// runs until the client has answered everything by [Tasks.Update], and the next
// leg goes on with what it answered. All that is known of a task is in a
// [Store], so that one that waits for its client outlives the process; one that
// was running does not, and has failed. What a call is and how it ends are bytes
// here, which the Runner alone reads.
//
// A task is its principal's: for everyone else there is none.
package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/execution/suspend"
)

// Store is what tasks need of a state store.
type Store interface {
	CreateTask(state.Task) (state.Task, error)
	Task(state.Owner, string) (state.Task, error)
	UpdateTask(state.Owner, string, func(*state.Task) error) (state.Task, error)
}

// Runner runs calls. It is safe for concurrent use.
type Runner interface {
	// Run runs one leg of a call, and ends soon after ctx does.
	Run(ctx context.Context, leg Leg) Outcome
	// Unanswered returns the result of a call whose client was asked and did
	// not answer in time.
	Unanswered(wait time.Duration) []byte
}

// Call is a call that is to go on as a task.
type Call struct {
	Tool string
	// TTL is how long the task is kept from now on. It must be positive.
	TTL time.Duration
	// Body is the rest of what the Runner wants to know of the call, as JSON.
	Body json.RawMessage
	// Resume is what the client answered before the call became a task; nil
	// when it was asked nothing.
	Resume *call.Resume
}

// Leg is a part of a call that runs without waiting for the client.
type Leg struct {
	// Caller is who started the task, or who answered what it asked.
	Caller identity.Caller
	Tool   string
	Body   json.RawMessage
	// Resume is nil in the first leg.
	Resume *call.Resume
}

// Outcome is how a leg ended: the call waits for Ask, was Cut off, or has ended
// with Result.
type Outcome struct {
	Ask *call.Ask
	// Cut says that the leg was ended by its context, with nothing to tell.
	Cut bool
	// Result is how the call ended; Failed says that it did with an error.
	Result []byte
	Failed bool
}

// Task is a task as its client sees it: it is at work unless it has Requests or
// has ended.
type Task struct {
	ID, Message      string
	Created, Updated time.Time
	TTL, Poll        time.Duration
	// Requests are what the client has not answered yet. No key stands for two
	// requests of a task.
	Requests []suspend.Request
	// Cancelled says that the client ended the task.
	Cancelled bool
	// Ended says that the task changes no more. Result is how its call ended;
	// nil when the server gave it up, for the reason in Message.
	Ended  bool
	Result []byte
}

// Errors of what clients want. Errors of the store beside them may hold what a
// disk said.
var (
	// ErrNotFound is the error of a task that does not exist, has expired or
	// belongs to somebody else.
	ErrNotFound = state.ErrNotFound
	// ErrDraining is the error of what would run while the server shuts down.
	ErrDraining = errors.New("the server is shutting down")
)

// FullError says that the store has no room for more.
type FullError = state.FullError

// poll is how often clients are told to ask how a task is.
const poll = time.Second

// Options are what tasks are made of. All but Store and Runner may be left out.
type Options struct {
	// Store opens the store, or returns the one that is open.
	Store  func() (Store, error)
	Runner Runner
	// Logger gets what the operator should know; nil drops it.
	Logger *slog.Logger
	// Now tells the time; nil means [time.Now].
	Now func() time.Time
}

// Tasks are the tasks of a server. They are safe for concurrent use.
// [Tasks.Close] must come last.
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
	waits map[string]*time.Timer
	// unsaved are tasks whose end could not be stored, with its reason.
	unsaved map[string]string
	closed  bool

	watching sync.Mutex
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
		options: o, legs: map[string]context.CancelCauseFunc{}, waits: map[string]*time.Timer{},
		unsaved: map[string]string{}, watchers: map[int]func(string){},
	}
}

// Start has a call go on as a task, which does not end with ctx. The error may
// be [ErrDraining] or a [*FullError].
func (t *Tasks) Start(ctx context.Context, caller identity.Caller, c Call) (Task, error) {
	store, err := t.options.Store()
	if err != nil {
		return Task{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running.Draining() {
		return Task{}, ErrDraining
	}
	leg := Leg{Caller: caller, Tool: c.Tool, Body: c.Body, Resume: c.Resume}
	if err := t.mayBegin(&leg); err != nil {
		return Task{}, err
	}
	made, err := store.CreateTask(state.Task{Owner: state.OwnerOf(caller.Principal), Tool: c.Tool, TTL: c.TTL, Poll: poll})
	if err != nil {
		return Task{}, err
	}
	t.begin(ctx, store, made, leg, nil)
	return seen(made)
}

// Watch calls fn with the id of each task that has changed, until stop is
// called. fn must not block.
func (t *Tasks) Watch(fn func(id string)) (stop func()) {
	t.watching.Lock()
	defer t.watching.Unlock()
	id := t.nextID
	t.nextID++
	t.watchers[id] = fn
	return func() {
		t.watching.Lock()
		defer t.watching.Unlock()
		delete(t.watchers, id)
	}
}

// tell tells the watchers of a change. mu is not held.
func (t *Tasks) tell(id string) {
	t.watching.Lock()
	defer t.watching.Unlock()
	for _, fn := range t.watchers {
		fn(id)
	}
}

// seen returns what a client sees of a stored task.
func seen(s state.Task) (Task, error) {
	requests, err := openOf(s)
	return Task{
		ID: s.ID, Message: s.Message, Created: s.Created, Updated: s.Updated, TTL: s.TTL, Poll: s.Poll, Requests: requests,
		Cancelled: s.Status == state.Cancelled, Ended: s.Status.Ended(), Result: s.Result,
	}, err
}
