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
	firstWait   = 500 * time.Millisecond
	longestWait = time.Minute
	// steady is how long a connection must have held for the next failure to be the first.
	steady = 30 * time.Second
	// defaultStart is how long a server may take until it is ready, and has told what it
	// offers.
	defaultStart = 30 * time.Second
	// soonest is how soon a list is read again whose server says that it holds for less.
	soonest = 5 * time.Second
	// quiet is how long a server says nothing more of its lists before they are read again,
	// the first time: each time for twice as long that it says so again within soonest.
	quiet = 50 * time.Millisecond
	// restful is for how many times as long as it has taken to read lists they are not read
	// again, whatever the server says, and restByte for how long at least for each of their
	// bytes: what is made of them takes longer than reading them. longestRest bounds both.
	restful     = 20
	restByte    = 10 * time.Microsecond
	longestRest = 5 * time.Minute
	// largeList is how many bytes all lists of a server must have for it to rest also where
	// the connection has to be made again, which has them read, for half of the time.
	largeList = 1 << 20
)

// server is one of a fleet: it connects to the server of a place, and does so again.
type server struct {
	// Fixed at creation.
	place   Place
	hash    [32]byte
	options Options
	listed  func()
	updated func(uri string)
	gate    gate
	stop    context.CancelFunc

	signals
	history
	subscriptions *subscriptions

	mu    sync.Mutex
	link  *Link // nil while the server cannot be reached
	state State
}

// signals are what those who wait for a server, and the server, tell each other.
type signals struct {
	settled latch         // it has told what it offers, or could not be reached once
	begun   latch         // it is known whether a lazy server can be reached
	stale   chan struct{} // holds a token while the server has said that a list has changed
	wanted  chan struct{} // holds a token once somebody wants a lazy server reached
}

func newSignals() signals {
	return signals{settled: newLatch(), begun: newLatch(), stale: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
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
	way   way           // in which the server was spoken to last
	ready time.Time     // since when the connection is
	read  time.Time     // when its lists were read last because it has said that they have changed
	calm  time.Duration // how long that was waited for
	rests time.Time     // until when they are not read again
	large bool          // they are large
}

func (s *server) changed(method, uri string) {
	if method == methodUpdated {
		if s.subscriptions.wants(uri) {
			s.updated(uri)
		}
		return
	}
	select {
	case s.stale <- struct{}{}:
	default:
	}
}

func (s *server) run(ctx context.Context) {
	if s.place.Lazy && !s.idle(ctx) {
		return
	}
	wait, failures := firstWait, 0
	for ctx.Err() == nil {
		s.ready = time.Time{}
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if !s.ready.IsZero() && time.Since(s.ready) > steady {
			wait, failures = firstWait, 0
		}
		pause := s.pause(wait)
		level := slog.LevelWarn
		if failures++; failures&(failures-1) != 0 { // after one failure, two, four and so on
			level = slog.LevelDebug
		}
		s.options.Logger.Log(ctx, level, "an upstream server cannot be reached",
			slog.String("upstream", s.place.Name), logged("error", err.Error()), slog.Int("failures", failures), slog.Duration("again_in", pause))
		s.set(nil, State{Err: err, Again: time.Now().Add(pause)})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		wait = min(2*wait, longestWait)
	}
}

// pause returns how long the server is left alone that could not be reached, of as long as
// wait.
func (h *history) pause(wait time.Duration) time.Duration {
	pause := wait/2 + rand.N(wait/2+1)
	if h.large {
		pause = max(pause, min(time.Until(h.rests)/2, longestWait))
	}
	return pause
}

func (s *server) begin(ctx context.Context, start time.Duration) (*Link, *Listing, error) {
	defer s.gate.enter(ctx)()
	ctx, cancel := context.WithTimeoutCause(ctx, start, fmt.Errorf("the server is not ready within %s (start_timeout)", start))
	defer cancel()
	link, err := dial(ctx, s.place, s.options, s.way)
	if err != nil {
		return nil, nil, err
	}
	s.way = link.way
	listing, err := s.list(ctx, link)
	if err != nil {
		_ = link.Close()
		return nil, nil, err
	}
	return link, listing, nil
}

// list reads what the server offers, and has it rest in proportion.
func (s *server) list(ctx context.Context, link *Link) (*Listing, error) {
	began := time.Now()
	listing, err := link.List(ctx)
	if err != nil {
		return nil, err
	}
	s.rested(time.Since(began), listing.size())
	return listing, nil
}

// rested has lists of so many bytes, which have taken so long, not be read again for a while.
func (h *history) rested(took time.Duration, size int) {
	h.rests, h.large = time.Now().Add(min(max(restful*took, time.Duration(size)*restByte), longestRest)), size > largeList
}

// idle waits until somebody wants the server reached, and reports false where ctx is done
// first.
func (s *server) idle(ctx context.Context) bool {
	s.set(nil, State{Idle: true})
	select {
	case <-s.wanted:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *server) want() {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// wake has an idle server reached, and waits until it is known whether it can be.
func (s *server) wake(ctx context.Context) error {
	s.want()
	select {
	case <-s.begun.closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve connects to the server, and returns why the connection has ended, or could not
// be made.
func (s *server) serve(ctx context.Context) error {
	start := s.place.Start
	if start <= 0 {
		start = defaultStart
	}
	link, listing, err := s.begin(ctx, start)
	if err != nil {
		return err
	}
	defer func() { _ = link.Close() }()
	s.ready = time.Now()
	s.options.Logger.Info("an upstream server is ready", slog.String("upstream", s.place.Name), slog.String("revision", link.Revision()), slog.Int("tools", len(listing.Tools)))
	if listing.Subscribes {
		keeping, leave := context.WithCancel(ctx)
		var kept sync.WaitGroup
		kept.Go(func() { s.subscriptions.keep(keeping, link) })
		defer kept.Wait()
		defer leave()
	}
	for {
		s.set(link, State{Listing: listing, Revision: link.Revision()})
		if err := s.await(ctx, link, listing.TTL); err != nil {
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
func (s *server) await(ctx context.Context, link *Link, ttl time.Duration) error {
	var old <-chan time.Time
	if ttl > 0 {
		timer := time.NewTimer(max(ttl, soonest, time.Until(s.rests)))
		defer timer.Stop()
		old = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-link.Dead():
		return link.Err()
	case <-old:
		return nil
	case <-s.stale:
	}
	select { // several lists change at once, and some without an end
	case <-ctx.Done():
	case <-link.Dead():
		return link.Err()
	case <-time.After(s.wait()):
	}
	select {
	case <-s.stale:
	default:
	}
	s.read = time.Now()
	return nil
}

// wait returns how long it is until lists are read that have changed.
func (h *history) wait() time.Duration {
	if h.calm = min(2*h.calm, soonest); time.Since(h.read) > soonest || h.calm == 0 {
		h.calm = quiet
	}
	return max(h.calm, time.Until(h.rests))
}

// set says how the server is, and tells whoever hears of it where it offers another thing.
func (s *server) set(link *Link, state State) {
	s.mu.Lock()
	before := s.state
	same := reflect.DeepEqual(before.Listing, state.Listing)
	if same {
		state.Listing = before.Listing // which others know
	}
	if state.Since = time.Now(); !before.Since.IsZero() && (before.Listing == nil) == (state.Listing == nil) {
		state.Since = before.Since
	}
	s.link, s.state = link, state
	s.mu.Unlock()
	s.settled.close()
	if !state.Idle {
		s.begun.close()
	}
	if state.Idle != before.Idle || !same {
		s.listed()
	}
}
