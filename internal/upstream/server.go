package upstream

import (
	"context"
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
	// quiet is how long a server says nothing more of its lists before they are read again.
	// One that goes on and on saying it is read at times that are twice as far apart each
	// time, up to longestQuiet: whatever it lists anew has all be linked anew, and all
	// clients be told.
	quiet        = 50 * time.Millisecond
	longestQuiet = 10 * time.Second
)

// server is one server of a fleet.
type server struct {
	// Fixed at creation.
	place   Place
	hash    [32]byte
	options Options
	listed  func()
	updated func(uri string)
	stop    context.CancelFunc
	settled chan struct{}
	stale   chan struct{} // holds a token while the server has said that a list has changed

	way way // in which the server was spoken to last; of run alone

	subscriptions *subscriptions

	mu    sync.Mutex
	link  *Link // nil while the server cannot be reached
	state State
	once  sync.Once
}

// changed hears what the server says of itself.
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

// run keeps a connection to the server until ctx is done.
func (s *server) run(ctx context.Context) {
	wait := firstWait
	for ctx.Err() == nil {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			wait = firstWait
		}
		pause := wait/2 + rand.N(wait/2+1)
		why := err.Error() // which may be in words of the server
		s.options.Logger.Warn("an upstream server cannot be reached", slog.String("upstream", s.place.Name), slog.String("error", why[:min(len(why), maxNoise)]), slog.Duration("again_in", pause))
		s.set(nil, State{Err: err, Again: time.Now().Add(pause)})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		wait = min(2*wait, longestWait)
	}
}

// serve connects to the server, and returns why the connection has ended, or could not
// be made.
func (s *server) serve(ctx context.Context) error {
	start := s.place.Start
	if start <= 0 {
		start = defaultStart
	}
	starting, cancel := context.WithTimeout(ctx, start)
	defer cancel()
	link, err := dial(starting, s.place, s.options, s.way)
	if err != nil {
		return err
	}
	s.way = link.way
	defer func() { _ = link.Close() }()
	listing, err := link.List(starting)
	if err != nil {
		return err
	}
	s.options.Logger.Info("an upstream server is ready", slog.String("upstream", s.place.Name), slog.String("revision", link.Revision()), slog.Int("tools", len(listing.Tools)))
	if listing.Subscribes {
		keeping, leave := context.WithCancel(ctx)
		var kept sync.WaitGroup
		kept.Go(func() { s.subscriptions.keep(keeping, link) })
		defer kept.Wait()
		defer leave()
	}
	for apart := quiet; ; apart = min(2*apart, longestQuiet) {
		s.set(link, State{Listing: listing, Revision: link.Revision()})
		read := time.Now()
		if err := s.await(ctx, link, listing.TTL, read.Add(apart)); err != nil {
			return err
		}
		if time.Since(read) > steady {
			apart = quiet
		}
		again, cancel := context.WithTimeout(ctx, start)
		listing, err = link.List(again)
		cancel()
		if err != nil {
			return err
		}
	}
}

// await waits until the lists are to be read again: not before first, where the server says
// that they have changed. The error is why they cannot be.
func (s *server) await(ctx context.Context, link *Link, ttl time.Duration, first time.Time) error {
	var old <-chan time.Time
	if ttl > 0 {
		timer := time.NewTimer(max(ttl, soonest))
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
	select { // several lists change at once
	case <-ctx.Done():
	case <-link.Dead():
		return link.Err()
	case <-time.After(max(quiet, time.Until(first))):
	}
	select {
	case <-s.stale:
	default:
	}
	return nil
}

// set says how the server is, and tells whoever hears of it where it offers another thing.
func (s *server) set(link *Link, state State) {
	s.mu.Lock()
	before := s.state
	if state.Since = time.Now(); before.Listing != nil && state.Listing != nil {
		state.Since = before.Since
	}
	s.link, s.state = link, state
	s.mu.Unlock()
	s.once.Do(func() { close(s.settled) })
	if !reflect.DeepEqual(before.Listing, state.Listing) {
		s.listed()
	}
}
