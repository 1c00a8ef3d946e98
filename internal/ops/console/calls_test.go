package console

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	backend := newFake()
	var server *pipe
	backend.streams[control.Calls] = func(p *pipe) {
		server = p
		began := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		p.lines <- control.Call{CallID: "one", Kind: "tool", Name: "greet", Principal: "ada", Outcome: "ok", Time: began, DurationMS: 40}
		p.lines <- control.Call{CallID: "two", RootID: "one", ParentID: "one", Depth: 1, Kind: "tool", Name: "inner", Time: began.Add(10 * time.Millisecond), DurationMS: 20, Principal: "ada", Outcome: "POLICY_DENIED", DeniedBy: "office_hours", TraceID: "trace-7", AuthKind: "jwt", Issuer: "https://idp", Groups: []string{"Domain Admins", "leads"}, Scopes: []string{"a", "b"}}
	}
	item := itemWith(`{"type":"object"}`)
	item.Policies = []control.Policy{{Name: "leads_only"}}
	backend.answers[control.Item] = item
	backend.answers[control.Audit] = control.AuditResult{Calls: []control.Call{{Seq: 41, CallID: "old", Name: "greet", Outcome: "ok"}}, More: true}
	b := browse(t, backend).signIn()
	b.get("/calls")
	waitForCalls(b.console.feed, 2)
	_, page := b.get("/calls")
	mustContain(t, page, "greet", "inner", "by office_hours")
	_, page = b.get("/calls?outcome=ok")
	if mustContain(t, page, "greet"); strings.Contains(pageText(t, page), "inner") {
		t.Error("the filter lets another outcome pass")
	}
	_, page = b.get("/calls/two")
	mustContain(t, page, "office_hours", "trace-7", "Calls that belong together", "Explain such a call", "policies of this item now", "leads_only", "10 ms", "20 ms")
	if !strings.Contains(page, `<rect x="250" y="1" width="500"`) {
		t.Error("the timeline does not show when the inner call ran")
	}
	_, query, _ := strings.Cut(page, `href="/policies?`)
	query, _, _ = strings.Cut(query, `#explain"`)
	posted, err := url.ParseQuery(html.UnescapeString(query))
	if err != nil {
		t.Fatal(err)
	}
	as := asFormOf(posted)
	caller, ok := as.caller()
	want := identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp", Groups: []string{"Domain Admins", "leads"}, Scopes: []string{"a", "b"}, Claims: map[string]any{}}
	if diff := cmp.Diff(&want, caller.Principal); !ok || diff != "" {
		t.Errorf("the explanation is not that of the caller (-want +got)\n%s", diff)
	}
	_, page = b.get("/calls?view=history&name=greet")
	if mustContain(t, page, "Older calls"); !strings.Contains(page, "before=41") {
		t.Error("older calls start at another record")
	}
	if _, page := b.get("/calls/old"); !strings.Contains(page, "41") {
		t.Error("a call of the audit log is not shown")
	}
	live := b.live("/calls/events?after=2&outcome=ok")
	live.until("event: feed")
	server.lines <- control.Call{CallID: "three", Name: "hidden", Outcome: "TIMEOUT"}
	server.lines <- control.Call{CallID: "one", Name: "again", Outcome: "ok"}
	server.lines <- control.Call{CallID: "four", Name: "fourth", Outcome: "ok"}
	if got := live.until("fourth"); strings.Contains(got, "hidden") || strings.Contains(got, "again") {
		t.Errorf("events %q", got)
	}
}

func TestFeed_beginsAgain(t *testing.T) {
	t.Parallel()
	backend := newFake()
	begun := 0
	backend.streams[control.Calls] = func(p *pipe) {
		begun++
		p.lines <- control.Call{CallID: "same", Outcome: "ok"}
		p.lines <- control.Call{CallID: fmt.Sprint(begun), Outcome: "ok"}
		if begun == 1 {
			close(p.lines)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFeed(ctx, backend, time.Now)
		defer f.close()
		defer cancel()
		f.start(ctx)
		waitForCalls(f, 3)
		calls, problem, _ := f.after(1)
		var ids []string
		for _, c := range calls {
			ids = append(ids, c.CallID)
		}
		if diff := cmp.Diff([]string{"1", "2"}, ids); diff != "" || problem != "" {
			t.Errorf("problem %q (-want +got):\n%s", problem, diff)
		}
	})
}

func TestFeed_bounded(t *testing.T) {
	t.Parallel()
	f := newFeed(t.Context(), newFake(), time.Now)
	for i := range maxFeed + 10 {
		f.add(control.Call{CallID: fmt.Sprint(i), Time: time.Now()})
	}
	calls, _, _ := f.after(0)
	if len(calls) != maxFeed || len(f.known) != maxFeed || calls[0].N != 11 {
		t.Errorf("%d calls, %d known, the first is %d", len(calls), len(f.known), calls[0].N)
	}
}
