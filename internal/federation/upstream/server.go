package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"
)

const (
	// firstWait and longestWait bound how long a server is left alone that could not be
	// reached: each time for twice as long.
	minBackoff = 500 * time.Millisecond
	maxBackoff = time.Minute
	// steady is how long a connection must have held for the next failure to be the first.
	stableAfter = 30 * time.Second
	// defaultStart is how long a server may take until it is ready, and has told what it
	// offers.
	defaultStart = 30 * time.Second
	// soonest is how soon a list is read again whose server says that it holds for less.
	minRefresh = 5 * time.Second
	// quiet is how long a server says nothing more of its lists before they are read again,
	// the first time: each time for twice as long that it says so again within soonest.
	listDebounce = 50 * time.Millisecond
	// restful is for how many times as long as it has taken to read lists they are not read
	// again, whatever the server says, and restByte for how long at least for each of their
	// bytes: what is made of them takes longer than reading them. longestRest bounds both.
	refreshBackoffFactor  = 20
	refreshBackoffPerByte = 10 * time.Microsecond
	maxRefreshBackoff     = 5 * time.Minute
	// largeList is how many bytes all lists of a server must have for it to rest also where
	// the connection has to be made again, which has them read, for half of the time.
	largeList = 1 << 20
)

// server is one of a fleet: it connects to the server of a place, and does so again.
type server struct {
	// Fixed at creation.
	target            Target
	hash              [32]byte
	options           Options
	onListChanged     func()
	onResourceUpdated func(uri string)
	dials             dialSemaphore
	stop              context.CancelFunc

	signals
	history
	subscriptions *subscriptions

	mu    sync.Mutex
	conn  *Conn // nil while the server cannot be reached
	state ServerState
}

// signals are what those who wait for a server, and the server, tell each other.
type signals struct {
	settled          latch         // it has told what it offers, or could not be reached once
	attempted        latch         // it is known whether a lazy server can be reached
	listStale        chan struct{} // holds a token while the server has said that a list has changed
	connectRequested chan struct{} // holds a token once somebody wants a lazy server reached
}

func newSignals() signals {
	return signals{settled: newLatch(), attempted: newLatch(), listStale: make(chan struct{}, 1), connectRequested: make(chan struct{}, 1)}
}

// latch is a channel that is closed once.
type latch struct {
	closed chan struct{}
	close  func()
}

func newLatch() latch {
	closed := make(chan struct{})
	return latch{closed, sync.OnceFunc(func() { close(closed) })}
}

// history is how the server was reached, and its lists were read, before. It belongs to the
// goroutine that runs the server.
type history struct {
	variant      transportVariant // in which the server was spoken to last
	readyAt      time.Time        // since when the connection is
	refreshedAt  time.Time        // when its lists were read last because it has said that they have changed
	debounce     time.Duration    // how long that was waited for
	backoffUntil time.Time        // until when they are not read again
	isLarge      bool             // they are large
}

func (s *server) changed(method, uri string) {
	if method == methodUpdated {
		if s.subscriptions.wants(uri) {
			s.onResourceUpdated(uri)
		}
		return
	}
	select {
	case s.listStale <- struct{}{}:
	default:
	}
}

func (s *server) run(ctx context.Context) {
	if s.target.Lazy && !s.waitRequested(ctx) {
		return
	}
	wait, failures := minBackoff, 0
	for ctx.Err() == nil {
		s.readyAt = time.Time{}
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if !s.readyAt.IsZero() && time.Since(s.readyAt) > stableAfter {
			wait, failures = minBackoff, 0
		}
		pause := s.reconnectDelay(wait)
		level := slog.LevelWarn
		if failures++; failures&(failures-1) != 0 { // after one failure, two, four and so on
			level = slog.LevelDebug
		}
		s.options.Logger.Log(ctx, level, "an upstream server cannot be reached",
			slog.String("upstream", s.target.Name), logText("error", err.Error()), slog.Int("failures", failures), slog.Duration("again_in", pause))
		s.set(nil, ServerState{Err: err, RetryAt: time.Now().Add(pause)})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// pause returns how long the server is left alone that could not be reached, of as long as
// wait.
func (h *history) reconnectDelay(wait time.Duration) time.Duration {
	pause := wait/2 + rand.N(wait/2+1)
	if h.isLarge {
		pause = max(pause, min(time.Until(h.backoffUntil)/2, maxBackoff))
	}
	return pause
}

func (s *server) connect(ctx context.Context, start time.Duration) (*Conn, *Listing, error) {
	defer s.dials.acquire(ctx)()
	ctx, cancel := context.WithTimeoutCause(ctx, start, fmt.Errorf("the server is not ready within %s (start_timeout)", start))
	defer cancel()
	link, err := dial(ctx, s.target, s.options, s.variant)
	if err != nil {
		return nil, nil, err
	}
	s.variant = link.variant
	listing, err := s.list(ctx, link)
	if err != nil {
		_ = link.Close()
		return nil, nil, err
	}
	return link, listing, nil
}

// list reads what the server offers, and has it rest in proportion.
func (s *server) list(ctx context.Context, link *Conn) (*Listing, error) {
	began := time.Now()
	listing, err := link.List(ctx)
	if err != nil {
		return nil, err
	}
	s.setRefreshBackoff(time.Since(began), listing.size())
	return listing, nil
}

// rested has lists of so many bytes, which have taken so long, not be read again for a while.
func (h *history) setRefreshBackoff(took time.Duration, size int) {
	h.backoffUntil, h.isLarge = time.Now().Add(min(max(refreshBackoffFactor*took, time.Duration(size)*refreshBackoffPerByte), maxRefreshBackoff)), size > largeList
}

// idle waits until somebody wants the server reached, and reports false where ctx is done
// first.
func (s *server) waitRequested(ctx context.Context) bool {
	s.set(nil, ServerState{Idle: true})
	select {
	case <-s.connectRequested:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *server) requestConnect() {
	select {
	case s.connectRequested <- struct{}{}:
	default:
	}
}

// wake has an idle server reached, and waits until it is known whether it can be.
func (s *server) wake(ctx context.Context) error {
	s.requestConnect()
	select {
	case <-s.attempted.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve connects to the server, and returns why the connection has ended, or could not
// be made.
func (s *server) serve(ctx context.Context) error {
	start := s.target.StartTimeout
	if start <= 0 {
		start = defaultStart
	}
	link, listing, err := s.connect(ctx, start)
	if err != nil {
		return err
	}
	defer func() { _ = link.Close() }()
	s.readyAt = time.Now()
	s.options.Logger.Info("an upstream server is ready", slog.String("upstream", s.target.Name), slog.String("revision", link.Revision()), slog.Int("tools", len(listing.Tools)))
	if listing.CanSubscribe {
		keeping, leave := context.WithCancel(ctx)
		var kept sync.WaitGroup
		kept.Go(func() { s.subscriptions.maintain(keeping, link) })
		defer kept.Wait()
		defer leave()
	}
	for {
		s.set(link, ServerState{Listing: listing, Revision: link.Revision()})
		if err := s.waitStale(ctx, link, listing.TTL); err != nil {
			return err
		}
		again, cancel := context.WithTimeoutCause(ctx, start, fmt.Errorf("the server has not told within %s (start_timeout) what it offers", start))
		listing, err = s.list(again, link)
		cancel()
		if err != nil {
			return err
		}
	}
}

// await waits until the lists are to be read again. The error is why they cannot be.
func (s *server) waitStale(ctx context.Context, link *Conn, ttl time.Duration) error {
	var old <-chan time.Time
	if ttl > 0 {
		timer := time.NewTimer(max(ttl, minRefresh, time.Until(s.backoffUntil)))
		defer timer.Stop()
		old = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-link.Done():
		return link.Err()
	case <-old:
		return nil
	case <-s.listStale:
	}
	select { // several lists change at once, and some without an end
	case <-ctx.Done():
	case <-link.Done():
		return link.Err()
	case <-time.After(s.refreshDelay()):
	}
	select {
	case <-s.listStale:
	default:
	}
	s.refreshedAt = time.Now()
	return nil
}

// wait returns how long it is until lists are read that have changed.
func (h *history) refreshDelay() time.Duration {
	if h.debounce = min(2*h.debounce, minRefresh); time.Since(h.refreshedAt) > minRefresh || h.debounce == 0 {
		h.debounce = listDebounce
	}
	return max(h.debounce, time.Until(h.backoffUntil))
}

// set says how the server is, and tells whoever hears of it where it offers another thing.
func (s *server) set(link *Conn, state ServerState) {
	s.mu.Lock()
	before := s.state
	same := reflect.DeepEqual(before.Listing, state.Listing)
	if same {
		state.Listing = before.Listing // which others know
	}
	if state.Since = time.Now(); !before.Since.IsZero() && (before.Listing == nil) == (state.Listing == nil) {
		state.Since = before.Since
	}
	s.conn, s.state = link, state
	s.mu.Unlock()
	s.settled.close()
	if !state.Idle {
		s.attempted.close()
	}
	if state.Idle != before.Idle || !same {
		s.onListChanged()
	}
}
