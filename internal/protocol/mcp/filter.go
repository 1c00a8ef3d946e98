package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// filter is what a modern client wants to hear of (2026-07-28
// basic/patterns/subscriptions, Notification Filter; SEP-2663, Task Status
// Notifications).
type filter struct {
	tools, resources, prompts bool
	uris, tasks               names
}

// names are what a client named; given says that it named any, or none at
// least expressly.
type names struct {
	list  []string
	given bool
}

// filterOf reads params.notifications.
func (c *request) filterOf(object []byte) (w filter, f *fault) {
	if !jsontext.IsObject(object) {
		return w, invalidParams("params.notifications must be an object")
	}
	for _, list := range [...]struct {
		name  string
		wants *bool
	}{{"toolsListChanged", &w.tools}, {"resourcesListChanged", &w.resources}, {"promptsListChanged", &w.prompts}} {
		switch value := jsontext.Get(object, list.name); {
		case string(value) == "true":
			*list.wants = true
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

// lists returns the kinds whose lists the client wants to hear of.
func (w *filter) lists() (s kindSet) {
	if w.tools {
		s |= setOf(call.Tools)
	}
	if w.resources {
		s |= setOf(call.Resources, call.Templates)
	}
	if w.prompts {
		s |= setOf(call.Prompts)
	}
	return s
}

// agree has the feed hear of the topics that there are for the caller, and
// leaves out the others. Of a task it hears at once how it is: it may have
// ended by now.
func (w *filter) agree(ctx context.Context, c *request, f *feed, caller identity.Caller) {
	changes := c.server.changes
	w.uris.keep(func(uri string) bool {
		return c.server.backend.Serves(ctx, caller, uri) && changes.subscribe(f, topic{name: uri})
	})
	w.tasks.keep(func(id string) bool {
		_, e := c.server.tasks.Task(ctx, caller, id)
		t := topic{isTask: true, name: id}
		if e != nil || !changes.subscribe(f, t) {
			return false
		}
		changes.update(f, t)
		return true
	})
}

func (n *names) keep(wanted func(string) bool) {
	kept := n.list[:0]
	for _, name := range n.list {
		if wanted(name) {
			kept = append(kept, name)
		}
	}
	n.list = kept
}

// object returns the filter as the client wrote it.
func (w *filter) object() []byte {
	b := []byte{'{'}
	for _, list := range [...]struct {
		name   string
		wanted bool
	}{{"toolsListChanged", w.tools}, {"promptsListChanged", w.prompts}, {"resourcesListChanged", w.resources}} {
		if list.wanted {
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
