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

// maxExcluded bounds LeftOut of [federation.ServerStatus].
const maxExcluded = 100

// maxReason bounds the error of a server, in bytes. It may contain text of the server.
const maxReason = 1 << 10

func (f *Federation) redactError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(truncateTo(f.redactor.Redact(err.Error()), maxReason))
}

func (f *Federation) Status(c *catalog.Catalog) []federation.ServerStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]federation.ServerStatus, len(c.Upstreams))
	for i := range c.Upstreams {
		name := c.Upstreams[i].Name
		s := f.pool.State(name)
		states[i] = federation.ServerStatus{Name: name, Idle: s.Idle, Err: f.redactError(s.Err), Since: s.Since, NextAttempt: s.RetryAt, Revision: s.Revision}
		if l := s.Listing; l != nil {
			states[i].Up, states[i].Instructions = true, f.redactor.Redact(l.Instructions)
			states[i].Offered = len(l.Tools) + len(l.Resources) + len(l.Templates) + len(l.Prompts)
		}
		if s.Listing == nil && s.Err == nil && slices.Contains(f.notReady, name) {
			states[i].Late = errNotReady
		}
		if hasUpstream(f.lock.unsaved, name) {
			states[i].LockErr = f.lock.saveErr
		}
		for _, left := range c.LeftOut {
			if left.Upstream != name {
				continue
			}
			if left.Quarantined {
				states[i].Quarantined = append(states[i].Quarantined, left.Address)
			}
			if left.PolicyMismatch {
				states[i].PolicyMismatches++
			}
			if left.NameConflict {
				states[i].NameConflicts++
			}
			if states[i].NotServed++; states[i].NotServed <= maxExcluded {
				states[i].LeftOut = append(states[i].LeftOut, fmt.Sprintf("%s %s: %s", left.Kind, left.Address, left.Reason))
			}
		}
	}
	return states
}

// Drifts returns the differences between the tools of the servers of c and the lock file at its
// last load, in the order of their blocks. For upstreams that are not pinned only tools with
// invisible characters are compared.
func (f *Federation) Drifts(c *catalog.Catalog) (drifts []federation.Drift) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if _, pinned := f.lock.mode(u); !pinned {
			if d := f.hiddenDrift(u); len(d.Tools)+len(d.Unacceptable) > 0 {
				drifts = append(drifts, d)
			}
			continue
		}
		d := federation.Drift{Upstream: u.Name, New: !hasUpstream(f.lock.fromFile, u.Name)}
		switch s := f.pool.State(u.Name); {
		case s.Err != nil:
			d.Err = f.redactError(s.Err)
		case s.Listing == nil:
			d.Err = errNotReady
		default:
			tools, _ := includedTools(u, s.Listing.Tools)
			f.compare(u, tools, &d)
		}
		drifts = append(drifts, d)
	}
	return drifts
}

// hiddenDrift compares the tools with invisible characters of an upstream that is not pinned.
func (f *Federation) hiddenDrift(u *definition.Upstream) federation.Drift {
	d := federation.Drift{Upstream: u.Name}
	s := f.pool.State(u.Name)
	if s.Listing == nil || !u.Offers(definition.OfferTools) {
		return d
	}
	tools, _ := includedTools(u, s.Listing.Tools)
	_, hiding := (&itemBuilder{upstream: u, redactor: f.redactor}).splitHidden(tools)
	f.compare(u, hiding, &d)
	d.Changes = slices.DeleteFunc(d.Changes, func(c lockfile.Change) bool { return c.Kind == lockfile.Removed })
	return d
}

// compare adds the differences of tools to d.
func (f *Federation) compare(u *definition.Upstream, tools []json.RawMessage, d *federation.Drift) {
	l := readTools(u.Name, tools, f.redactor)
	for _, t := range slices.Concat(f.lock.fromFile.Tools(u.Name), l.tools) {
		d.Tools = append(d.Tools, t.Name())
	}
	d.Changes = slices.DeleteFunc(f.lock.fromFile.Check(u.Name, l.tools, lockfile.Strict).Changes, func(c lockfile.Change) bool {
		return c.Kind == lockfile.Removed && !u.Includes(c.Name)
	})
	for i, err := range l.reasons {
		d.Unacceptable = append(d.Unacceptable, fmt.Sprintf("the tool %.*q: %v", maxNameLen, decoded(l.rejected[i]).text("name"), err))
	}
}
