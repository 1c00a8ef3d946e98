package serve

import "github.com/mcpd/mcpd/internal/protocol/transport/httpguard"

// Routes returns the patterns of all routes.
func (f *Front) Routes() (patterns []string) {
	for _, r := range f.routes(httpguard.NewBudget(0), httpguard.NewBudget(0)) {
		patterns = append(patterns, r.pattern)
	}
	return patterns
}
