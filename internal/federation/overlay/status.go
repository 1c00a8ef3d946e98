package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// maxLeft bounds LeftOut of [federation.State].
const maxLeft = 100

// maxReason bounds what is shown of why a server cannot be reached, which may be in words
// of its own, in bytes.
const maxReason = 1 << 10

func (f *Federation) shown(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(clippedTo(f.veil.Redact(err.Error()), maxReason))
}

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
			if left.PolicyMismatch {
				states[i].Unruled++
			}
			if left.NameConflict {
				states[i].Taken++
			}
			if states[i].Left++; states[i].Left <= maxLeft {
				states[i].LeftOut = append(states[i].LeftOut, fmt.Sprintf("%s %s: %s", left.Kind, left.Address, left.Reason))
			}
		}
	}
	return states
}

// Drifts returns how the tools of the servers of a catalog differ from the lock file as it
// was read last, in the order of their blocks. Those that are not pinned are left out, but
// for tools of theirs that hold invisible characters.
func (f *Federation) Drifts(c *catalog.Catalog) (drifts []federation.Drift) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if _, pinned := f.pins.mode(u); !pinned {
			if d := f.hiding(u); len(d.Tools)+len(d.Refused) > 0 {
				drifts = append(drifts, d)
			}
			continue
		}
		d := federation.Drift{Upstream: u.Name, New: !knows(f.pins.read, u.Name)}
		switch s := f.fleet.State(u.Name); {
		case s.Err != nil:
			d.Err = f.shown(s.Err)
		case s.Listing == nil:
			d.Err = errLate
		default:
			tools, _ := included(u, s.Listing.Tools)
			f.differ(u, tools, &d)
		}
		drifts = append(drifts, d)
	}
	return drifts
}

// hiding returns how tools that hold invisible characters differ from what was accepted of
// them, of an upstream whose tools are not pinned otherwise.
func (f *Federation) hiding(u *definition.Upstream) federation.Drift {
	d := federation.Drift{Upstream: u.Name}
	s := f.fleet.State(u.Name)
	if s.Listing == nil || !u.Offers(definition.OfferTools) {
		return d
	}
	tools, _ := included(u, s.Listing.Tools)
	_, hiding := (&maker{block: u, veil: f.veil}).apart(tools)
	f.differ(u, hiding, &d)
	d.Changes = slices.DeleteFunc(d.Changes, func(c lockfile.Change) bool { return c.Kind == lockfile.Removed })
	return d
}

// differ has a drift say how entries of tools differ.
func (f *Federation) differ(u *definition.Upstream, tools []json.RawMessage, d *federation.Drift) {
	l := listedOf(u.Name, tools, f.veil)
	for _, t := range slices.Concat(f.pins.read.Tools(u.Name), l.tools) {
		d.Tools = append(d.Tools, t.Name())
	}
	d.Changes = slices.DeleteFunc(f.pins.read.Check(u.Name, l.tools, lockfile.Strict).Changes, func(c lockfile.Change) bool {
		return c.Kind == lockfile.Removed && !u.Includes(c.Name)
	})
	for i, err := range l.why {
		d.Refused = append(d.Refused, fmt.Sprintf("the tool %.*q: %v", maxShown, decoded(l.refused[i]).text("name"), err))
	}
}
