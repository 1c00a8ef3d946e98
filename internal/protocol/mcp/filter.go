package mcp

import (
	"context"
	"slices"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// filter is what a modern client subscribes to (2026-07-28
// basic/patterns/subscriptions, Notification Filter; SEP-2663, Task Status
// Notifications).
type filter struct {
	lists       kindSet
	uris, tasks names
}

// listFilters returns the members of a filter that stand for lists, in wire order.
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

// names are what a client named; given is true if the member exists, even if it is empty.
type names struct {
	list  []string
	given bool
}

// filterOf reads params.notifications.
func (c *request) filterOf(object []byte) (w filter, f *fault) {
	if !jsontext.IsObject(object) {
		return w, invalidParams("params.notifications must be an object")
	}
	for _, list := range listFilters() {
		switch value := jsontext.Get(object, list.name); {
		case string(value) == "true":
			w.lists |= list.kinds
		case !jsontext.IsNull(value) && string(value) != "false":
			return w, invalidParams("params.notifications." + list.name + " must be true or false")
		}
	}
	if w.uris, f = namesOf(object, "resourceSubscriptions"); f != nil || c.server.tasks == nil {
		return w, f
	}
	if w.tasks, f = namesOf(object, "taskIds"); f == nil && w.tasks.given {
		f = c.mayUseTasks()
	}
	return w, f
}

// namesOf reads a list of strings.
func namesOf(object []byte, name string) (n names, f *fault) {
	value := jsontext.Get(object, name)
	if jsontext.IsNull(value) {
		return n, nil
	}
	list, ok := jsontext.Elements(value)
	for n.given = true; ok; {
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

// agree has the feed hear of the topics that there are for the caller, and
// leaves out the others. Of a task it hears at once how it is: it may have
// ended by now.
func (w *filter) agree(ctx context.Context, c *request, f *feed, caller identity.Caller) {
	changes := c.server.changes
	w.uris.list = slices.DeleteFunc(w.uris.list, func(uri string) bool {
		return !c.server.backend.Serves(ctx, caller, uri) || !changes.subscribe(f, topic{name: uri})
	})
	w.tasks.list = slices.DeleteFunc(w.tasks.list, func(id string) bool {
		_, e := c.server.tasks.Task(ctx, caller, id)
		t := topic{isTask: true, name: id}
		if e != nil || !changes.subscribe(f, t) {
			return true
		}
		changes.update(f, t)
		return false
	})
}

// object returns the filter as the client wrote it.
func (w *filter) object() []byte {
	b := []byte{'{'}
	for _, list := range listFilters() {
		if w.lists&list.kinds != 0 {
			b = appendValue(b, list.name, []byte("true"))
		}
	}
	b = w.uris.appendTo(b, "resourceSubscriptions")
	return append(w.tasks.appendTo(b, "taskIds"), '}')
}

func (n *names) appendTo(dst []byte, name string) []byte {
	if n.given && len(n.list) == 0 {
		return appendValue(dst, name, []byte("[]"))
	}
	return appendTexts(dst, name, n.list)
}
