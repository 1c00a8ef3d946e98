package mcp

import "context"

// subscriptions lets modern clients listen for changes (2026-07-28
// basic/patterns/subscriptions).
func subscriptions() feature {
	return feature{methods: []method{{name: "subscriptions/listen", eras: modern, slow: true, serve: listen}}}
}

const toolsChanged = "notifications/tools/list_changed"

// listen acknowledges the subscription, sends what changes until the client
// goes or the server drains, and then answers the request.
func listen(ctx context.Context, c *call) (*result, *fault) {
	filter := member(c.params, "notifications")
	if !isObject(filter) {
		return nil, invalidParams("params.notifications must be an object")
	}
	if c.origin.emit == nil {
		return nil, invalidParams("the subscription needs a client that accepts text/event-stream")
	}
	caller, err := c.caller()
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	wantsTools := string(member(filter, "toolsListChanged")) == "true"
	feed := &feed{}
	if wantsTools {
		feed = c.server.changes.add(ctx, caller, "")
		defer c.server.changes.remove(feed)
	}
	if c.origin.emit(c.acknowledged(wantsTools)) != nil {
		return nil, nil
	}
	err = feed.follow(ctx, either{c.origin.ending}, func() error {
		return c.origin.emit(notification(toolsChanged, c.subscriptionMeta()))
	})
	if err != nil {
		return nil, nil
	}
	return &result{meta: appendValue(nil, keySubscriptionID, c.id)}, nil
}

// acknowledged tells the client what it will hear of: what it asked for, as
// far as the server has it.
func (c *call) acknowledged(tools bool) Frame {
	b := append(c.subscriptionMeta(), `,"notifications":{`...)
	if tools {
		b = append(b, `"toolsListChanged":true`...)
	}
	return notification("notifications/subscriptions/acknowledged", append(b, '}'))
}

// subscriptionMeta returns the member _meta that all of a subscription's
// notifications carry.
func (c *call) subscriptionMeta() []byte {
	b := append([]byte{}, `"_meta":{`...)
	return append(appendValue(b, keySubscriptionID, c.id), '}')
}
