package scripting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestJournalRefuse(t *testing.T) {
	c := call(compiled(t, asker(`try { await sample({ prompt: "p" }) } catch (e) { return [e.name, e.code, e.message] }`)), `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, suspendingHost())
	if err := c.Journal.Refuse(out.Suspended[0].Seq, &HostError{Code: Unavailable, Message: "the client failed"}); err != nil {
		t.Fatal(err)
	}
	if got := shown(runWith(t, c, &fakeHost{})); got != `["HostError","UNAVAILABLE","the client failed"]` {
		t.Errorf("got %s", got)
	}
}

func TestJournalAnswer_notPending(t *testing.T) {
	c := call(compiled(t, asker(`log.info("x"); await http.crm.get("1"); setTimeout(() => {}, 0); await roots()`)), `{}`)
	c.Journal = NewJournal()
	out := runWith(t, c, suspendingHost())
	ask := out.Suspended[0]
	answer := answered(t, ask.Payload, willing)
	for _, seq := range []int{-1, 0, 1, 2, 4} {
		if err := c.Journal.Answer(seq, answer); !errors.Is(err, errNotPending) {
			t.Errorf("host call %d: %v", seq, err)
		}
	}
	if err := c.Journal.Answer(ask.Seq, answer); err != nil {
		t.Error(err)
	}
	if err := c.Journal.Answer(ask.Seq, answer); !errors.Is(err, errNotPending) {
		t.Errorf("a second response: %v", err)
	}
	if err := NewJournal().Refuse(1, &HostError{}); !errors.Is(err, errNotPending) {
		t.Errorf("an empty journal: %v", err)
	}
}

func TestReplay_differentAsk(t *testing.T) {
	first := call(compiled(t, asker(`await roots("a")`)), `{}`)
	first.Journal = NewJournal()
	runWith(t, first, suspendingHost())
	second := call(compiled(t, asker(`await roots("b")`)), `{}`)
	second.Journal = first.Journal
	host := suspendingHost()
	if out := runWith(t, second, host); out.Failure == nil || out.Failure.Kind != Nondeterministic || len(host.calls()) > 0 {
		t.Errorf("got %s, host calls %q", shown(out), host.calls())
	}
}

func TestReplay_missingResponse(t *testing.T) {
	c := call(compiled(t, asker(`await Promise.all([roots(), http.crm.get("1")])`)), `{}`)
	c.Journal = NewJournal()
	runWith(t, c, suspendingHost())
	c.Journal.entries = c.Journal.entries[:2]
	if out := runWith(t, c, &fakeHost{}); out.Failure == nil || out.Failure.Kind != Nondeterministic {
		t.Errorf("got %s", shown(out))
	}
}

func TestReplay_unusedResponses(t *testing.T) {
	c := call(compiled(t, asker(`const both = await Promise.all([roots("a").then(r => { log.info("x"); return r }), roots("b")]); return both.map(r => r[0].name)`)), `{}`)
	c.Journal = NewJournal()
	for _, ask := range runWith(t, c, suspendingHost()).Suspended {
		if err := c.Journal.Answer(ask.Seq, answered(t, ask.Payload, willing)); err != nil {
			t.Fatal(err)
		}
	}
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { panic("bug") }}
	if out := runWith(t, c, host); out.Failure == nil || out.Failure.Kind != HostPanic {
		t.Fatalf("got %s", shown(out))
	}
	c.Journal = reread(t, c.Journal)
	again := &fakeHost{}
	if got := shown(runWith(t, c, again)); got != `["a","b"]` || len(again.calls()) > 0 {
		t.Errorf("got %s, host calls %q", got, again.calls())
	}
}

func TestJournalAnswer_sizeLimit(t *testing.T) {
	c := call(compiled(t, asker(`await roots()`)), `{}`)
	c.Journal, c.Limits = NewJournal(), Limits{JournalBytes: 4096}
	ask := runWith(t, c, suspendingHost()).Suspended[0]
	answer := fmt.Appendf(nil, `{"responses":{"roots":{"roots":[]}},"padding":%q}`, strings.Repeat("x", 4096))
	if err := c.Journal.Answer(ask.Seq, answer); err != nil {
		t.Fatal(err)
	}
	if out := runWith(t, c, &fakeHost{}); out.Failure == nil || out.Failure.Limit != "journal_bytes" {
		t.Errorf("got %s", shown(out))
	}
}
