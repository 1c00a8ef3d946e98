// Package changes tells the subscribers of a server what has changed: the snapshot, and resources of
// upstream servers. What only one replica can hear of is sent to the others with a message: each
// replica reads the files and lists the upstream servers itself, but an upstream server that runs in
// several processes reports the change of a resource only to the clients of one of them.
package changes

import (
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/internal/base/state"
)

// Changes are the subscribers of a server. They are safe for concurrent use.
type Changes struct {
	// Fixed at creation.
	logger  *slog.Logger
	publish func(topic state.Topic, names ...string)

	mu        sync.Mutex
	functions map[int]func(changed []string)
	next      int
}

// New returns changes without subscribers. publish sends messages to the other replicas, without
// blocking.
func New(logger *slog.Logger, publish func(topic state.Topic, names ...string)) *Changes {
	return &Changes{logger: logger, publish: publish, functions: map[int]func([]string){}}
}

// Subscribe calls fn with the URIs of changed resources after each change, until stop is called. fn
// must not block.
func (c *Changes) Subscribe(fn func(changed []string)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next++
	c.functions[id] = fn
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.functions, id)
	}
}

// Notify calls all subscribers of this replica, one after the other. It logs and recovers their
// panics.
func (c *Changes) Notify(changed []string) {
	c.mu.Lock()
	functions := slices.Collect(maps.Values(c.functions))
	c.mu.Unlock()
	for _, fn := range functions {
		c.call(fn, changed)
	}
}

func (c *Changes) call(fn func(changed []string), changed []string) {
	defer func() {
		if recover() != nil {
			c.logger.Error("recover panic in subscriber", slog.String("stack", string(debug.Stack())))
		}
	}()
	fn(changed)
}

// UpstreamUpdated notifies the subscribers of all replicas that upstream servers have changed
// resources.
func (c *Changes) UpstreamUpdated(uris []string) {
	c.Notify(uris)
	c.publish(state.ResourceUpdated, uris...)
}

// Receive handles a message of another replica. watched returns the resources of upstream servers
// that are watched here: any of them may have changed if the message names none.
func (c *Changes) Receive(m state.Message, watched func() []string) {
	switch {
	case m.Topic != state.ResourceUpdated && m != (state.Message{}):
	case m.Name != "":
		c.Notify([]string{m.Name})
	default:
		c.Notify(watched())
	}
}
