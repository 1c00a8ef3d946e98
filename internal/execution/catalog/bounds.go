package catalog

import (
	"cmp"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// callDefaults are the limits of definitions that set none. A zero memory, output or concurrency
// means no limit, or the default of the executor.
type callDefaults struct {
	call, hook     time.Duration
	memory, output int64
	concurrency    int
}

// operatorDefaults returns the defaults for definitions in mcpd.hcl.
func operatorDefaults(c *definition.Config) callDefaults {
	return callDefaults{call: definition.DefaultTimeout, hook: definition.DefaultHookTimeout, memory: c.Limits.Memory}
}

// authorDefaults returns the defaults for tool files: the smaller of each default and the ceiling.
func authorDefaults(c *definition.Config) callDefaults {
	s := operatorDefaults(c)
	if c.Ceiling == nil {
		return s
	}
	ceiling := c.Ceiling.Bounds
	if ceiling.Timeout > 0 {
		s.call, s.hook = min(ceiling.Timeout, s.call), min(ceiling.Timeout, s.hook)
	}
	if ceiling.Memory > 0 {
		s.memory = min(ceiling.Memory, cmp.Or(s.memory, definition.DefaultMemory))
	}
	if ceiling.Output > 0 {
		s.output = min(ceiling.Output, definition.DefaultOutput)
	}
	s.concurrency = ceiling.Concurrency
	return s
}

// applyTo sets the limits of an item from its definition, or from the defaults.
func (d callDefaults) applyTo(i *Item, b definition.Bounds) {
	i.Timeout = b.Timeout
	if _, written := b.Ranges["timeout"]; !written {
		i.Timeout = d.call
	}
	i.Bounds = scripting.Limits{Memory: cmp.Or(b.Memory, d.memory), Output: int(cmp.Or(b.Output, d.output))}
	i.Concurrency = cmp.Or(b.Concurrency, d.concurrency)
}

// hookLimits returns the limits of a hook run.
func (d callDefaults) hookLimits(h *definition.Hook) (time.Duration, scripting.Limits) {
	timeout := h.Timeout
	if h.TimeoutRange == (diag.Range{}) {
		timeout = d.hook
	}
	return timeout, scripting.Limits{Memory: d.memory, Output: int(d.output)}
}
