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
		t.Fatal("the session was rejected")
	}
	return n
}

func isOver(sess *session) bool {
	select {
	case <-sess.ended:
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
		t.Error("another principal found the session")
	}
	other := principal("alice")
	other.Issuer = "https://elsewhere"
	if s.find(n.id, other) != nil {
		t.Error("a principal of another issuer found the session")
	}
	bound := principal("alice")
	bound.Agent = "bot"
	if s.find(n.id, bound) != nil {
		t.Error("a credential bound to an agent found the session")
	}
	if s.find("made up", principal("alice")) != nil {
		t.Error("an unknown session was found")
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
			t.Error("the idle session did not end")
		}
		if s.find(used.id, principal("a")) == nil || isOver(used) {
			t.Error("the used session ended")
		}
		if isOver(busy) {
			t.Error("the session with a running call ended")
		}
		end()
		time.Sleep(2 * time.Hour)
		if s.find(busy.id, principal("a")) != nil {
			t.Error("the session did not end after its call")
		}
	})
}

func TestSessions_evictsLongestIdle(t *testing.T) {
	s := newSessions(2, time.Hour, func(*session) {})
	first, second := open(t, s, "a"), open(t, s, "a")
	s.find(first.id, principal("a"))
	third := open(t, s, "a")
	if !isOver(second) || isOver(first) || isOver(third) {
		t.Error("the evicted session was not idle longest")
	}
	for i, n := range []*session{first, third} {
		if !n.attach(&Stream{wakeup: newSignal()}) {
			t.Fatalf("session %d accepts no stream", i)
		}
	}
	if s.add(newSession(principal("a"), newestLegacy, "")) {
		t.Error("a session was added while all are busy")
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
		t.Errorf("the call was not cancelled: %v", context.Cause(ctx))
	}
}

func TestSession_newestStream(t *testing.T) {
	n := newSession(principal("a"), newestLegacy, "")
	first, second := &Stream{wakeup: newSignal()}, &Stream{wakeup: newSignal()}
	n.attach(first)
	n.attach(second)
	if n.isNewest(first) || !n.isNewest(second) {
		t.Error("the newest stream is not the second")
	}
	n.detach(second)
	if !n.isNewest(first) {
		t.Error("the first stream did not take over")
	}
	for range maxStreams - 1 {
		n.attach(&Stream{wakeup: newSignal()})
	}
	if n.attach(&Stream{wakeup: newSignal()}) {
		t.Error("a session accepts too many streams")
	}
}

func TestInflight_cancelByID(t *testing.T) {
	for _, test := range []struct {
		name, id, cancelled string
		want                bool
	}{
		{"same number", `1`, `1`, true},
		{"same text", `"a"`, `"a"`, true},
		{"escaped text", `"\u0061"`, `"a"`, true},
		{"number and text", `1`, `"1"`, false},
		{"text and number", `"1"`, `1`, false},
		{"single quote", `"\""`, `""`, false},
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
		t.Errorf("fault = %v", f)
	}
}

// TestSessions_evictsOwnSession: the evicted sessions are the principal's own.
func TestSessions_evictsOwnSession(t *testing.T) {
	s := newSessions(10, time.Hour, func(*session) {})
	first, second := open(t, s, "alice"), open(t, s, "bob")
	oldest := open(t, s, "mallory")
	bound := newSession(principal("mallory"), newestLegacy, "")
	bound.principal.Agent = "bot"
	if !s.add(bound) {
		t.Fatal("the session was rejected")
	}
	for range 20 {
		open(t, s, "mallory")
	}
	if isOver(first) || isOver(second) || !isOver(oldest) || !isOver(bound) {
		t.Error("a session of the small holder ended, or the oldest one of the large holder did not")
	}
	third := open(t, s, "carol")
	if isOver(first) || isOver(second) || isOver(third) || s.len() != 10 {
		t.Errorf("with %d sessions, a session of another principal was evicted for carol", s.len())
	}
}

// TestSessions_allBusy: the principal gets no more sessions; other principals
// do.
func TestSessions_allBusy(t *testing.T) {
	s := newSessions(5, time.Hour, func(*session) {})
	idle := open(t, s, "alice")
	for range 4 {
		if _, _, f := open(t, s, "mallory").calls.add(context.Background(), []byte("1")); f != nil {
			t.Fatal(f)
		}
	}
	if s.add(newSession(principal("mallory"), newestLegacy, "")) || isOver(idle) {
		t.Error("the principal with most sessions, all busy, got another")
	}
	open(t, s, "bob")
	if !isOver(idle) || s.len() != 5 {
		t.Error("the idle session was not evicted for another principal")
	}
}

// TestInflight_endOnce: the end function of a detached request runs twice, once
// for its client and once for its goroutine. It must not end a later request
// with the same id.
func TestInflight_endOnce(t *testing.T) {
	var calls inflight
	id := []byte(`1`)
	first, end, f := calls.add(t.Context(), id)
	if f != nil {
		t.Fatal(f)
	}
	if _, _, f := calls.add(t.Context(), id); f == nil {
		t.Error("two requests with one id are running")
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
		t.Errorf("the second request was not cancelled: %v", cause)
	}
}
