package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// listed are tools that a server lists.
type toolListing struct {
	tools   []lockfile.Tool
	entries []json.RawMessage // of the tools, in the same order
	// refused are entries that define no tool, with the errors.
	rejected []json.RawMessage
	reasons  []error
}

// maxBlocks is how much of the lock file the tools of one upstream may take, in bytes, so
// that they leave room for those of others.
const maxUpstreamBytes = 8 << 20

// errBlocks is of a tool that is listed behind as much as may be accepted of an upstream.
var errUpstreamQuota = fmt.Errorf("nobody can accept it: the tools before it in the list take %d MiB of mcpd.lock, which is all that those of one upstream may", maxUpstreamBytes>>20)

// errSecretName is of a tool that nobody could call without telling the secret.
var errSecretName = errors.New("its name holds the value of a secret")

// listedOf reads entries of the list of tools of an upstream, redacted: what is
// accepted is written to a file.
func readTools(upstream string, entries []json.RawMessage, redactor redact.Redactor) (l toolListing) {
	room := maxUpstreamBytes
	for _, entry := range entries {
		said := decoded(entry)
		entry = redactor.RedactJSON(entry)
		if decoded(entry).text("name") != said.text("name") {
			l.rejected, l.reasons = append(l.rejected, entry), append(l.reasons, errSecretName)
		} else if needsTask(said) {
			l.rejected, l.reasons = append(l.rejected, entry), append(l.reasons, errTaskOnly)
		} else if t, err := lockfile.Of(upstream, entry); err != nil {
			l.rejected, l.reasons = append(l.rejected, entry), append(l.reasons, fmt.Errorf("nobody can accept it: %w", err))
		} else if t.Len() > room {
			l.rejected, l.reasons, room = append(l.rejected, entry), append(l.reasons, errUpstreamQuota), 0
		} else {
			room -= t.Len()
			l.tools, l.entries = append(l.tools, t), append(l.entries, definitionOf(entry, t))
		}
	}
	return l
}

// ambiguous are the names that are listed with several definitions.
func (l toolListing) ambiguous() map[string]bool {
	said, names := map[string]lockfile.Tool{}, map[string]bool{}
	for _, t := range l.tools {
		if first, twice := said[t.Name()]; twice && first != t {
			names[t.Name()] = true
		}
		said[t.Name()] = t
	}
	return names
}

// definitionOf returns the members of an entry that are pinned, each as the server writes
// it: what is not pinned can change unseen, and is not passed on.
func definitionOf(entry json.RawMessage, t lockfile.Tool) json.RawMessage {
	said, pinned := decoded(entry), decoded(t.Definition())
	for name := range said {
		if _, is := pinned[name]; !is {
			delete(said, name)
		}
	}
	// What was decoded encodes.
	definition, _ := json.Marshal(said)
	return definition
}

// accepted returns the entries of tools that may be served.
func (m *itemBuilder) acceptedTools(entries []json.RawMessage) (served []json.RawMessage) {
	mode := m.mode
	if !m.pinned {
		served, entries = m.splitHidden(entries)
		mode = lockfile.Strict
	}
	l := readTools(m.upstream.Name, entries, m.redactor)
	refused := map[string]bool{}
	for i, entry := range l.rejected {
		name := decoded(entry).text("name")
		refused[name] = true
		m.exclude(catalog.Tools, name, l.reasons[i].Error())
	}
	verdict := m.lock.Check(m.upstream.Name, l.tools, mode)
	m.accepted = make(map[string]lockfile.Tool, len(verdict.Served))
	for _, t := range verdict.Served {
		if !refused[t.Name()] { // nobody knows which of the two would be called
			m.accepted[t.Name()] = t
		}
	}
	for i, t := range l.tools {
		if held, fits := m.accepted[t.Name()]; fits && held.Equal(t) {
			served = append(served, l.entries[i])
		}
	}
	ambiguous := l.ambiguous()
	for _, c := range verdict.Changes {
		if c.Kind != lockfile.Removed {
			m.quarantined = append(m.quarantined, c)
			m.quarantine(c.Name, m.reason(c, ambiguous[c.Name]))
		}
	}
	m.firstUse, m.toPin = verdict.First, verdict.Served
	return served
}

func (m *itemBuilder) reason(c lockfile.Change, ambiguous bool) string {
	why := "nobody has accepted it"
	switch {
	case !ambiguous && c.New.Hides():
		why = "it holds invisible characters, and nobody has accepted it"
	case ambiguous:
		return "it is listed several times, with different definitions"
	case c.Kind == lockfile.Changed:
		why = "its definition is another than the one that was accepted"
	}
	return fmt.Sprintf("%s: mcpd lock diff %s", why, c.Upstream)
}

// verdict is what was accepted of one listing of an upstream, by names. It is not changed.
type acceptedListing struct {
	listing *upstream.Listing
	tools   map[string]lockfile.Tool
}

// judge is what calls of the tools of an upstream are held to. Items outlive what they were
// made from: an agent's program may run for as long as it may, and go on with the tools that
// were served when it began. Its server may have changed since, and each call asks anew.
type acceptance struct {
	// last is what was found of the listing that was looked at last, nil before any was.
	latest atomic.Pointer[acceptedListing]
}

// accepts returns what reports whether a listing has a tool as the item of it was accepted;
// nil for one that is not pinned. It costs next to nothing for the listing that was looked
// at last, and what it takes to look through another one, once for each.
func (m *itemBuilder) acceptCheck(name string) func(*upstream.Listing) bool {
	held, pinned := m.accepted[name]
	if !pinned {
		return nil
	}
	acc, redactor := m.acceptance, m.redactor
	var other atomic.Pointer[listingCheck]
	return func(now *upstream.Listing) bool {
		if v := acc.latest.Load(); v != nil && v.listing == now {
			if other.Load() != nil {
				other.Store(nil) // and the listing with it
			}
			now, is := v.tools[name]
			return is && now.Equal(held)
		}
		f := other.Load()
		if f == nil || f.listing != now {
			f = &listingCheck{now, containsOnly(now, held, redactor)}
			other.Store(f)
		}
		return f.ok
	}
}

// found says whether a tool is in a listing.
type listingCheck struct {
	listing *upstream.Listing
	ok      bool
}

// lists reports whether a listing has a tool, and by its name nothing else.
func containsOnly(l *upstream.Listing, held lockfile.Tool, redactor redact.Redactor) bool {
	if l == nil {
		return false
	}
	entries := slices.DeleteFunc(slices.Clone(l.Tools), func(entry json.RawMessage) bool { return decoded(entry).text("name") != held.Name() })
	called := readTools(held.Upstream(), entries, redactor)
	return len(entries) > 0 && len(called.tools) == len(entries) && !slices.ContainsFunc(called.tools, func(t lockfile.Tool) bool { return !t.Equal(held) })
}

// quarantine leaves out a tool that nobody has accepted as it is.
func (m *itemBuilder) quarantine(name, why string) {
	m.warn(catalog.Quarantined, fmt.Sprintf("the tool %.*q is left out: %s", maxNameLen, name, why))
	m.addExclusion(catalog.Tools, name, why).Quarantined = true
}
