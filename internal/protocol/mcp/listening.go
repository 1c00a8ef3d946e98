package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// listen begins to compare the lists that the caller sees with those the
// listener knows: seen are the hashes of those its client was given last;
// where one is empty, the listener knows the present list. A feed that listens
// already begins anew; each listen is taken back by mute, or all by remove.
func (c *changes) listen(ctx context.Context, f *feed, caller identity.Caller, lists kindSet, seen [kinds]string) {
	c.mu.Lock()
	f.caller, f.lists, f.hashes = caller, lists, seen
	f.listening++
	if !f.ended {
		c.feeds[f] = struct{}{}
	}
	c.mu.Unlock()

	aside(func() { c.lookFor(ctx, f, caller, lists) })
}

// lookFor compares the lists for a feed that has just begun to listen.
func (c *changes) lookFor(ctx context.Context, f *feed, caller identity.Caller, lists kindSet) {
	c.looking.Lock()
	defer c.looking.Unlock()
	var differ kindSet
	for k := range call.Kind(kinds) {
		if lists.has(k) && c.compare(f, k, c.backend.List(ctx, k, caller).Hash) {
			differ |= setOf(k)
		}
	}
	c.tellKinds(f, differ)
}

// aside does something on a stack of its own: goroutines that wait for as long as
// their clients stay keep the stack that they once had. It panics as do does.
func aside(do func()) {
	failed := make(chan any, 1)
	go func() {
		defer func() { failed <- recover() }()
		do()
	}()
	if cause := <-failed; cause != nil {
		panic(cause)
	}
}

// identify tells whose feed it is, before anything is compared for it.
func (c *changes) identify(f *feed, caller identity.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.caller = caller
}

// mute takes back one listen. What the feed is still to be told stays, and so
// do the resources it wants to hear of.
func (c *changes) mute(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.listening--; f.listening == 0 {
		delete(c.feeds, f)
	}
}

// subscribe has a feed hear of a topic; false means that it hears of too many.
func (c *changes) subscribe(f *feed, t topic) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := f.topics[t]; known || f.ended {
		return true
	}
	if len(f.topics) >= maxSubscriptions {
		return false
	}
	if f.topics == nil {
		f.topics = map[topic]struct{}{}
	}
	f.topics[t] = struct{}{}
	if c.byTopic[t] == nil {
		c.byTopic[t] = map[*feed]struct{}{}
		if follower, ok := c.backend.(Follower); ok && !t.isTask {
			c.leave[t.name] = follower.Follow(t.name)
		}
	}
	c.byTopic[t][f] = struct{}{}
	return true
}

// unsubscribe takes back a subscribe; one that never was is as good as taken back.
func (c *changes) unsubscribe(f *feed, t topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(f, t)
}

// forget is unsubscribe for those that hold mu.
func (c *changes) forget(f *feed, t topic) {
	delete(f.topics, t)
	delete(c.byTopic[t], f)
	if len(c.byTopic[t]) == 0 {
		delete(c.byTopic, t)
		if !t.isTask {
			delete(c.touched, t.name)
			if leave := c.leave[t.name]; leave != nil {
				leave()
				delete(c.leave, t.name)
			}
		}
	}
}

// remove ends a feed.
func (c *changes) remove(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.ended = true
	delete(c.feeds, f)
	for t := range f.topics {
		c.forget(f, t)
	}
}

// take returns what the feed is to be told, which it is then no more.
func (c *changes) take(f *feed) (n news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, f.news = f.news, news{}
	return n
}

// follow sends what the feed is told, as frames, at each ring, until over is
// closed, and returns nil then. When ctx has ended or send fails, it returns
// that error.
func (c *changes) follow(ctx context.Context, f *feed, b bell, over <-chan struct{}, frames func(news) []Frame, send func(Frame) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return context.Cause(ctx)
		case <-b:
		}
		for _, frame := range frames(c.take(f)) {
			if err := send(frame); err != nil {
				return err
			}
		}
	}
}
