package policylang

import "testing"

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
