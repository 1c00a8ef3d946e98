package overlay

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/federation/upstream"
)

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
