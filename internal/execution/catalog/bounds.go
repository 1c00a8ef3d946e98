package catalog

import (
	"cmp"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// standing are the bounds of calls whose definitions say none. Zero members but
// those of time bound nothing, or leave it to the executor.
type callDefaults struct {
	call, hook     time.Duration
	memory, output int64
	concurrency    int
}

// operators returns what stands for what the operator's file defines.
func operatorDefaults(c *definition.Config) callDefaults {
	return callDefaults{call: definition.DefaultTimeout, hook: definition.DefaultHookTimeout, memory: c.Limits.Memory}
}

// authors returns what stands for what tool files define: of each bound the
// default, or the ceiling where that is less.
func authorDefaults(c *definition.Config) callDefaults {
	s := operatorDefaults(c)
	if c.Ceiling == nil {
		return s
	}
	most := c.Ceiling.Bounds
	if most.Timeout > 0 {
		s.call, s.hook = min(most.Timeout, s.call), min(most.Timeout, s.hook)
	}
	if most.Memory > 0 {
		s.memory = min(most.Memory, cmp.Or(s.memory, definition.DefaultMemory))
	}
	if most.Output > 0 {
		s.output = min(most.Output, definition.DefaultOutput)
	}
	s.concurrency = most.Concurrency
	return s
}

// bound takes over what a definition says of its calls, and what stands where it
// says nothing.
func (s callDefaults) applyTo(i *Item, b definition.Bounds) {
	i.Timeout = b.Timeout
	if _, written := b.Ranges["timeout"]; !written {
		i.Timeout = s.call
	}
	i.Bounds = scripting.Limits{Memory: cmp.Or(b.Memory, s.memory), Output: int(cmp.Or(b.Output, s.output))}
	i.Concurrency = cmp.Or(b.Concurrency, s.concurrency)
}

// run returns the bounds of a run of a hook.
func (s callDefaults) hookLimits(h *definition.Hook) (time.Duration, scripting.Limits) {
	timeout := h.Timeout
	if h.TimeoutRange == (diag.Range{}) {
		timeout = s.hook
	}
	return timeout, scripting.Limits{Memory: s.memory, Output: int(s.output)}
}
