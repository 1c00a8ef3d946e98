package mcp

import (
	"github.com/mcpd/mcpd/call"
)

import "github.com/mcpd/mcpd/identity"

// maxSubscriptions bounds the topics that one listener wants to hear of.
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

// feed is one listener: a legacy session, or a subscription. What there is to
// tell it stays with it until it is taken.
type feed struct {
	// wake is called when there is something to take. It must not block.
	wake func()

	// guarded by changes.mu

	caller identity.Caller
	// lists are the kinds whose lists it wants to hear of, topics what else.
	lists  kindSet
	topics map[topic]struct{}
	// hashes are those of the lists told of last; empty where none is known.
	hashes [kinds]string
	// listening counts for how many streams lists are compared.
	listening int
	ended     bool
	news      news
}

// topic is a resource, by its URI, or a task, by its id.
type topic struct {
	isTask bool
	name   string
}

// news is what a listener is to be told.
type news struct {
	lists  kindSet
	topics []topic
}

// frames returns the notifications that tell the news. meta is the member
// _meta of their params; empty for none. task makes the frame of a task; zero
// when there is nothing to tell of it.
func (n news) frames(meta []byte, task func(id string) Frame) (frames []Frame) {
	for _, list := range [...]struct {
		of     kindSet
		method string
	}{
		{setOf(call.Tools), "notifications/tools/list_changed"},
		{setOf(call.Resources, call.Templates), "notifications/resources/list_changed"},
		{setOf(call.Prompts), "notifications/prompts/list_changed"},
	} {
		if n.lists&list.of != 0 {
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

// legacyFrames returns the notifications to a session, which hears of no tasks.
func (n news) legacyFrames() []Frame { return n.frames(nil, nil) }

// bell wakes one goroutine, once for any number of rings.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
