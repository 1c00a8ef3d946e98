package serve

import "github.com/mcpd/mcpd/internal/protocol/transport/gate"

// Routes returns the patterns of all routes.
func (f *Front) Routes() (patterns []string) {
	for _, r := range f.routes(gate.NewBudget(0), gate.NewBudget(0)) {
		patterns = append(patterns, r.pattern)
	}
	return patterns
}
