package catalog

import (
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/ratelimit"
	"github.com/mcpd/mcpd/scripting"
)

// bound takes over what a limits block says, but for the timeout.
func (i *Item) bound(b hclfile.Bounds) {
	i.Bounds = scripting.Limits{Memory: b.Memory, Output: int(b.Output)}
	i.Concurrency = b.Concurrency
}

// addOwnLimits gives every entry the limit that its own limits block is, which is
// asked last of all, and bounds where that says nothing.
func (k *linker) addOwnLimits(entries []*Entry) {
	var most hclfile.Bounds
	if c := k.found.config.Ceiling; c != nil {
		most = c.Bounds
	}
	for _, e := range entries {
		e.Bounds = e.Item.Bounds
		if e.Bounds.Memory == 0 {
			e.Bounds.Memory = least(k.found.config.Limits.Memory, most.Memory)
		}
		if e.Bounds.Output == 0 {
			e.Bounds.Output = int(most.Output)
		}
		if e.Concurrency == 0 {
			continue
		}
		own := &ratelimit.Limit{
			// The blank keeps it apart from limit blocks, whose names have none.
			ID:          ratelimit.ID{Name: e.Kind.String() + " " + e.Name},
			Concurrency: e.Concurrency,
		}
		e.Limits = append(e.Limits, Limit{Limit: own})
		k.catalog.OwnLimits = append(k.catalog.OwnLimits, own)
	}
}

// least returns the smaller of two bounds, of which 0 is none.
func least(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
