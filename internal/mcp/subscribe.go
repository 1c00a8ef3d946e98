package mcp

import "context"

// subscriptions lets modern clients listen for changes (2026-07-28
// basic/patterns/subscriptions).
func subscriptions() feature {
	return feature{methods: []method{{name: "subscriptions/listen", eras: modern, slow: true, serve: listen}}}
}

// filter is what a modern client wants to hear of.
type filter struct {
	tools, resources, prompts bool
	// uris are resources; named says that the client named any.
	uris  []string
	named bool
}

// filterOf reads params.notifications.
func filterOf(object []byte) (w filter, f *fault) {
	if !isObject(object) {
		return w, invalidParams("params.notifications must be an object")
	}
	wants := func(name string) bool { return string(member(object, name)) == "true" }
	w.tools, w.resources, w.prompts = wants("toolsListChanged"), wants("resourcesListChanged"), wants("promptsListChanged")
	named := member(object, "resourceSubscriptions")
	if isNull(named) {
		return w, nil
	}
	list, ok := elements(named)
	for w.named = true; ok; {
		element, more := list.element()
		if !more {
			return w, nil
		}
		uri, isText := text(element)
		if ok = isText; ok {
			w.uris = append(w.uris, uri)
		}
	}
	return w, invalidParams("params.notifications.resourceSubscriptions must be a list of strings")
}

// lists returns the kinds whose lists the client wants to hear of.
func (w *filter) lists() (s kindSet) {
	if w.tools {
		s |= setOf(Tools)
	}
	if w.resources {
		s |= setOf(Resources, Templates)
	}
	if w.prompts {
		s |= setOf(Prompts)
	}
	return s
}

// listen acknowledges the subscription, sends what changes until the client
// goes or the server drains, and then answers the request.
func listen(ctx context.Context, c *call) (*result, *fault) {
	w, f := filterOf(member(c.params, "notifications"))
	if f != nil {
		return nil, f
	}
	if c.origin.emit == nil {
		return nil, invalidParams("the subscription needs a client that accepts text/event-stream")
	}
	caller, err := c.caller()
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	b := newBell()
	feed := &feed{wake: b.ring}
	changes := c.server.changes
	defer changes.remove(feed)
	changes.listen(ctx, feed, caller, w.lists(), [kinds]string{})
	agreed := w.uris[:0]
	for _, uri := range w.uris {
		if c.server.backend.Serves(ctx, caller, uri) && changes.subscribe(feed, uri) {
			agreed = append(agreed, uri)
		}
	}
	w.uris = agreed
	if c.origin.emit(c.acknowledged(&w)) != nil {
		return nil, nil
	}
	if changes.follow(ctx, feed, b, c.origin.ending, c.subscriptionMeta(), c.origin.emit) != nil || c.tearDown() != nil {
		return nil, nil
	}
	return &result{meta: appendValue(nil, keySubscriptionID, c.id)}, nil
}

// tearDown tells a client whose subscriptions share one channel which of them
// ends (2026-07-28 basic/patterns/cancellation). The answer follows.
func (c *call) tearDown() error {
	if c.origin.mirrored {
		return nil
	}
	params := appendValue(c.subscriptionMeta(), "requestId", c.id)
	return c.origin.emit(notification("notifications/cancelled", appendText(params, "reason", "the server is shutting down")))
}

// acknowledged tells the client what it will hear of: what it asked for, as
// far as the server has it and the caller may see it.
func (c *call) acknowledged(w *filter) Frame {
	b := append(c.subscriptionMeta(), `,"notifications":{`...)
	for _, list := range [...]struct {
		name   string
		wanted bool
	}{{"toolsListChanged", w.tools}, {"promptsListChanged", w.prompts}, {"resourcesListChanged", w.resources}} {
		if list.wanted {
			b = appendValue(b, list.name, []byte("true"))
		}
	}
	if w.named && len(w.uris) == 0 {
		b = appendValue(b, "resourceSubscriptions", []byte("[]"))
	}
	b = appendTexts(b, "resourceSubscriptions", w.uris)
	return notification("notifications/subscriptions/acknowledged", append(b, '}'))
}

// subscriptionMeta returns the member _meta that all of a subscription's
// notifications carry.
func (c *call) subscriptionMeta() []byte {
	b := append([]byte{}, `"_meta":{`...)
	return append(appendValue(b, keySubscriptionID, c.id), '}')
}
