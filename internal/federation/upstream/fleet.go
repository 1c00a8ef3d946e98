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
	options Options
	listed  func()
	updated func(name, uri string)
	gate    gate           // of those that are being connected to
	running sync.WaitGroup // of all that were kept at some time

	mu      sync.Mutex
	servers map[string]*server
	parked  map[string]parked // by their handles
	closed  bool
}

// NewFleet returns a fleet of no servers. It tells listed when what one of them offers is
// another thing than before, and updated when one tells that a resource has changed of
// which it was asked to tell. Neither must block.
func NewFleet(o Options, listed func(), updated func(name, uri string)) *Fleet {
	return &Fleet{options: o, listed: listed, updated: updated, gate: make(gate, maxDialling), servers: map[string]*server{}, parked: map[string]parked{}}
}

// Keep has the fleet be of these servers, by their names. One whose place is as it was
// goes on as it is.
func (f *Fleet) Keep(places []Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	kept := map[string]*server{}
	for _, p := range places {
		s := f.servers[p.Name]
		switch {
		case s == nil || s.hash != p.Hash():
			s = f.start(p, s)
		case !p.Lazy:
			s.want()
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
func (f *Fleet) start(p Place, before *server) *server {
	var wanted []string
	if before != nil {
		wanted = before.subscriptions.all()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{place: p, hash: p.Hash(), options: f.options, listed: f.listed, gate: f.gate, stop: cancel, signals: newSignals()}
	s.subscriptions, s.updated = newSubscriptions(wanted), func(uri string) { f.updated(p.Name, uri) }
	s.options.Changed = s.changed
	f.running.Go(func() {
		s.run(ctx)
		s.settled.close() // nobody waits for one that is stopped
		s.begun.close()
	})
	return s
}

func (f *Fleet) server(name string) *server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers[name]
}

type State struct {
	// Listing is what it offers; nil while that is not known.
	Listing *Listing
	// Err is why it cannot be reached, in words for the operator; nil while it can.
	Err error
	// Since is when this began to be so, and Again when it is tried again.
	Since, Again time.Time
	// Revision is that of the protocol, "" before one is agreed on.
	Revision string
	// Idle says that it is lazy, and nobody has called it yet.
	Idle bool
}

// State returns how a server is; the zero State is that of none.
func (f *Fleet) State(name string) State {
	s := f.server(name)
	if s == nil {
		return State{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Listing returns what the server of a place offers; nil while that is not known, or the
// fleet is of another server by that name.
func (f *Fleet) Listing(p Place) *Listing {
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
	f.subscribed(name, func(s *subscriptions) { s.add(uri) })
}

// Unsubscribe takes back [Fleet.Subscribe].
func (f *Fleet) Unsubscribe(name, uri string) {
	f.subscribed(name, func(s *subscriptions) { s.remove(uri) })
}

// subscribed changes what a server is wanted to tell of. It is not replaced meanwhile by
// another one, which takes over what is wanted of it.
func (f *Fleet) subscribed(name string, change func(*subscriptions)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.servers[name]; s != nil {
		change(s.subscriptions)
	}
}

func (f *Fleet) Any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.servers) > 0
}

// Settle waits until every server has told what it offers, or could not be reached once.
// It returns the error of ctx when that is done first.
func (f *Fleet) Settle(ctx context.Context) error {
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
func (f *Fleet) Unsettled() (names []string) {
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
	Name string
	Wait time.Duration
	Err  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the server %q cannot be reached", e.Name)
}

// Unwrap returns why, which is for the operator.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ErrChanged is why a call is not made of a server that offers something else than was known
// of it.
var ErrChanged = errors.New("what is called is not what the server offers now")

// now returns the link, nil while there is none, and how the server is.
func (s *server) now() (*Link, State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link, s.state
}

// Begin makes a call at a server (see [Link.Begin]), which is reached first if it is idle.
// The error is an [*UnreachableError], or wraps [ErrChanged].
func (f *Fleet) Begin(ctx context.Context, name string, r Request, heard Listener) (*Call, error) {
	s := f.server(name)
	if s == nil {
		return nil, &UnreachableError{Name: name, Err: errors.New("there is no such server")}
	}
	link, state := s.now()
	if state.Idle {
		if err := s.wake(ctx); err != nil {
			return nil, &UnreachableError{Name: name, Err: err}
		}
		link, state = s.now()
	}
	if link == nil {
		return nil, &UnreachableError{Name: name, Wait: max(time.Until(state.Again), 0), Err: state.Err}
	}
	if r.Accepts != nil && !r.Accepts(state.Listing) {
		return nil, fmt.Errorf("the server %q: %w", name, ErrChanged)
	}
	if err := link.Err(); err != nil { // it is tried again when nothing of the link is left
		return nil, &UnreachableError{Name: name, Wait: firstWait, Err: err}
	}
	return link.Begin(ctx, r, heard), nil
}

func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	servers := f.servers
	f.servers = map[string]*server{}
	for _, p := range f.parked {
		p.late.Stop()
		p.call.Cancel(ErrClosed)
	}
	f.parked = map[string]parked{}
	f.mu.Unlock()
	for _, s := range servers {
		s.stop()
	}
	f.running.Wait()
}

// parked is a call that waits for the client that made it, at a server that has not ended
// it.
type parked struct {
	call *Call
	by   string
	late *time.Timer
}

// maxParked is how many calls wait at once, and maxParkedBy how many of one caller.
const (
	maxParked   = 1024
	maxParkedBy = 128
)

// parkTime is how long a call waits at most.
const parkTime = 15 * time.Minute

// errUnanswered is why a call ends that has waited for too long, and errCrowded why one ends
// that finds no place to wait.
var (
	errUnanswered = errors.New("the client has not answered in time")
	errCrowded    = errors.New("too many calls wait for their clients")
)

// Park keeps a call until [Fleet.Resume] goes on with it by the handle, which nobody can
// guess. One that nobody goes on with is cancelled. by is text that stands for who made the
// call, and for nobody else: one caller takes the places of no other. Where there is none
// left the call is cancelled, and the handle is "".
func (f *Fleet) Park(c *Call, by string) (handle string) {
	c.attach(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.parked) >= maxParked || f.parkedBy(by) >= maxParkedBy {
		c.Cancel(errCrowded)
		return ""
	}
	handle = rand.Text()
	f.parked[handle] = parked{c, by, time.AfterFunc(parkTime, func() {
		if late := f.Resume(handle, nil); late != nil {
			late.Cancel(errUnanswered)
		}
	})}
	return handle
}

// parkedBy returns how many calls of a caller wait. Its caller holds mu.
func (f *Fleet) parkedBy(by string) (n int) {
	for _, p := range f.parked {
		if p.by == by {
			n++
		}
	}
	return n
}

// Resume returns the call of a handle, once, and has l hear of it from now on. It is nil
// where none waits.
func (f *Fleet) Resume(handle string, l Listener) *Call {
	f.mu.Lock()
	p, waits := f.parked[handle]
	delete(f.parked, handle)
	f.mu.Unlock()
	if !waits {
		return nil
	}
	p.late.Stop()
	p.call.attach(l)
	return p.call
}

const (
	// maxDialling is how many servers are connected to, and tell what they offer, at once.
	maxDialling = 32
	// maxHeld is how long one of them counts: a server that hangs holds up no other for
	// longer.
	maxHeld = 100 * time.Millisecond
)

// gate bounds how many do something at once that do not take long for it. It is safe for
// concurrent use.
type gate chan struct{}

// enter waits for a place, or until ctx is done. The place is that of another one once leave
// is called, which may be more than once, or maxHeld is over.
func (g gate) enter(ctx context.Context) (leave func()) {
	select {
	case g <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-g })
	late := time.AfterFunc(maxHeld, free)
	return func() {
		late.Stop()
		free()
	}
}
