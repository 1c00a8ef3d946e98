package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// listed are tools that a server lists.
type listed struct {
	tools   []lockfile.Tool
	entries []json.RawMessage // of the tools, in the same order
	// refused are entries that define no tool, with the errors.
	refused []json.RawMessage
	why     []error
}

// maxBlocks is how much of the lock file the tools of one upstream may take, in bytes, so
// that they leave room for those of others.
const maxBlocks = 8 << 20

// errBlocks is of a tool that is listed behind as much as may be accepted of an upstream.
var errBlocks = fmt.Errorf("nobody can accept it: the tools before it in the list take %d MiB of mcpd.lock, which is all that those of one upstream may", maxBlocks>>20)

// errSecretName is of a tool that nobody could call without telling the secret.
var errSecretName = errors.New("its name holds the value of a secret")

// listedOf reads entries of the list of tools of an upstream, from behind the veil: what is
// accepted is written to a file.
func listedOf(upstream string, entries []json.RawMessage, veil Veil) (l listed) {
	room := maxBlocks
	for _, entry := range entries {
		said := decoded(entry)
		entry = veil.RedactJSON(entry)
		if decoded(entry).text("name") != said.text("name") {
			l.refused, l.why = append(l.refused, entry), append(l.why, errSecretName)
		} else if needsTask(said) {
			l.refused, l.why = append(l.refused, entry), append(l.why, errTask)
		} else if t, err := lockfile.Of(upstream, entry); err != nil {
			l.refused, l.why = append(l.refused, entry), append(l.why, fmt.Errorf("nobody can accept it: %w", err))
		} else if t.Len() > room {
			l.refused, l.why, room = append(l.refused, entry), append(l.why, errBlocks), 0
		} else {
			room -= t.Len()
			l.tools, l.entries = append(l.tools, t), append(l.entries, definitionOf(entry, t))
		}
	}
	return l
}

// ambiguous are the names that are listed with several definitions.
func (l listed) ambiguous() map[string]bool {
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
func (m *maker) accepted(entries []json.RawMessage) (served []json.RawMessage) {
	mode := m.mode
	if !m.pins {
		served, entries = m.apart(entries)
		mode = lockfile.Strict
	}
	l := listedOf(m.block.Name, entries, m.veil)
	refused := map[string]bool{}
	for i, entry := range l.refused {
		name := decoded(entry).text("name")
		refused[name] = true
		m.leave(catalog.Tools, name, l.why[i].Error())
	}
	verdict := m.lock.Check(m.block.Name, l.tools, mode)
	m.held = make(map[string]lockfile.Tool, len(verdict.Served))
	for _, t := range verdict.Served {
		if !refused[t.Name()] { // nobody knows which of the two would be called
			m.held[t.Name()] = t
		}
	}
	for i, t := range l.tools {
		if held, fits := m.held[t.Name()]; fits && held.Equal(t) {
			served = append(served, l.entries[i])
		}
	}
	ambiguous := l.ambiguous()
	for _, c := range verdict.Changes {
		if c.Kind != lockfile.Removed {
			m.changes = append(m.changes, c)
			m.quarantine(c.Name, m.reason(c, ambiguous[c.Name]))
		}
	}
	m.first, m.pinned = verdict.First, verdict.Served
	return served
}

func (m *maker) reason(c lockfile.Change, ambiguous bool) string {
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
type verdict struct {
	listing *upstream.Listing
	held    map[string]lockfile.Tool
}

// judge is what calls of the tools of an upstream are held to. Items outlive what they were
// made from: an agent's program may run for as long as it may, and go on with the tools that
// were served when it began. Its server may have changed since, and each call asks anew.
type judge struct {
	// last is what was found of the listing that was looked at last, nil before any was.
	last atomic.Pointer[verdict]
}

// accepts returns what reports whether a listing has a tool as the item of it was accepted;
// nil for one that is not pinned. It costs next to nothing for the listing that was looked
// at last, and what it takes to look through another one, once for each.
func (m *maker) accepts(name string) func(*upstream.Listing) bool {
	held, pinned := m.held[name]
	if !pinned {
		return nil
	}
	j, veil := m.judge, m.veil
	var other atomic.Pointer[found]
	return func(now *upstream.Listing) bool {
		if v := j.last.Load(); v != nil && v.listing == now {
			if other.Load() != nil {
				other.Store(nil) // and the listing with it
			}
			now, is := v.held[name]
			return is && now.Equal(held)
		}
		f := other.Load()
		if f == nil || f.in != now {
			f = &found{now, lists(now, held, veil)}
			other.Store(f)
		}
		return f.is
	}
}

// found says whether a tool is in a listing.
type found struct {
	in *upstream.Listing
	is bool
}

// lists reports whether a listing has a tool, and by its name nothing else.
func lists(l *upstream.Listing, held lockfile.Tool, veil Veil) bool {
	if l == nil {
		return false
	}
	entries := slices.DeleteFunc(slices.Clone(l.Tools), func(entry json.RawMessage) bool { return decoded(entry).text("name") != held.Name() })
	called := listedOf(held.Upstream(), entries, veil)
	return len(entries) > 0 && len(called.tools) == len(entries) && !slices.ContainsFunc(called.tools, func(t lockfile.Tool) bool { return !t.Equal(held) })
}

// quarantine leaves out a tool that nobody has accepted as it is.
func (m *maker) quarantine(name, why string) {
	m.tell(catalog.CodeQuarantined, fmt.Sprintf("the tool %.*q is left out: %s", maxShown, name, why))
	m.out(catalog.Tools, name, why).Quarantined = true
}
