package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// opened returns a log in its own directory, closed at the end of the test.
func opened(t testing.TB, o Options) *Log {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "audit.jsonl")
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// writeKey writes a key of an operator, a repeated byte, beside a log.
func writeKey(t *testing.T, path string, b byte, size int) {
	t.Helper()
	_ = os.Remove(keyPath(path)) // it may not exist
	if err := os.WriteFile(keyPath(path), fmt.Appendf(nil, "%x\n", bytes.Repeat([]byte{b}, size)), 0o400); err != nil {
		t.Fatal(err)
	}
}

// stats are the counters of a log at one time.
type stats struct{ Records, Waited, Lost, Syncs uint64 }

func (l *Log) stats() stats {
	c := &l.counters
	return stats{c.records.Load(), c.waited.Load(), c.lost.Load(), c.syncs.Load()}
}

// clock is a fixed clock.
func clock() time.Time { return time.Date(2026, 7, 28, 9, 30, 0, 123, time.UTC) }

// refund is a record with all fields set.
func refund() *Record {
	return &Record{
		Call: "c-2", Root: "c-1", Parent: "c-0", Leg: 2, Depth: 1, Via: "client", Alias: "call_tool",
		Kind: "tool", Name: "refund", Method: "tools/call", Revision: "rev", Definition: "def",
		Caller: identity.Caller{
			Principal: identity.Principal{
				ID: "alice", Kind: identity.KindLocal, Issuer: "https://id.example", Scopes: []string{"crm:write"}, Groups: []string{"leads"},
				Claims: map[string]any{"tenant": "t1", "access_token": "hunter2", "level": json.Number("3"), "roles": []any{"a", 1.5, nil, true}},
			},
			Agent:  identity.Agent{AgentID: "bot", Model: "m", RequestID: "req-1", Metadata: map[string]string{"team": "qa", "api_key": "hunter2"}},
			Source: identity.Source{IP: "127.0.0.1", Listener: "stdio", Session: "s-1"},
		},
		TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331",
		Arguments: json.RawMessage(`{"id":"C-1042","amount":12.50,"lines":[{"sku":"a","n":1},{"sku":"b","n":2}],"note":null}`),
		Outcome:   "POLICY_DENIED", DeniedBy: "small_refunds_only", Duration: 1500 * time.Microsecond, Message: "Blocked in prod",
	}
}

func TestLog_roundTrip(t *testing.T) {
	for mode, want := range map[Mode]uint64{Relaxed: 3, Strict: 6} {
		t.Run(string(mode), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "below", "audit.jsonl")
			l := opened(t, Options{Path: path, Mode: mode, Now: clock})
			for range 3 {
				if err := l.Intent(refund()); err != nil {
					t.Fatal(err)
				}
				if err := l.Outcome(refund()); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if r := verified(t, path); r.Records != want || len(r.Findings) > 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}
