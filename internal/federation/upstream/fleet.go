package upstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Fleet keeps connections to servers, each by itself: one that is dead, or hangs, holds
// up no other. It is safe for concurrent use.
type Fleet struct {
	// Fixed at creation.
	options           Options
	onListChanged     func()
	onResourceUpdated func(name, uri string)
	dials             dialSemaphore  // of those that are being connected to
	background        sync.WaitGroup // of all that were kept at some time

	mu        sync.Mutex
	servers   map[string]*server
	suspended map[string]suspendedCall // by their handles
	closed    bool
}

// NewFleet returns a fleet of no servers. It tells listed when what one of them offers is
// another thing than before, and updated when one tells that a resource has changed of
// which it was asked to tell. Neither must block.
func NewFleet(o Options, onListChanged func(), onResourceUpdated func(name, uri string)) *Fleet {
	return &Fleet{options: o, onListChanged: onListChanged, onResourceUpdated: onResourceUpdated, dials: make(dialSemaphore, maxDials), servers: map[string]*server{}, suspended: map[string]suspendedCall{}}
}

// Keep has the fleet be of these servers, by their names. One whose place is as it was
// goes on as it is.
func (f *Fleet) SetTargets(targets []Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	kept := map[string]*server{}
	for _, p := range targets {
		s := f.servers[p.Name]
		switch {
		case s == nil || s.hash != p.Hash():
			s = f.startServer(p, s)
		case !p.Lazy:
			s.requestConnect()
		}
		kept[p.Name] = s
	}
	for name, s := range f.servers {
		if kept[name] != s {
			s.stop()
		}
	}
	f.servers = kept
}

// start begins to connect to a server. What was wanted of the one before it by its name,
// nil for none, is wanted of this one.
func (f *Fleet) startServer(p Target, before *server) *server {
	var wanted []string
	if before != nil {
		wanted = before.subscriptions.all()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{target: p, hash: p.Hash(), options: f.options, onListChanged: f.onListChanged, dials: f.dials, stop: cancel, signals: newSignals()}
	s.subscriptions, s.onResourceUpdated = newSubscriptions(wanted), func(uri string) { f.onResourceUpdated(p.Name, uri) }
	s.options.Changed = s.changed
	f.background.Go(func() {
		s.run(ctx)
		s.settled.close() // nobody waits for one that is stopped
		s.attempted.close()
	})
	return s
}

func (f *Fleet) server(name string) *server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers[name]
}

type ServerState struct {
	// Listing is what it offers; nil while that is not known.
	Listing *Listing
	// Err is why it cannot be reached, in words for the operator; nil while it can.
	Err error
	// Since is when this began to be so, and Again when it is tried again.
	Since, RetryAt time.Time
	// Revision is that of the protocol, "" before one is agreed on.
	Revision string
	// Idle says that it is lazy, and nobody has called it yet.
	Idle bool
}

// State returns how a server is; the zero State is that of none.
func (f *Fleet) State(name string) ServerState {
	s := f.server(name)
	if s == nil {
		return ServerState{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Listing returns what the server of a place offers; nil while that is not known, or the
// fleet is of another server by that name.
func (f *Fleet) Listing(p Target) *Listing {
	s := f.server(p.Name)
	if s == nil || s.hash != p.Hash() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Listing
}

// Subscribe has a server tell when a resource changes, now and whenever it is reached
// again, as far as it can. One server tells of 1,000 resources at most.
func (f *Fleet) Subscribe(name, uri string) {
	f.updateSubscriptions(name, func(s *subscriptions) { s.add(uri) })
}

// Unsubscribe takes back [Fleet.Subscribe].
func (f *Fleet) Unsubscribe(name, uri string) {
	f.updateSubscriptions(name, func(s *subscriptions) { s.remove(uri) })
}

// subscribed changes what a server is wanted to tell of. It is not replaced meanwhile by
// another one, which takes over what is wanted of it.
func (f *Fleet) updateSubscriptions(name string, change func(*subscriptions)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.servers[name]; s != nil {
		change(s.subscriptions)
	}
}

func (f *Fleet) HasServers() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.servers) > 0
}

// Settle waits until every server has told what it offers, or could not be reached once.
// It returns the error of ctx when that is done first.
func (f *Fleet) WaitReady(ctx context.Context) error {
	f.mu.Lock()
	servers := slices.Collect(maps.Values(f.servers))
	f.mu.Unlock()
	for _, s := range servers {
		select {
		case <-s.settled.closed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Unsettled are the names of the servers that have neither told what they offer nor failed
// yet, sorted.
func (f *Fleet) NotReady() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range f.servers {
		select {
		case <-s.settled.closed:
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// UnreachableError says that a server cannot be reached now.
type UnreachableError struct {
	// Name is that of the server, and Wait how long it is until it is tried again; 0 where
	// that is not known.
	Name       string
	RetryAfter time.Duration
	Err        error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the server %q cannot be reached", e.Name)
}

// Unwrap returns why, which is for the operator.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ErrChanged is why a call is not made of a server that offers something else than was known
// of it.
var ErrListingChanged = errors.New("what is called is not what the server offers now")

// now returns the link, nil while there is none, and how the server is.
func (s *server) connection() (*Conn, ServerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn, s.state
}

// Begin makes a call at a server (see [Link.Begin]), which is reached first if it is idle.
// The error is an [*UnreachableError], or wraps [ErrChanged].
func (f *Fleet) Start(ctx context.Context, name string, r Request, heard Listener) (*Call, error) {
	s := f.server(name)
	if s == nil {
		return nil, &UnreachableError{Name: name, Err: errors.New("there is no such server")}
	}
	link, state := s.connection()
	if state.Idle {
		if err := s.wake(ctx); err != nil {
			return nil, &UnreachableError{Name: name, Err: err}
		}
		link, state = s.connection()
	}
	if link == nil {
		return nil, &UnreachableError{Name: name, RetryAfter: max(time.Until(state.RetryAt), 0), Err: state.Err}
	}
	if r.AcceptsListing != nil && !r.AcceptsListing(state.Listing) {
		return nil, fmt.Errorf("the server %q: %w", name, ErrListingChanged)
	}
	if err := link.Err(); err != nil { // it is tried again when nothing of the link is left
		return nil, &UnreachableError{Name: name, RetryAfter: minBackoff, Err: err}
	}
	return link.Start(ctx, r, heard), nil
}

func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	servers := f.servers
	f.servers = map[string]*server{}
	for _, p := range f.suspended {
		p.timeout.Stop()
		p.call.Cancel(ErrClosed)
	}
	f.suspended = map[string]suspendedCall{}
	f.mu.Unlock()
	for _, s := range servers {
		s.stop()
	}
	f.background.Wait()
}

// parked is a call that waits for the client that made it, at a server that has not ended
// it.
type suspendedCall struct {
	call    *Call
	owner   string
	timeout *time.Timer
}

// maxParked is how many calls wait at once, and maxParkedBy how many of one caller.
const (
	maxSuspended         = 1024
	maxSuspendedPerOwner = 128
)

// parkTime is how long a call waits at most.
const suspendTimeout = 15 * time.Minute

// errUnanswered is why a call ends that has waited for too long, and errCrowded why one ends
// that finds no place to wait.
var (
	errInputTimeout     = errors.New("the client has not answered in time")
	errTooManySuspended = errors.New("too many calls wait for their clients")
)

// Park keeps a call until [Fleet.Resume] goes on with it by the handle, which nobody can
// guess. One that nobody goes on with is cancelled. by is text that stands for who made the
// call, and for nobody else: one caller takes the places of no other. Where there is none
// left the call is cancelled, and the handle is "".
func (f *Fleet) Suspend(c *Call, owner string) (handle string) {
	c.attach(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.suspended) >= maxSuspended || f.suspendedBy(owner) >= maxSuspendedPerOwner {
		c.Cancel(errTooManySuspended)
		return ""
	}
	handle = rand.Text()
	f.suspended[handle] = suspendedCall{c, owner, time.AfterFunc(suspendTimeout, func() {
		if late := f.Resume(handle, nil); late != nil {
			late.Cancel(errInputTimeout)
		}
	})}
	return handle
}

// parkedBy returns how many calls of a caller wait. Its caller holds mu.
func (f *Fleet) suspendedBy(owner string) (n int) {
	for _, p := range f.suspended {
		if p.owner == owner {
			n++
		}
	}
	return n
}

// Resume returns the call of a handle, once, and has l hear of it from now on. It is nil
// where none waits.
func (f *Fleet) Resume(handle string, l Listener) *Call {
	f.mu.Lock()
	p, waits := f.suspended[handle]
	delete(f.suspended, handle)
	f.mu.Unlock()
	if !waits {
		return nil
	}
	p.timeout.Stop()
	p.call.attach(l)
	return p.call
}

const (
	// maxDialling is how many servers are connected to, and tell what they offer, at once.
	maxDials = 32
	// maxHeld is how long one of them counts: a server that hangs holds up no other for
	// longer.
	maxDialHold = 100 * time.Millisecond
)

// gate bounds how many do something at once that do not take long for it. It is safe for
// concurrent use.
type dialSemaphore chan struct{}

// enter waits for a place, or until ctx is done. The place is that of another one once leave
// is called, which may be more than once, or maxHeld is over.
func (g dialSemaphore) acquire(ctx context.Context) (release func()) {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-g })
	timer := time.AfterFunc(maxDialHold, free)
	return func() {
		timer.Stop()
		free()
	}
}
