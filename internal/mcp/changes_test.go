package mcp

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// hashes is a backend that lists nothing but hashes: that of the agent, if it
// has one, or else that of everyone.
type hashes struct {
	mu      sync.Mutex
	byAgent map[string]string
	lists   int
	changed func()
}

func (h *hashes) set(agent, hash string) {
	h.mu.Lock()
	h.byAgent[agent] = hash
	changed := h.changed
	h.mu.Unlock()
	changed()
}

func (h *hashes) List(_ context.Context, _ Kind, c identity.Caller) List {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists++
	if hash, ok := h.byAgent[c.Agent.AgentID]; ok {
		return List{Hash: hash, Private: true}
	}
	return List{Hash: h.byAgent[""], Private: len(h.byAgent) > 1}
}

func (h *hashes) Watch(fn func()) func() {
	h.changed = fn
	return func() { h.changed = func() {} }
}

func (*hashes) Info() Info                             { return Info{} }
func (*hashes) Call(context.Context, Request) Response { return Response{} }

func agent(id string) identity.Caller { return identity.Caller{Agent: identity.Agent{AgentID: id}} }

// told reports whether the feed was told of a change since the last time.
func told(f *feed) bool {
	synctest.Wait()
	select {
	case <-f.tools:
		return true
	default:
		return false
	}
}

const quiet = 20 * time.Millisecond

func TestThoseAreToldWhoseListChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1", "vip": "1"}}
		c := watch(h, quiet)
		defer c.stop()
		everyone, vip := c.add(t.Context(), agent("x"), ""), c.add(t.Context(), agent("vip"), "")
		h.set("vip", "2")
		time.Sleep(quiet)
		if !told(vip) || told(everyone) {
			t.Error("a change for one was not told to that one alone")
		}
		h.set("vip", "2")
		time.Sleep(quiet)
		if told(vip) || told(everyone) {
			t.Error("what is no change was told")
		}
		c.remove(vip)
		h.set("vip", "3")
		time.Sleep(quiet)
		if told(vip) {
			t.Error("one that listens no more was told")
		}
	})
}

func TestManyChangesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "0"}}
		c := watch(h, quiet)
		defer c.stop()
		f := c.add(t.Context(), agent("x"), "")
		for _, hash := range []string{"1", "2", "3", "4"} {
			h.set("", hash)
			time.Sleep(quiet / 5)
		}
		time.Sleep(quiet)
		if !told(f) || told(f) {
			t.Error("the changes were not told once")
		}
		if h.lists > 3 {
			t.Errorf("the list was looked at %d times", h.lists)
		}
	})
}

func TestAListOfEveryoneIsLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "0"}}
		c := watch(h, quiet)
		defer c.stop()
		feeds := make([]*feed, 100)
		for i := range feeds {
			feeds[i] = c.add(t.Context(), agent("x"), "")
		}
		h.lists = 0
		h.set("", "1")
		time.Sleep(quiet)
		for _, f := range feeds {
			if !told(f) {
				t.Fatal("a feed was not told")
			}
		}
		if h.lists != 1 {
			t.Errorf("the list was looked at %d times", h.lists)
		}
	})
}

func TestAListenerThatKnowsAnOlderListIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "2"}}
		c := watch(h, quiet)
		defer c.stop()
		if f := c.add(t.Context(), agent("x"), "1"); !told(f) {
			t.Error("it was not told")
		}
		if f := c.add(t.Context(), agent("x"), "2"); told(f) {
			t.Error("one that knows the list was told")
		}
	})
}

func TestNothingIsToldAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hashes{byAgent: map[string]string{"": "1"}}
		c := watch(h, quiet)
		f := c.add(t.Context(), agent("x"), "")
		h.set("", "2")
		c.stop()
		c.stop()
		h.set("", "3")
		time.Sleep(2 * quiet)
		if told(f) {
			t.Error("it was told")
		}
	})
}
