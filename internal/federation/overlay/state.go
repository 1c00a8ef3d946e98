package overlay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
)

// maxLeft bounds LeftOut of [federation.State].
const maxLeft = 100

// maxReason bounds what is shown of why a server cannot be reached, which may be in words
// of its own, in bytes.
const maxReason = 1 << 10

// shown returns an error as operators may see it.
func (f *Federation) shown(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(clippedTo(f.veil.Redact(err.Error()), maxReason))
}

// States returns how the servers of a catalog are, in the order of their blocks.
func (f *Federation) States(c *catalog.Catalog) []federation.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]federation.State, len(c.Upstreams))
	for i := range c.Upstreams {
		name := c.Upstreams[i].Name
		s := f.fleet.State(name)
		states[i] = federation.State{Name: name, Idle: s.Idle, Err: f.shown(s.Err), Since: s.Since, Again: s.Again, Revision: s.Revision}
		if l := s.Listing; l != nil {
			states[i].Up, states[i].Instructions = true, f.veil.Redact(l.Instructions)
			states[i].Offered = len(l.Tools) + len(l.Resources) + len(l.Templates) + len(l.Prompts)
		}
		if s.Listing == nil && s.Err == nil && slices.Contains(f.late, name) {
			states[i].Late = errLate
		}
		if knows(f.pins.kept, name) {
			states[i].Unkept = f.pins.unkept
		}
		for _, left := range c.LeftOut {
			if left.Upstream != name {
				continue
			}
			if left.Quarantined {
				states[i].Quarantined = append(states[i].Quarantined, left.Address)
			}
			if left.Unruled {
				states[i].Unruled++
			}
			if left.Taken {
				states[i].Taken++
			}
			if states[i].Left++; states[i].Left <= maxLeft {
				states[i].LeftOut = append(states[i].LeftOut, fmt.Sprintf("%s %s: %s", left.Kind, left.Address, left.Why))
			}
		}
	}
	return states
}
