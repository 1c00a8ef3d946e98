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

// Fleet manages connections to servers, independently of each other: a server that is down or
// hangs does not delay others. It is safe for concurrent use.
type Fleet struct {
	// Fixed at creation.
	options           Options
	onListChanged     func()
	onResourceUpdated func(name, uri string)
	dials             dialSemaphore  // limits concurrent dials
	background        sync.WaitGroup // waits for all servers ever started

	mu        sync.Mutex
	servers   map[string]*server
	suspended map[string]suspendedCall // by handle
	closed    bool
}

// NewFleet returns a fleet without servers. It calls onListChanged when the listing of a server
// has changed, and onResourceUpdated when a server reports a change of a subscribed resource.
// Neither may block.
func NewFleet(o Options, onListChanged func(), onResourceUpdated func(name, uri string)) *Fleet {
	return &Fleet{options: o, onListChanged: onListChanged, onResourceUpdated: onResourceUpdated, dials: make(dialSemaphore, maxDials), servers: map[string]*server{}, suspended: map[string]suspendedCall{}}
}

// SetTargets reconciles the servers with targets, by name. A server with an unchanged target
// keeps its connection.
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

// startServer starts connecting to a server. It inherits the subscriptions of the server that
// it replaces, if any.
func (f *Fleet) startServer(t Target, before *server) *server {
	var wanted []string
	if before != nil {
		wanted = before.subscriptions.all()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{target: t, hash: t.Hash(), options: f.options, onListChanged: f.onListChanged, dials: f.dials, stop: cancel, signals: newSignals()}
	s.subscriptions, s.onResourceUpdated = newSubscriptions(wanted), func(uri string) { f.onResourceUpdated(t.Name, uri) }
	s.options.Changed = s.changed
	f.background.Go(func() {
		s.run(ctx)
		s.settled.close() // unblocks waiters of a stopped server
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
	// Listing has the offers of the server; nil while they are not known.
	Listing *Listing
	// Err says why the server cannot be reached, for the operator; nil while it can.
	Err error
	// Since is the start of this state, and RetryAt the next attempt to connect.
	Since, RetryAt time.Time
	// Revision is the protocol revision, or "" before one is negotiated.
	Revision string
	// Idle means that the server is lazy and has not been called.
	Idle bool
}

// State returns the state of a server, or the zero ServerState if it does not exist.
func (f *Fleet) State(name string) ServerState {
	s := f.server(name)
	if s == nil {
		return ServerState{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Listing returns what the server of a target offers. It is nil while that is not known, and if
// the fleet has another target under that name.
func (f *Fleet) Listing(t Target) *Listing {
	s := f.server(t.Name)
	if s == nil || s.hash != t.Hash() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Listing
}

// Subscribe subscribes to changes of a resource, now and after each reconnect, if the server
// supports it. A server has at most 1,000 subscriptions.
func (f *Fleet) Subscribe(name, uri string) {
	f.updateSubscriptions(name, func(s *subscriptions) { s.add(uri) })
}

// Unsubscribe reverts [Fleet.Subscribe].
func (f *Fleet) Unsubscribe(name, uri string) {
	f.updateSubscriptions(name, func(s *subscriptions) { s.remove(uri) })
}

// updateSubscriptions changes the subscriptions of a server. It holds the lock, so that a
// replacement of the server inherits them.
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

// WaitReady waits until each server has listed its offers or failed once. It returns the error
// of ctx if ctx is done first.
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

// NotReady returns the sorted names of the servers that have neither listed their offers nor
// failed.
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

// UnreachableError reports that a server cannot be reached now.
type UnreachableError struct {
	// Name is the name of the server. RetryAfter is the time until the next attempt to connect,
	// or 0 if it is not known.
	Name       string
	RetryAfter time.Duration
	Err        error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the server %q cannot be reached", e.Name)
}

// Unwrap returns the cause, for the operator.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ErrListingChanged refuses a call because the server does not offer the accepted definition
// any more.
var ErrListingChanged = errors.New("the server does not offer this definition now")

// connection returns the connection, or nil, and the state of the server.
func (s *server) connection() (*Conn, ServerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn, s.state
}

// Start starts a call at a server (see [Conn.Start]), and connects an idle server first. The
// error is an [*UnreachableError], or wraps [ErrListingChanged].
func (f *Fleet) Start(ctx context.Context, name string, r Request, l Listener) (*Call, error) {
	s := f.server(name)
	if s == nil {
		return nil, &UnreachableError{Name: name, Err: errors.New("there is no such server")}
	}
	conn, state := s.connection()
	if state.Idle {
		if err := s.wake(ctx); err != nil {
			return nil, &UnreachableError{Name: name, Err: err}
		}
		conn, state = s.connection()
	}
	if conn == nil {
		return nil, &UnreachableError{Name: name, RetryAfter: max(time.Until(state.RetryAt), 0), Err: state.Err}
	}
	if r.AcceptsListing != nil && !r.AcceptsListing(state.Listing) {
		return nil, fmt.Errorf("the server %q: %w", name, ErrListingChanged)
	}
	if err := conn.Err(); err != nil { // the server reconnects once the connection is cleaned up
		return nil, &UnreachableError{Name: name, RetryAfter: minBackoff, Err: err}
	}
	return conn.Start(ctx, r, l), nil
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

// suspendedCall is a running call that waits for the client's response to an input request.
type suspendedCall struct {
	call    *Call
	owner   string
	timeout *time.Timer
}

// maxSuspended bounds all suspended calls, and maxSuspendedPerOwner those of one owner.
const (
	maxSuspended         = 1024
	maxSuspendedPerOwner = 128
)

// suspendTimeout bounds the suspension of a call.
const suspendTimeout = 15 * time.Minute

// errInputTimeout ends a call after suspendTimeout, and errTooManySuspended one beyond the
// limits.
var (
	errInputTimeout     = errors.New("the client has not answered in time")
	errTooManySuspended = errors.New("too many suspended calls")
)

// Suspend stores a call until [Fleet.Resume] is called with the handle, which cannot be
// guessed. It cancels the call after suspendTimeout. owner is text unique to the caller, so
// that one caller cannot exhaust the capacity of others. Beyond the limits it cancels the call
// and returns "".
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

// suspendedBy counts the suspended calls of an owner. The caller holds mu.
func (f *Fleet) suspendedBy(owner string) (n int) {
	for _, p := range f.suspended {
		if p.owner == owner {
			n++
		}
	}
	return n
}

// Resume returns a suspended call, once, and attaches l to it. It returns nil if the handle is
// unknown.
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
	// maxDials bounds the servers that connect and list their offers at the same time.
	maxDials = 32
	// maxDialHold bounds how long one of them counts, so that a server that hangs does not
	// delay others longer.
	maxDialHold = 100 * time.Millisecond
)

// dialSemaphore limits concurrent work that usually is short. It is safe for concurrent use.
type dialSemaphore chan struct{}

// acquire waits for a slot, or until ctx is done. The slot is free again after release, which
// may be called more than once, or after maxDialHold.
func (s dialSemaphore) acquire(ctx context.Context) (release func()) {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-s })
	timer := time.AfterFunc(maxDialHold, free)
	return func() {
		timer.Stop()
		free()
	}
}
