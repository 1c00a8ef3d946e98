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
	// minBackoff and maxBackoff bound the delay before reconnecting. It doubles after each
	// failure.
	minBackoff = 500 * time.Millisecond
	maxBackoff = time.Minute
	// stableAfter is how long a connection has to last to reset the backoff.
	stableAfter = 30 * time.Second
	// defaultStart bounds the time until a server is ready and has listed its offers.
	defaultStart = 30 * time.Second
	// minRefresh is the minimum time before lists with a TTL are read again.
	minRefresh = 5 * time.Second
	// listDebounce is the quiet time before changed lists are read again. It doubles each time
	// a change follows within minRefresh.
	listDebounce = 50 * time.Millisecond
	// refreshBackoffFactor and refreshBackoffPerByte delay the next refresh in proportion to
	// the time and the size of the last one: processing lists takes longer than reading them.
	// maxRefreshBackoff bounds both.
	refreshBackoffFactor  = 20
	refreshBackoffPerByte = 10 * time.Microsecond
	maxRefreshBackoff     = 5 * time.Minute
	// largeList is the size of all lists, in bytes, above which half of the delay also applies
	// to reconnecting, which reads the lists.
	largeList = 1 << 20
)

// server is one server of a pool. It connects to its target and reconnects.
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
	conn  *Conn // nil while the server is not reachable
	state ServerState
}

// signals coordinate a server and its waiters.
type signals struct {
	settled          latch         // it has listed its offers or failed once
	attempted        latch         // the first connection of a lazy server has succeeded or failed
	listStale        chan struct{} // holds a token after a list has changed
	connectRequested chan struct{} // holds a token once a lazy server is wanted
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

// history is the history of connections and refreshes. It belongs to the goroutine that runs
// the server.
type history struct {
	variant      transportVariant // the last working variant
	readyAt      time.Time        // start of the connection
	refreshedAt  time.Time        // last refresh because of a change
	debounce     time.Duration    // the delay before it
	backoffUntil time.Time        // no refresh before
	isLarge      bool             // its lists exceed largeList
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
		if failures++; failures&(failures-1) != 0 { // after 1, 2, 4, … failures
			level = slog.LevelDebug
		}
		s.options.Logger.Log(ctx, level, "connect to upstream server",
			slog.String("upstream", s.target.Name), logText("error", err.Error()), slog.Int("failures", failures), slog.Duration("again_in", pause))
		s.set(nil, ServerState{Err: err, RetryAt: time.Now().Add(pause)})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// reconnectDelay returns the delay before reconnecting, randomized below wait.
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
	conn, err := dial(ctx, s.target, s.options, s.variant)
	if err != nil {
		return nil, nil, err
	}
	s.variant = conn.variant
	listing, err := s.list(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, listing, nil
}

// list reads the listing, and sets the refresh backoff.
func (s *server) list(ctx context.Context, conn *Conn) (*Listing, error) {
	began := time.Now()
	listing, err := conn.List(ctx)
	if err != nil {
		return nil, err
	}
	s.setRefreshBackoff(time.Since(began), listing.size())
	return listing, nil
}

// setRefreshBackoff delays the next refresh by the time and size of this one.
func (h *history) setRefreshBackoff(took time.Duration, size int) {
	h.backoffUntil, h.isLarge = time.Now().Add(min(max(refreshBackoffFactor*took, time.Duration(size)*refreshBackoffPerByte), maxRefreshBackoff)), size > largeList
}

// waitRequested waits until a lazy server is wanted. It returns false if ctx is done first.
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

// wake connects an idle server, and waits until it is connected or has failed.
func (s *server) wake(ctx context.Context) error {
	s.requestConnect()
	select {
	case <-s.attempted.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve connects to the server and serves until the connection ends. It returns the reason.
func (s *server) serve(ctx context.Context) error {
	start := s.target.StartTimeout
	if start <= 0 {
		start = defaultStart
	}
	conn, listing, err := s.connect(ctx, start)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s.readyAt = time.Now()
	s.options.Logger.Info("upstream server ready", slog.String("upstream", s.target.Name), slog.String("revision", conn.Revision()), slog.Int("tools", len(listing.Tools)))
	if listing.CanSubscribe {
		keeping, leave := context.WithCancel(ctx)
		var kept sync.WaitGroup
		kept.Go(func() { s.subscriptions.maintain(keeping, conn) })
		defer kept.Wait()
		defer leave()
	}
	for {
		s.set(conn, ServerState{Listing: listing, Revision: conn.Revision()})
		if err := s.waitStale(ctx, conn, listing.TTL); err != nil {
			return err
		}
		listCtx, cancel := context.WithTimeoutCause(ctx, start, fmt.Errorf("the server did not list its tools within %s (start_timeout)", start))
		listing, err = s.list(listCtx, conn)
		cancel()
		if err != nil {
			return err
		}
	}
}

// waitStale waits until the lists need to be read again. The error says why they cannot be.
func (s *server) waitStale(ctx context.Context, conn *Conn, ttl time.Duration) error {
	var old <-chan time.Time
	if ttl > 0 {
		timer := time.NewTimer(max(ttl, minRefresh, time.Until(s.backoffUntil)))
		defer timer.Stop()
		old = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-conn.Done():
		return conn.Err()
	case <-old:
		return nil
	case <-s.listStale:
	}
	select { // several lists change at once, and some repeatedly
	case <-ctx.Done():
	case <-conn.Done():
		return conn.Err()
	case <-time.After(s.refreshDelay()):
	}
	select {
	case <-s.listStale:
	default:
	}
	s.refreshedAt = time.Now()
	return nil
}

// refreshDelay returns the delay before changed lists are read.
func (h *history) refreshDelay() time.Duration {
	if h.debounce = min(2*h.debounce, minRefresh); time.Since(h.refreshedAt) > minRefresh || h.debounce == 0 {
		h.debounce = listDebounce
	}
	return max(h.debounce, time.Until(h.backoffUntil))
}

// set sets the state, and calls onListChanged if the listing is another.
func (s *server) set(conn *Conn, state ServerState) {
	s.mu.Lock()
	before := s.state
	same := reflect.DeepEqual(before.Listing, state.Listing)
	if same {
		state.Listing = before.Listing // others hold this pointer
	}
	if state.Since = time.Now(); !before.Since.IsZero() && (before.Listing == nil) == (state.Listing == nil) {
		state.Since = before.Since
	}
	s.conn, s.state = conn, state
	s.mu.Unlock()
	s.settled.close()
	if !state.Idle {
		s.attempted.close()
	}
	if state.Idle != before.Idle || !same {
		s.onListChanged()
	}
}
