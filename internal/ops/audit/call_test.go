package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
)

// readBack writes records and reads the calls back.
func readBack(t *testing.T, until uint64, records ...*Record) (calls []*Call) {
	t.Helper()
	now := time.Date(2026, 7, 28, 9, 30, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "mcpd.jsonl")
	l, err := Open(Options{Path: path, Mode: Strict, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := l.Intent(r); err != nil {
			t.Fatal(err)
		}
		if err := l.Outcome(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Event(Event{Name: "reload"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	strange, err := Calls(path, until, func(c *Call) error {
		calls = append(calls, c)
		return nil
	})
	if err != nil || strange != 0 {
		t.Fatalf("%d invalid lines: %v", strange, err)
	}
	return calls
}

func record() *Record {
	return &Record{
		Call: "c", Root: "r", Parent: "p", Leg: 2, Depth: 1, Via: "tool", Alias: "call_tool", Kind: "tool", Name: "refund", Revision: "v", Definition: "d",
		Caller: identity.Caller{
			Principal: identity.Principal{
				ID: "ada", Kind: identity.KindToken, Issuer: "idp", Scopes: []string{"a", "b"}, Groups: []string{"g"},
				Claims: map[string]any{"level": 3.0, "big": 1e300, "list": []any{"x", 1.5, nil, true}, "deep": map[string]any{"a": "b"}},
			},
			Agent:  identity.Agent{AgentID: "bot", Model: "m", RequestID: "q", Metadata: map[string]string{"team": "qa"}, Verified: true},
			Source: identity.Source{IP: "10.0.0.1", Listener: ":80", Session: "s"},
		},
		Arguments: json.RawMessage(`{"b": 1, "a": 12345678901234567890}`), Values: json.RawMessage(`{"b": 1, "a": 12345678901234567890}`),
		Outcome: "POLICY_DENIED", DeniedBy: "small", Limited: true, Cached: true, Duration: 1500 * time.Microsecond, Message: "no",
		Approval: &Approval{State: ApprovalInvalid, Why: "foreign", Policies: []string{"a", "b"}},
	}
}

func TestCalls_roundTrip(t *testing.T) {
	r := record()
	calls := readBack(t, 0, r)
	want := *r
	want.Arguments, want.Values = nil, json.RawMessage(`{"a":12345678901234567890,"b":1}`)
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	got := calls[0]
	if diff := cmp.Diff(want, got.Record); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if began := time.Date(2026, 7, 28, 9, 29, 59, 998_500_000, time.UTC); !got.Began.Equal(began) || got.Seq != 2 {
		t.Errorf("record %d began at %v", got.Seq, got.Began)
	}
	if !got.WholePrincipal || !got.WholeAgent || !got.WholeName || !got.WholeURI || !got.WholeArguments {
		t.Errorf("incomplete: %+v", got)
	}
	if calls := readBack(t, 2, r, r); len(calls) != 1 {
		t.Errorf("%d calls up to record 2", len(calls))
	}
}

func TestCalls_incompleteFields(t *testing.T) {
	var many []string
	for i := range 2 * maxMembers {
		many = append(many, fmt.Sprint(i))
	}
	for _, test := range []struct {
		name   string
		change func(*Record)
		whole  func(*Call) bool
	}{
		{"masked claim", func(r *Record) { r.Caller.Principal.Claims["token"] = "x" }, func(c *Call) bool { return c.WholePrincipal }},
		{"truncated claim", func(r *Record) { r.Caller.Principal.Claims["a"] = strings.Repeat("x", 2*maxText) }, func(c *Call) bool { return c.WholePrincipal }},
		{"long claim name", func(r *Record) { r.Caller.Principal.Claims[strings.Repeat("x", 2*maxName)] = 1 }, func(c *Call) bool { return c.WholePrincipal }},
		{"too many groups", func(r *Record) { r.Caller.Principal.Groups = many }, func(c *Call) bool { return c.WholePrincipal }},
		{"masked metadata", func(r *Record) { r.Caller.Agent.Metadata["password"] = "x" }, func(c *Call) bool { return c.WholeAgent }},
		{"truncated request id", func(r *Record) { r.Caller.Agent.RequestID = strings.Repeat("x", 2*maxText) }, func(c *Call) bool { return c.WholeAgent }},
		{"truncated URI", func(r *Record) { r.URI = "a://" + strings.Repeat("x", 2*maxText) }, func(c *Call) bool { return c.WholeURI }},
		{"truncated name", func(r *Record) { r.Name = strings.Repeat("x", 2*maxText) }, func(c *Call) bool { return c.WholeName }},
		{"arguments not captured", func(r *Record) { r.Values = nil }, func(c *Call) bool { return c.WholeArguments }},
		{"masked arguments", func(r *Record) { r.Values = json.RawMessage(`{"a":{"b":["[sensitive]"]}}`) }, func(c *Call) bool { return c.WholeArguments }},
		{"secret argument name", func(r *Record) { r.Values = json.RawMessage(`{"token":"x"}`) }, func(c *Call) bool { return c.WholeArguments }},
		{"long arguments", func(r *Record) { r.Values = json.RawMessage(`{"a":"` + strings.Repeat("x", maxValues) + `"}`) }, func(c *Call) bool { return c.WholeArguments }},
	} {
		r := record()
		test.change(r)
		if test.whole(readBack(t, 0, r)[0]) {
			t.Errorf("%s: the call is complete", test.name)
		}
	}
	for _, none := range []json.RawMessage{nil, json.RawMessage(`{}`)} {
		r := record()
		r.Arguments, r.Values = none, nil
		if c := readBack(t, 0, r)[0]; !c.WholeArguments || string(c.Values) != "{}" {
			t.Errorf("without arguments: %s, complete: %v", c.Values, c.WholeArguments)
		}
	}
}

func TestIn(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b.jsonl.head", "a.jsonl", "a.jsonl.head", "c.jsonl"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := FindLogs(folder)
	if diff := cmp.Diff([]string{filepath.Join(folder, "a.jsonl"), filepath.Join(folder, "b.jsonl")}, logs); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
