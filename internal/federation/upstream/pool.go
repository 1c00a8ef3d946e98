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

// Pool manages connections to servers, independently of each other: a server that is down or
// hangs does not delay others. It is safe for concurrent use.
type Pool struct {
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

// NewPool returns a pool without servers. It calls onListChanged when the listing of a server
// has changed, and onResourceUpdated when a server reports a change of a subscribed resource.
// Neither may block.
func NewPool(o Options, onListChanged func(), onResourceUpdated func(name, uri string)) *Pool {
	return &Pool{options: o, onListChanged: onListChanged, onResourceUpdated: onResourceUpdated, dials: make(dialSemaphore, maxDials), servers: map[string]*server{}, suspended: map[string]suspendedCall{}}
}

// SetTargets reconciles the servers with targets, by name. A server with an unchanged target
// keeps its connection.
func (pool *Pool) SetTargets(targets []Target) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.closed {
		return
	}
	kept := map[string]*server{}
	for _, p := range targets {
		s := pool.servers[p.Name]
		switch {
		case s == nil || s.hash != p.Hash():
			s = pool.startServer(p, s)
		case !p.Lazy:
			s.requestConnect()
		}
		kept[p.Name] = s
	}
	for name, s := range pool.servers {
		if kept[name] != s {
			s.stop()
		}
	}
	pool.servers = kept
}

// startServer starts connecting to a server. It inherits the subscriptions of the server that
// it replaces, if any.
func (pool *Pool) startServer(t Target, before *server) *server {
	var wanted []string
	if before != nil {
		wanted = before.subscriptions.all()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{target: t, hash: t.Hash(), options: pool.options, onListChanged: pool.onListChanged, dials: pool.dials, stop: cancel, signals: newSignals()}
	s.subscriptions, s.onResourceUpdated = newSubscriptions(wanted), func(uri string) { pool.onResourceUpdated(t.Name, uri) }
	s.options.Changed = s.changed
	pool.background.Go(func() {
		s.run(ctx)
		s.settled.close() // unblocks waiters of a stopped server
		s.attempted.close()
	})
	return s
}

func (pool *Pool) server(name string) *server {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return pool.servers[name]
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
func (pool *Pool) State(name string) ServerState {
	s := pool.server(name)
	if s == nil {
		return ServerState{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Listing returns what the server of a target offers. It is nil while that is not known, and if
// the pool has another target under that name.
func (pool *Pool) Listing(t Target) *Listing {
	s := pool.server(t.Name)
	if s == nil || s.hash != t.Hash() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Listing
}

// Subscribe subscribes to changes of a resource, now and after each reconnect, if the server
// supports it. A server has at most 1,000 subscriptions.
func (pool *Pool) Subscribe(name, uri string) {
	pool.updateSubscriptions(name, func(s *subscriptions) { s.add(uri) })
}

// Unsubscribe reverts [Pool.Subscribe].
func (pool *Pool) Unsubscribe(name, uri string) {
	pool.updateSubscriptions(name, func(s *subscriptions) { s.remove(uri) })
}

// updateSubscriptions changes the subscriptions of a server. It holds the lock, so that a
// replacement of the server inherits them.
func (pool *Pool) updateSubscriptions(name string, change func(*subscriptions)) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if s := pool.servers[name]; s != nil {
		change(s.subscriptions)
	}
}

func (pool *Pool) HasServers() bool {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return len(pool.servers) > 0
}

// WaitReady waits until each server has listed its offers or failed once. It returns the error
// of ctx if ctx is done first.
func (pool *Pool) WaitReady(ctx context.Context) error {
	pool.mu.Lock()
	servers := slices.Collect(maps.Values(pool.servers))
	pool.mu.Unlock()
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
func (pool *Pool) NotReady() (names []string) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	for name, s := range pool.servers {
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
func (pool *Pool) Start(ctx context.Context, name string, r Request, l Listener) (*Call, error) {
	s := pool.server(name)
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

func (pool *Pool) Close() {
	pool.mu.Lock()
	pool.closed = true
	servers := pool.servers
	pool.servers = map[string]*server{}
	for _, p := range pool.suspended {
		p.timeout.Stop()
		p.call.Cancel(ErrClosed)
	}
	pool.suspended = map[string]suspendedCall{}
	pool.mu.Unlock()
	for _, s := range servers {
		s.stop()
	}
	pool.background.Wait()
}

// suspendedCall is a running call that waits for the client's response to an input request.
type suspendedCall struct {
	call    *Call
	owner   string
	timeout *time.Timer
}

// maxSuspended bounds all suspended calls, and maxSuspendedPerOwner the calls of one owner.
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

// Suspend stores a call until [Pool.Resume] is called with the handle, which cannot be
// guessed. It cancels the call after suspendTimeout. owner is text unique to the caller, so
// that one caller cannot exhaust the capacity of others. Beyond the limits it cancels the call
// and returns "".
func (pool *Pool) Suspend(c *Call, owner string) (handle string) {
	c.attach(nil)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if pool.closed || len(pool.suspended) >= maxSuspended || pool.suspendedBy(owner) >= maxSuspendedPerOwner {
		c.Cancel(errTooManySuspended)
		return ""
	}
	handle = rand.Text()
	pool.suspended[handle] = suspendedCall{c, owner, time.AfterFunc(suspendTimeout, func() {
		if late := pool.Resume(handle, nil); late != nil {
			late.Cancel(errInputTimeout)
		}
	})}
	return handle
}

// suspendedBy counts the suspended calls of an owner. The caller holds mu.
func (pool *Pool) suspendedBy(owner string) (n int) {
	for _, p := range pool.suspended {
		if p.owner == owner {
			n++
		}
	}
	return n
}

// Resume returns a suspended call, once, and attaches l to it. It returns nil if the handle is
// unknown.
func (pool *Pool) Resume(handle string, l Listener) *Call {
	pool.mu.Lock()
	p, waits := pool.suspended[handle]
	delete(pool.suspended, handle)
	pool.mu.Unlock()
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
