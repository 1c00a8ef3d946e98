package mcp

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// hashes is a backend with lists that have only a hash: the hash for the agent, or
// else the hash for everyone.
type hashes struct {
	mu      sync.Mutex
	byAgent map[string]string
	lists   int
	changed func([]string)
}

func (h *hashes) set(agent, hash string) {
	h.mu.Lock()
	h.byAgent[agent] = hash
	changed := h.changed
	h.mu.Unlock()
	changed(nil)
}

func (h *hashes) List(_ context.Context, _ call.Kind, c identity.Caller) List {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists++
	if hash, ok := h.byAgent[c.Agent.AgentID]; ok {
		return List{Hash: hash, Private: true}
	}
	return List{Hash: h.byAgent[""], Private: len(h.byAgent) > 1}
}

func (h *hashes) Watch(fn func([]string)) func() {
	h.changed = fn
	return func() { h.changed = func([]string) {} }
}

func (*hashes) Find(context.Context, identity.Caller, string) *Entry { return nil }

func (*hashes) WatchResource(string) (leave func()) { return func() {} }

func (*hashes) CanRead(_ context.Context, c identity.Caller, uri string) bool {
	return c.Agent.AgentID == "vip" || uri != "test://secret"
}

func (*hashes) Info() Info                                                  { return Info{} }
func (*hashes) Call(context.Context, call.Request) (r call.Result, t *Task) { return }

func agent(id string) identity.Caller { return identity.Caller{Agent: identity.Agent{AgentID: id}} }

// testListener is a feed with the agent that it belongs to.
type testListener struct {
	*feed
	c    *notifier
	bell signal
}

// listenAs starts listening for an agent's lists of the kinds. seen is the hash of
// the last known list of tools.
func listenAs(t *testing.T, c *notifier, id string, lists kindSet, seen string) *testListener {
	b := newSignal()
	h := &testListener{&feed{wake: b.notify}, c, b}
	c.listen(t.Context(), h.feed, agent(id), lists, [kinds]string{call.Tools: seen})
	return h
}

// notices returns the notices since the last call.
func (l *testListener) notices() notices {
	synctest.Wait()
	select {
	case <-l.bell:
		return l.c.take(l.feed)
	default:
		return notices{}
	}
}

// uris returns the names of the topics.
func (n notices) uris() (names []string) {
	for _, t := range n.topics {
		names = append(names, t.name)
	}
	return names
}

// toolsChanged reports whether the feed was notified of a change of the tools since the
// last call.
func toolsChanged(h *testListener) bool { return h.notices().lists.has(call.Tools) }

const quiet = 20 * time.Millisecond

func TestNotifier_changedListOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1", "vip": "1"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		everyone, vip := listenAs(t, c, "x", setOf(call.Tools), ""), listenAs(t, c, "vip", setOf(call.Tools), "")
		h.set("vip", "2")
		time.Sleep(quiet)
		if !toolsChanged(vip) || toolsChanged(everyone) {
			t.Error("the change was not notified to the affected listener alone")
		}
		h.set("vip", "2")
		time.Sleep(quiet)
		if toolsChanged(vip) || toolsChanged(everyone) {
			t.Error("an unchanged list was notified")
		}
		c.remove(vip.feed)
		h.set("vip", "3")
		time.Sleep(quiet)
		if toolsChanged(vip) {
			t.Error("a listener was notified after unlisten")
		}
	})
}

func TestNotifier_debounces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "0"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		f := listenAs(t, c, "x", setOf(call.Tools), "")
		for _, hash := range []string{"1", "2", "3", "4"} {
			h.set("", hash)
			time.Sleep(quiet / 5)
		}
		time.Sleep(quiet)
		if !toolsChanged(f) || toolsChanged(f) {
			t.Error("the changes were not notified exactly once")
		}
		if h.lists > 3 {
			t.Errorf("the list was read %d times", h.lists)
		}
	})
}

func TestNotifier_sharedListReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "0"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		feeds := make([]*testListener, 100)
		for i := range feeds {
			feeds[i] = listenAs(t, c, "x", setOf(call.Tools), "")
		}
		h.lists = 0
		h.set("", "1")
		time.Sleep(quiet)
		for _, f := range feeds {
			if !toolsChanged(f) {
				t.Fatal("a feed was not notified")
			}
		}
		if h.lists != 1 {
			t.Errorf("the list was read %d times", h.lists)
		}
	})
}

func TestNotifier_olderList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "2"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		if f := listenAs(t, c, "x", setOf(call.Tools), "1"); !toolsChanged(f) {
			t.Error("the listener with an older list was not notified")
		}
		if f := listenAs(t, c, "x", setOf(call.Tools), "2"); toolsChanged(f) {
			t.Error("the listener with the present list was notified")
		}
	})
}

func TestNotifier_stopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1"}}
		c := newNotifier(h, quiet)
		f := listenAs(t, c, "x", setOf(call.Tools), "")
		h.set("", "2")
		c.stop()
		c.stop()
		h.set("", "3")
		time.Sleep(2 * quiet)
		if toolsChanged(f) {
			t.Error("notified after stop")
		}
	})
}

func TestNotifier_subscribedKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		all, prompts := listenAs(t, c, "x", everyKind, ""), listenAs(t, c, "x", setOf(call.Prompts), "")
		h.set("", "2")
		time.Sleep(quiet)
		if got := all.notices().lists; got != everyKind {
			t.Errorf("the listener to all kinds got %b", got)
		}
		if got := prompts.notices().lists; got != setOf(call.Prompts) {
			t.Errorf("the listener to prompts got %b", got)
		}
	})
}

func TestNotifier_readableResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		vip, other := listenAs(t, c, "vip", 0, ""), listenAs(t, c, "x", 0, "")
		for _, l := range []*testListener{vip, other} {
			c.subscribe(l.feed, topic{name: "test://a"})
			c.subscribe(l.feed, topic{name: "test://a"})
			c.subscribe(l.feed, topic{name: "test://secret"})
		}
		h.changed([]string{"test://b", "test://secret", "test://a"})
		h.changed([]string{"test://a"})
		time.Sleep(quiet)
		if got := vip.notices().uris(); !slices.Equal(got, []string{"test://a", "test://secret"}) {
			t.Errorf("the caller that may read both got %q", got)
		}
		if got := other.notices().uris(); !slices.Equal(got, []string{"test://a"}) {
			t.Errorf("the other caller got %q", got)
		}
		c.unsubscribe(vip.feed, topic{name: "test://a"})
		c.remove(other.feed)
		h.changed([]string{"test://a"})
		time.Sleep(quiet)
		if len(vip.notices().uris())+len(other.notices().uris()) > 0 || len(c.byTopic) != 1 {
			t.Error("a listener was notified after unsubscribe")
		}
	})
}

func TestNotifier_maxSubscriptions(t *testing.T) {
	c := newNotifier(&hashes{}, quiet)
	defer c.stop()
	f := &feed{}
	for i := range maxSubscriptions {
		if !c.subscribe(f, topic{name: strconv.Itoa(i)}) {
			t.Fatalf("subscription %d was rejected", i)
		}
	}
	if !c.subscribe(f, topic{name: "0"}) || c.subscribe(f, topic{name: "more"}) {
		t.Error("one subscription over the limit was accepted")
	}
	if c.remove(f); len(c.byTopic) > 0 || !c.subscribe(f, topic{name: "late"}) || len(c.byTopic) > 0 {
		t.Error("an ended feed is stored")
	}
}

func TestNotifier_mergesLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1"}}
		c := newNotifier(h, quiet)
		defer c.stop()
		wakes := 0
		f := &feed{wake: func() { wakes++ }}
		c.listen(t.Context(), f, agent("x"), setOf(call.Resources, call.Templates), [kinds]string{})
		h.set("", "2")
		time.Sleep(quiet)
		synctest.Wait()
		if got := c.take(f).lists; got != setOf(call.Resources, call.Templates) || wakes != 1 {
			t.Errorf("woken %d times for the lists %b; want once, for both", wakes, got)
		}
		c.listen(t.Context(), f, agent("x"), setOf(call.Resources, call.Templates), [kinds]string{call.Resources: "1", call.Templates: "1"})
		if got := c.take(f).lists; got != setOf(call.Resources, call.Templates) || wakes != 2 {
			t.Errorf("the returning listener was woken %d times for the lists %b; want once more, for both", wakes, got)
		}
	})
}

// followed is a backend that records the watched resources.
type followed struct {
	hashes
	log []string
}

func (f *followed) WatchResource(uri string) func() {
	f.log = append(f.log, "follow "+uri)
	return func() { f.log = append(f.log, "leave "+uri) }
}

func TestNotifier_watchesSubscribedResources(t *testing.T) {
	b := &followed{}
	c := newNotifier(b, quiet)
	defer c.stop()
	first, second := &feed{wake: func() {}}, &feed{wake: func() {}}
	note, other := topic{name: "test://note"}, topic{name: "test://other"}
	c.unsubscribe(first, note)
	c.subscribe(first, note)
	c.subscribe(second, note)
	c.subscribe(second, other)
	c.subscribe(second, topic{isTask: true, name: "a task"})
	c.unsubscribe(first, note)
	c.unsubscribe(first, note)
	c.remove(second)
	c.subscribe(first, note)
	slices.Sort(b.log[2:4]) // a feed removes its topics in any order
	want := []string{"follow test://note", "follow test://other", "leave test://note", "leave test://other", "follow test://note"}
	if !slices.Equal(b.log, want) {
		t.Errorf("got %q, want %q", b.log, want)
	}
}
