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
	// maxSubscriptions bounds the subscriptions to resources of a server.
	maxSubscriptions = 1000
	// subscribeTimeout bounds the time to confirm a subscription.
	subscribeTimeout = 10 * time.Second
)

// subscriptions are the wanted subscriptions of a server, connected or not. They are safe for
// concurrent use.
type subscriptions struct {
	changed chan struct{} // holds a token after wanted has changed

	mu     sync.Mutex
	wanted map[string]int // by URI: connections lost during the subscribe request since the last confirmation
}

func newSubscriptions(wanted []string) *subscriptions {
	s := &subscriptions{changed: make(chan struct{}, 1), wanted: map[string]int{}}
	for _, uri := range wanted {
		s.wanted[uri] = 0
	}
	return s
}

// add adds a subscription, up to maxSubscriptions.
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

// connectionLost records that a connection was lost during a subscribe request. The first time
// may be a coincidence.
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

// maintain keeps the subscriptions of a connection up to date, until ctx is done. It does not
// retry a refused one on this connection. It drops one that has cost two connections in a row.
func (s *subscriptions) maintain(ctx context.Context, c *Conn) {
	held := map[string]struct{}{}
	var suspects []string // requests without a later answer: one of them may have cost the connection
	for {
		wanted := s.all()
		for uri := range held {
			if _, found := slices.BinarySearch(wanted, uri); !found {
				c.unsubscribe(ctx, uri)
				delete(held, uri)
			}
		}
		for _, uri := range wanted {
			if _, known := held[uri]; known || ctx.Err() != nil || c.Err() != nil {
				continue
			}
			held[uri] = struct{}{}
			switch err := c.subscribe(ctx, uri); {
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
			if c.Err() != nil && len(suspects) > 0 { // the loss of the connection is known a moment later
				s.connectionLost(suspects[0])
			}
			return
		case <-s.changed:
		}
	}
}

// isRPCError reports whether an error is an answer of the server, or of the client library on a
// working connection.
func isRPCError(err error) bool {
	_, refuses := errors.AsType[*jsonrpc.Error](err)
	return refuses
}

// subscribe subscribes to changes of a resource.
func (c *Conn) subscribe(parent context.Context, uri string) error {
	ctx, cancel := context.WithTimeout(parent, subscribeTimeout)
	defer cancel()
	err := c.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	if err != nil && parent.Err() == nil {
		c.options.Logger.Debug("subscribe to upstream resource", slog.String("upstream", c.target.Name), logText("error", err.Error()))
	}
	return err
}

// unsubscribe ends a subscription. Later notifications about the resource are ignored.
func (c *Conn) unsubscribe(ctx context.Context, uri string) {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	_ = c.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
}
