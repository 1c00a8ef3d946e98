package upstream

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxSubscriptions is how many resources of a server are subscribed to at once.
	maxSubscriptions = 1000
	// subscribeTime is how long a server may take to agree to a subscription.
	subscribeTimeout = 10 * time.Second
)

// subscriptions are the resources of a server that somebody wants to hear of, whether or
// not it can be reached. They are safe for concurrent use.
type subscriptions struct {
	changed chan struct{} // holds a token while others are wanted than before

	mu     sync.Mutex
	wanted map[string]int // by URI: how many links were lost while it was asked for, since it was agreed to
}

func newSubscriptions(wanted []string) *subscriptions {
	s := &subscriptions{changed: make(chan struct{}, 1), wanted: map[string]int{}}
	for _, uri := range wanted {
		s.wanted[uri] = 0
	}
	return s
}

// add has the server tell of a resource. It does nothing where there are too many.
func (s *subscriptions) add(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wanted) < maxSubscriptions {
		s.wanted[uri] = 0
		s.notify()
	}
}

func (s *subscriptions) remove(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, uri)
	s.notify()
}

func (s *subscriptions) confirmed(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wanted := s.wanted[uri]; wanted {
		s.wanted[uri] = 0
	}
}

// lost says that a link was lost while a resource was asked for. That may be chance once.
func (s *subscriptions) connectionLost(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wanted := s.wanted[uri]; !wanted {
		return
	}
	if s.wanted[uri]++; s.wanted[uri] > 1 {
		delete(s.wanted, uri)
		s.notify()
	}
}

func (s *subscriptions) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *subscriptions) wants(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, wants := s.wanted[uri]
	return wants
}

func (s *subscriptions) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.wanted))
}

// keep has the server of a link tell of the resources that are wanted, until ctx is done.
// One that it will not tell of is not asked for again at this link, and one that has cost
// two links, one behind the other, at no other.
func (s *subscriptions) maintain(ctx context.Context, l *Conn) {
	held := map[string]struct{}{}
	var suspects []string // those that may have cost the link: nothing was heard of it behind them
	for {
		wanted := s.all()
		for uri := range held {
			if _, found := slices.BinarySearch(wanted, uri); !found {
				l.unsubscribe(ctx, uri)
				delete(held, uri)
			}
		}
		for _, uri := range wanted {
			if _, known := held[uri]; known || ctx.Err() != nil || l.Err() != nil {
				continue
			}
			held[uri] = struct{}{}
			switch err := l.subscribe(ctx, uri); {
			case err == nil:
				s.confirmed(uri)
				suspects = nil
			case isRPCError(err):
				suspects = nil
			case !errors.Is(err, context.DeadlineExceeded):
				suspects = append(suspects, uri)
			}
		}
		select {
		case <-ctx.Done():
			if l.Err() != nil && len(suspects) > 0 { // that it is lost is known a moment later
				s.connectionLost(suspects[0])
			}
			return
		case <-s.changed:
		}
	}
}

// refuses reports whether an error is what the server answers, or the client library where
// a link is as good as before. One that is lost has another.
func isRPCError(err error) bool {
	_, refuses := errors.AsType[*jsonrpc.Error](err)
	return refuses
}

// subscribe asks the server to tell when a resource changes.
func (l *Conn) subscribe(parent context.Context, uri string) error {
	ctx, cancel := context.WithTimeout(parent, subscribeTimeout)
	defer cancel()
	err := l.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	if err != nil && parent.Err() == nil {
		l.options.Logger.Debug("an upstream server does not tell of a resource", slog.String("upstream", l.target.Name), logText("error", err.Error()))
	}
	return err
}

// unsubscribe takes it back. Nobody hears of a resource any more of which the server
// tells in spite of it.
func (l *Conn) unsubscribe(ctx context.Context, uri string) {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	_ = l.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
}
