package mcp

import (
	"context"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// listen acknowledges the subscription, sends what changes until the client
// goes or the server drains, and then answers the request.
func listen(ctx context.Context, c *request) (*result, *fault) {
	w, f := c.filterOf(jsontext.Get(c.params, "notifications"))
	if f != nil {
		return nil, f
	}
	if c.origin.emit == nil {
		return nil, invalidParams("the subscription needs a client that accepts text/event-stream")
	}
	caller, err := c.caller()
	if err != nil {
		return nil, c.claimFault(caller, err)
	}
	b := newBell()
	feed := &feed{wake: b.ring}
	changes := c.server.changes
	defer changes.remove(feed)
	changes.listen(ctx, feed, caller, w.lists, [kinds]string{})
	w.agree(ctx, c, feed, caller)
	if c.origin.emit(c.acknowledged(&w)) != nil {
		return nil, nil
	}
	frames := func(n news) []Frame {
		return n.frames(c.subscriptionMeta(), func(id string) Frame { return c.taskFrame(ctx, caller, id) })
	}
	if changes.follow(ctx, feed, b, c.origin.ending, frames, c.origin.emit) != nil || c.tearDown() != nil {
		return nil, nil
	}
	return &result{meta: appendValue(nil, keySubscriptionID, c.id)}, nil
}

// tearDown tells a client whose subscriptions share one channel which of them
// ends (2026-07-28 basic/patterns/cancellation). The answer follows.
func (c *request) tearDown() error {
	if c.origin.mirrored {
		return nil
	}
	params := appendValue(c.subscriptionMeta(), "requestId", c.id)
	return c.origin.emit(notification("notifications/cancelled", appendText(params, "reason", "the server is shutting down")))
}

// acknowledged tells the client what it will hear of: what it asked for, as
// far as the server has it and the caller may see it.
func (c *request) acknowledged(w *filter) Frame {
	return notification("notifications/subscriptions/acknowledged", appendValue(c.subscriptionMeta(), "notifications", w.object()))
}

// taskFrame tells how a task is; there is none for one that is gone.
func (c *request) taskFrame(ctx context.Context, caller identity.Caller, id string) Frame {
	t, e := c.server.tasks.Task(ctx, caller, id)
	if e != nil {
		return Frame{}
	}
	return notification("notifications/tasks", t.appendTo(c.subscriptionMeta(), c, caller, true))
}

// subscriptionMeta returns the member _meta that all of a subscription's
// notifications carry.
func (c *request) subscriptionMeta() []byte {
	b := append([]byte{}, `"_meta":{`...)
	return append(appendValue(b, keySubscriptionID, c.id), '}')
}
