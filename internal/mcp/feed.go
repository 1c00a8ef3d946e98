package mcp

import "github.com/mcpd/mcpd/identity"

// maxSubscriptions bounds the resources that one listener wants to hear of.
const maxSubscriptions = 256

// kindSet is a set of kinds.
type kindSet uint8

const everyKind kindSet = 1<<kinds - 1

func (s kindSet) has(k Kind) bool { return s&(1<<k) != 0 }

func setOf(all ...Kind) (s kindSet) {
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
	// lists are the kinds whose lists it wants to hear of, uris the resources.
	lists kindSet
	uris  map[string]struct{}
	// hashes are those of the lists told of last; empty where none is known.
	hashes [kinds]string
	// listening counts for how many streams lists are compared.
	listening int
	ended     bool
	news      news
}

// news is what a listener is to be told.
type news struct {
	lists kindSet
	uris  []string
}

// frames returns the notifications that tell the news. meta is the member
// _meta of their params; empty for none.
func (n news) frames(meta []byte) (frames []Frame) {
	for _, list := range [...]struct {
		of     kindSet
		method string
	}{
		{setOf(Tools), "notifications/tools/list_changed"},
		{setOf(Resources, Templates), "notifications/resources/list_changed"},
		{setOf(Prompts), "notifications/prompts/list_changed"},
	} {
		if n.lists&list.of != 0 {
			frames = append(frames, notification(list.method, meta))
		}
	}
	for _, uri := range n.uris {
		params := appendText(append([]byte(nil), meta...), "uri", uri)
		frames = append(frames, notification("notifications/resources/updated", params))
	}
	return frames
}

// bell wakes one goroutine, once for any number of rings.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
