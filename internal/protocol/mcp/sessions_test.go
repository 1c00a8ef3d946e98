package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
)

func principal(id string) identity.Principal {
	p := identity.Anonymous()
	p.ID = id
	return p
}

// open adds a session of the principal.
func open(t *testing.T, s *sessions, p string) *session {
	t.Helper()
	n := newSession(principal(p), newestLegacy, "")
	if !s.add(n) {
		t.Fatal("there is no room for the session")
	}
	return n
}

func isOver(n *session) bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

func TestSessions_principal(t *testing.T) {
	s := newSessions(10, time.Hour, func(*session) {})
	n := open(t, s, "alice")
	if s.find(n.id, principal("alice")) != n {
		t.Error("the session is not found by its principal")
	}
	if s.find(n.id, principal("bob")) != nil {
		t.Error("the session is found by another principal")
	}
	other := principal("alice")
	other.Issuer = "https://elsewhere"
	if s.find(n.id, other) != nil {
		t.Error("the session is found by a principal of another issuer")
	}
	bound := principal("alice")
	bound.Agent = "bot"
	if s.find(n.id, bound) != nil {
		t.Error("the session is found by a credential that is bound to an agent")
	}
	if s.find("made up", principal("alice")) != nil {
		t.Error("a session is found that there is not")
	}
}

func TestSessions_expire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(10, time.Hour, func(*session) {})
		idle, used, busy := open(t, s, "a"), open(t, s, "a"), open(t, s, "a")
		_, end, f := busy.calls.add(context.Background(), []byte("1"))
		if f != nil {
			t.Fatal(f)
		}
		time.Sleep(40 * time.Minute)
		s.find(used.id, principal("a"))
		time.Sleep(40 * time.Minute)
		if s.find(idle.id, principal("a")) != nil || !isOver(idle) {
			t.Error("the idle session lives on")
		}
		if s.find(used.id, principal("a")) == nil || isOver(used) {
			t.Error("the session that was used has ended")
		}
		if isOver(busy) {
			t.Error("the session with a call under way has ended")
		}
		end()
		time.Sleep(2 * time.Hour)
		if s.find(busy.id, principal("a")) != nil {
			t.Error("the session lives on though its call has ended")
		}
	})
}

func TestSessions_evictsLongestIdle(t *testing.T) {
	s := newSessions(2, time.Hour, func(*session) {})
	first, second := open(t, s, "a"), open(t, s, "a")
	s.find(first.id, principal("a"))
	third := open(t, s, "a")
	if !isOver(second) || isOver(first) || isOver(third) {
		t.Error("it was not the session idle longest that ended")
	}
	for i, n := range []*session{first, third} {
		if !n.attach(&Stream{wakeup: newSignal()}) {
			t.Fatalf("session %d takes no stream", i)
		}
	}
	if s.add(newSession(principal("a"), newestLegacy, "")) {
		t.Error("there was room though all sessions are busy")
	}
}

func TestSessions_removeCancelsCalls(t *testing.T) {
	s := newSessions(2, time.Hour, func(*session) {})
	n := open(t, s, "a")
	ctx, end, f := n.calls.add(context.Background(), []byte("1"))
	if f != nil {
		t.Fatal(f)
	}
	defer end()
	s.remove(n)
	s.remove(n)
	if context.Cause(ctx) != ErrSessionEnded {
		t.Errorf("the call goes on: %v", context.Cause(ctx))
	}
}

func TestSession_newestStream(t *testing.T) {
	n := newSession(principal("a"), newestLegacy, "")
	first, second := &Stream{wakeup: newSignal()}, &Stream{wakeup: newSignal()}
	n.attach(first)
	n.attach(second)
	if n.isNewest(first) || !n.isNewest(second) {
		t.Error("it is not the second stream")
	}
	n.detach(second)
	if !n.isNewest(first) {
		t.Error("the first stream did not take over")
	}
	for range maxStreams - 1 {
		n.attach(&Stream{wakeup: newSignal()})
	}
	if n.attach(&Stream{wakeup: newSignal()}) {
		t.Error("there is no end to the streams of a session")
	}
}

func TestInflight_cancelByID(t *testing.T) {
	for _, test := range []struct {
		name, id, cancelled string
		want                bool
	}{
		{"the same number", `1`, `1`, true},
		{"the same text", `"a"`, `"a"`, true},
		{"the same text, escaped", `"\u0061"`, `"a"`, true},
		{"a number is no text", `1`, `"1"`, false},
		{"a text is no number", `"1"`, `1`, false},
		{"a quote alone", `"\""`, `""`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls inflight
			ctx, end, f := calls.add(context.Background(), []byte(test.id))
			if f != nil {
				t.Fatal(f)
			}
			defer end()
			calls.cancel([]byte(test.cancelled), nil)
			if got := ctx.Err() != nil; got != test.want {
				t.Errorf("cancelled: %v", got)
			}
		})
	}
}

func TestInflight_max(t *testing.T) {
	var calls inflight
	for i := range maxInflight {
		_, end, f := calls.add(context.Background(), appendNumber(nil, float64(i)))
		if f != nil {
			t.Fatal(f)
		}
		defer end()
	}
	if _, _, f := calls.add(context.Background(), []byte("-1")); f == nil || f.refusal != Unavailable {
		t.Errorf("the fault is %v", f)
	}
}

// TestSessions_evictsOwnSession: those that are idle longest are its own.
func TestSessions_evictsOwnSession(t *testing.T) {
	s := newSessions(10, time.Hour, func(*session) {})
	first, second := open(t, s, "alice"), open(t, s, "bob")
	oldest := open(t, s, "mallory")
	bound := newSession(principal("mallory"), newestLegacy, "")
	bound.principal.Agent = "bot"
	if !s.add(bound) {
		t.Fatal("there is no room")
	}
	for range 20 {
		open(t, s, "mallory")
	}
	if isOver(first) || isOver(second) || !isOver(oldest) || !isOver(bound) {
		t.Error("who has few sessions has lost one, or who has many keeps what it used longest ago")
	}
	third := open(t, s, "carol")
	if isOver(first) || isOver(second) || isOver(third) || s.len() != 10 {
		t.Errorf("of %d sessions those of others made room for carol's", s.len())
	}
}

// TestSessions_allBusy, and others still do.
func TestSessions_allBusy(t *testing.T) {
	s := newSessions(5, time.Hour, func(*session) {})
	idle := open(t, s, "alice")
	for range 4 {
		if _, _, f := open(t, s, "mallory").calls.add(context.Background(), []byte("1")); f != nil {
			t.Fatal(f)
		}
	}
	if s.add(newSession(principal("mallory"), newestLegacy, "")) || isOver(idle) {
		t.Error("who has most sessions, all busy, got another")
	}
	open(t, s, "bob")
	if !isOver(idle) || s.len() != 5 {
		t.Error("the session that is idle did not make room for another principal's")
	}
}

// TestInflight_endOnce: a request that was left ends
// once for its client, and once for the goroutine that it held.
func TestInflight_endOnce(t *testing.T) {
	var calls inflight
	id := []byte(`1`)
	first, end, f := calls.add(t.Context(), id)
	if f != nil {
		t.Fatal(f)
	}
	if _, _, f := calls.add(t.Context(), id); f == nil {
		t.Error("two requests with one id are under way")
	}
	end()
	second, _, f := calls.add(t.Context(), id)
	if f != nil {
		t.Fatal(f)
	}
	end()
	if calls.len() != 1 || first.Err() == nil || second.Err() != nil {
		t.Errorf("%d requests, the first: %v, the second: %v", calls.len(), first.Err(), second.Err())
	}
	calls.cancel(id, []byte(`"enough"`))
	cause := context.Cause(second)
	if c, ok := errors.AsType[*Cancelled](cause); !ok || c.Reason != "enough" || strings.Contains(cause.Error(), "enough") {
		t.Errorf("the second cannot be cancelled: %v", cause)
	}
}
