package mcp

import (
	"context"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// readAgainAfter is the time until the state of a task is read again that could not be read.
const readAgainAfter = time.Second

// listen acknowledges the subscription, sends changes until the client
// disconnects or the server drains, and then answers the request.
func listen(ctx context.Context, req *request) (*result, *fault) {
	w, f := req.filterOf(jsontext.Get(req.params, "notifications"))
	if f != nil {
		return nil, f
	}
	if req.origin.emit == nil {
		return nil, invalidParams("the subscription needs a client that accepts text/event-stream")
	}
	caller, err := req.caller()
	if err != nil {
		return nil, req.claimFault(caller, err)
	}
	b := newSignal()
	feed := &feed{wake: b.notify}
	changes := req.server.notifier
	defer changes.remove(feed)
	changes.listen(ctx, feed, caller, w.lists, [kinds]string{})
	defer w.restrict(ctx, req, feed, caller)()
	// The client's filter, without what the server lacks or the caller may not
	// see.
	if req.origin.emit(notification("notifications/subscriptions/acknowledged", appendValue(req.subscriptionMeta(), "notifications", w.object()))) != nil {
		return nil, nil
	}
	frames := func(n notices) []Frame {
		return n.frames(req.subscriptionMeta(), func(id string) Frame {
			t, e := req.server.tasks.Task(ctx, caller, id)
			if e != nil && e.Code != call.ToolNotFound { // the store is away, and this may be the last change
				time.AfterFunc(readAgainAfter, func() { changes.notifyTopic(feed, topic{isTask: true, name: id}) })
			}
			if e != nil {
				return Frame{}
			}
			return notification("notifications/tasks", t.appendTo(req.subscriptionMeta(), req, caller, true))
		})
	}
	if changes.forward(ctx, feed, b, req.origin.ending, frames, req.origin.emit) != nil {
		return nil, nil
	}
	if !req.origin.mirrored { // subscriptions share a channel (2026-07-28 basic/patterns/cancellation)
		params := appendText(appendValue(req.subscriptionMeta(), "requestId", req.id), "reason", "the server is shutting down")
		if req.origin.emit(notification("notifications/cancelled", params)) != nil {
			return nil, nil
		}
	}
	return &result{meta: appendValue(nil, keySubscriptionID, req.id)}, nil
}

// subscriptionMeta returns the member _meta of a subscription's notifications.
func (req *request) subscriptionMeta() []byte {
	b := append([]byte{}, `"_meta":{`...)
	return append(appendValue(b, keySubscriptionID, req.id), '}')
}

// subscriptionFilter names the subscriptions of a modern client (2026-07-28
// basic/patterns/subscriptions, Notification Filter; SEP-2663, Task Status
// Notifications).
type subscriptionFilter struct {
	lists       kindSet
	uris, tasks names
}

// listFilters returns the members of a filter for lists, in wire order.
func listFilters() [3]listFilter {
	return [...]listFilter{
		{"toolsListChanged", setOf(call.Tools)},
		{"promptsListChanged", setOf(call.Prompts)},
		{"resourcesListChanged", setOf(call.Resources, call.Templates)},
	}
}

type listFilter struct {
	name  string
	kinds kindSet
}

// names is a list from a client; present is true if the member exists, even if
// it is empty.
type names struct {
	list    []string
	present bool
}

func (req *request) filterOf(object []byte) (sf subscriptionFilter, f *fault) {
	if !jsontext.IsObject(object) {
		return sf, invalidParams("params.notifications must be an object")
	}
	for _, list := range listFilters() {
		switch value := jsontext.Get(object, list.name); {
		case string(value) == "true":
			sf.lists |= list.kinds
		case !jsontext.IsNull(value) && string(value) != "false":
			return sf, invalidParams("params.notifications." + list.name + " must be true or false")
		}
	}
	if sf.uris, f = namesOf(object, "resourceSubscriptions"); f != nil || req.server.tasks == nil {
		return sf, f
	}
	if sf.tasks, f = namesOf(object, "taskIds"); f == nil && sf.tasks.present {
		f = req.mayUseTasks()
	}
	return sf, f
}

func namesOf(object []byte, name string) (n names, f *fault) {
	value := jsontext.Get(object, name)
	if jsontext.IsNull(value) {
		return n, nil
	}
	list, ok := jsontext.Elements(value)
	for n.present = true; ok; {
		element, more := list.Element()
		if !more {
			return n, nil
		}
		var s string
		if s, ok = jsontext.Text(element); ok {
			n.list = append(n.list, s)
		}
	}
	return n, invalidParams("params.notifications." + name + " must be a list of strings")
}

// restrict subscribes the feed to the topics that the caller may see, and
// removes the others from the filter. It notifies the state of each task at
// once, because the task may have ended by now. The caller calls leave at the
// end of the subscription.
func (sf *subscriptionFilter) restrict(ctx context.Context, req *request, f *feed, caller identity.Caller) (leave func()) {
	changes, followed := req.server.notifier, map[string]func(){}
	sf.uris.list = slices.DeleteFunc(sf.uris.list, func(uri string) bool {
		return !req.server.backend.CanRead(ctx, caller, uri) || !changes.subscribe(f, topic{name: uri})
	})
	sf.tasks.list = slices.DeleteFunc(sf.tasks.list, func(id string) bool {
		_, e := req.server.tasks.Task(ctx, caller, id)
		t := topic{isTask: true, name: id}
		if e != nil || !changes.subscribe(f, t) {
			return true
		}
		if followed[id] == nil {
			followed[id] = req.server.tasks.FollowTask(ctx, caller, id)
		}
		changes.notifyTopic(f, t)
		return false
	})
	return func() {
		for _, leave := range followed {
			leave()
		}
	}
}

// object returns the filter in the form that clients send.
func (sf *subscriptionFilter) object() []byte {
	b := []byte{'{'}
	for _, list := range listFilters() {
		if sf.lists&list.kinds != 0 {
			b = appendValue(b, list.name, []byte("true"))
		}
	}
	b = sf.uris.appendTo(b, "resourceSubscriptions")
	return append(sf.tasks.appendTo(b, "taskIds"), '}')
}

func (n *names) appendTo(dst []byte, name string) []byte {
	if n.present && len(n.list) == 0 {
		return appendValue(dst, name, []byte("[]"))
	}
	return appendTexts(dst, name, n.list)
}

// maxSubscriptions bounds the topics of one listener.
const maxSubscriptions = 256

// kindSet is a set of kinds.
type kindSet uint8

const everyKind kindSet = 1<<kinds - 1

func (s kindSet) has(k call.Kind) bool { return s&(1<<k) != 0 }

func setOf(all ...call.Kind) (s kindSet) {
	for _, k := range all {
		s |= 1 << k
	}
	return s
}

// feed holds the pending notifications of one listener: a legacy session or a
// subscription.
type feed struct {
	// wake is called when notifications are pending. It must not block.
	wake func()

	// guarded by changes.mu

	caller identity.Caller
	// lists are the kinds of subscribed lists; topics are the other
	// subscriptions.
	lists  kindSet
	topics map[topic]struct{}
	// hashes are the hashes of the last notified lists; empty if unknown.
	hashes [kinds]string
	// listening is the number of calls of listen without unlisten.
	listening int
	ended     bool
	pending   notices
}

// topic is a resource, by URI, or a task, by id.
type topic struct {
	isTask bool
	name   string
}

// notices are the pending notifications of a listener.
type notices struct {
	lists  kindSet
	topics []topic
}

// frames returns the notifications as frames. meta is the member _meta of their
// params; empty for none. task returns the frame of a task; a zero frame is
// skipped.
func (n notices) frames(meta []byte, task func(id string) Frame) (frames []Frame) {
	for _, list := range [...]struct {
		kinds  kindSet
		method string
	}{
		{setOf(call.Tools), "notifications/tools/list_changed"},
		{setOf(call.Resources, call.Templates), "notifications/resources/list_changed"},
		{setOf(call.Prompts), "notifications/prompts/list_changed"},
	} {
		if n.lists&list.kinds != 0 {
			frames = append(frames, notification(list.method, meta))
		}
	}
	for _, t := range n.topics {
		if !t.isTask {
			params := appendText(append([]byte(nil), meta...), "uri", t.name)
			frames = append(frames, notification("notifications/resources/updated", params))
		} else if f := task(t.name); !f.IsZero() {
			frames = append(frames, f)
		}
	}
	return frames
}

// legacyFrames returns the notifications for a session, which has no tasks.
func (n notices) legacyFrames() []Frame { return n.frames(nil, nil) }

// signal wakes one goroutine, once for any number of calls of notify.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// subscribeResource subscribes a legacy session to a resource (2025-11-25
// server/resources, Subscriptions).
func subscribeResource(ctx context.Context, req *request) (*result, *fault) {
	uri, f := req.subscribedURI()
	if f != nil {
		return nil, f
	}
	r := &call.Request{Kind: call.Resources, Name: uri}
	var err error
	if r.Caller, err = req.caller(); err != nil {
		return nil, req.claimFault(r.Caller, err)
	}
	if !req.server.backend.CanRead(ctx, r.Caller, uri) {
		return nil, req.notFound(r, &call.Error{Code: call.ToolNotFound, Message: "there is no resource of this URI"})
	}
	session := req.origin.session
	req.server.notifier.setCaller(&session.feed, r.Caller)
	if !req.server.notifier.subscribe(&session.feed, topic{name: uri}) {
		return nil, invalidParams("the session is subscribed to too many resources")
	}
	return &result{}, nil
}

func unsubscribeResource(_ context.Context, req *request) (*result, *fault) {
	uri, f := req.subscribedURI()
	if f != nil {
		return nil, f
	}
	req.server.notifier.unsubscribe(&req.origin.session.feed, topic{name: uri})
	return &result{}, nil
}

func (req *request) subscribedURI() (string, *fault) {
	uri, ok := jsontext.Text(jsontext.Get(req.params, "uri"))
	if !ok || uri == "" {
		return "", invalidParams("params.uri must be a string that is not empty")
	}
	return uri, nil
}
