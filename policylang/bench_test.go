package policylang

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
)

func benchPolicy(tb testing.TB, allow string) (*Policy, Input) {
	e, err := NewEnv(nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	txt := diag.WholeFile("f.cel", allow)
	p, ds := e.Compile(Source{Name: "p", Allow: &txt, Reason: "no"}, Tool{Name: "t", Schema: json.RawMessage(refundSchema)})
	if p == nil {
		tb.Fatal(ds)
	}
	return p, Input{
		Caller: identity.Caller{Principal: identity.Principal{ID: "p", Scopes: []string{"crm:read", "admin"}, Claims: map[string]any{}}},
		Args:   map[string]any{"cents": int64(700), "amount": 5.0, "status": "active", "tags": []any{"new", "vip", "internal"}}, Now: time.Unix(0, 0),
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, s := range []string{"args.cents > 5 && principal.scopes.exists(s, s == 'admin')", "args.cents > 5", "'admin' in principal.scopes", "args.amount <= 5000 && args.status == 'active'", "args.status.matches('^a')",
		"args.status in ['active', 'x']", "args.tags.exists(t, t == 'none')", "args.tags.exists(t, t == principal.id)", "size(args.tags.filter(t, t == 'a')) == 0 || true", "now > timestamp('2020-01-01T00:00:00Z')"} {
		p, in := benchPolicy(b, s)
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(context.Background(), in)
			}
		})
		b.Run("partial "+s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Partial(context.Background(), in)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	schema := func(i int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{"a%d":{"type":"string"},"b":{"type":"integer"},"c":{"type":"number"}}}`, i))
	}
	for _, s := range []string{"!tool.read_only && principal.scopes.exists(s, s == 'admin')", "!has(args.amount) || args.amount <= 5000 || principal.scopes.exists(s, s == 'admin')"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e, err := NewEnv(nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				txt := diag.WholeFile("f.cel", s)
				src := Source{Name: "p", Allow: &txt, Reason: "no"}
				for i := range 1000 {
					if p, ds := e.Compile(src, Tool{Name: "t", Schema: schema(i)}); p == nil {
						b.Fatal(ds)
					}
				}
			}
		})
	}
	b.Run("NewEnv", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := NewEnv(nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestAllocations holds the hot path to its budget: what is read is read
// where it stands.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop things under the race detector")
	}
	tests := []struct {
		expr            string
		decide, partial float64
	}{
		{"principal.id == 'ada'", 1, 1},
		{"'admin' in principal.scopes", 0, 0},
		{"tool.read_only || tool.idempotent", 0, 0},
		{"args.cents > 5", 1, 0},
		{"args.status == 'active'", 1, 0},
		{"args.amount <= 5000 && args.status in ['active', 'suspended']", 3, 3},
		{"args.cents > 5 && principal.scopes.exists(s, s == 'admin')", 4, 3},
		{"has(args.note) && args.note == 'x'", 0, 3},
		{"vars.stage == 'prod' && !tool.read_only", 1, 1},
		{"principal.claims.tenant == 'acme'", 1, 1},
		{"args.tags.exists(t, t == 'none')", 6, 0},
		{"args.tags.exists(t, t == principal.id)", 10, 0},
		{"agent.metadata.team == 'crm' && principal.id != ''", 3, 3},
	}
	e := newEnv(t)
	in := refundInput()
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			p := mustCompile(t, e, denying(tt.expr))
			if got := testing.AllocsPerRun(200, func() { p.Decide(t.Context(), in) }); got > tt.decide {
				t.Errorf("Decide allocates %v times, budget %v", got, tt.decide)
			}
			if got := testing.AllocsPerRun(200, func() { p.Partial(t.Context(), in) }); got > tt.partial {
				t.Errorf("Partial allocates %v times, budget %v", got, tt.partial)
			}
		})
	}
}
