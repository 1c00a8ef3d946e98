package federation

import (
	"fmt"

	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/internal/lockfile"
)

// Drift is how the tools of an upstream differ from what was accepted of them.
type Drift struct {
	// Upstream is the name of its block.
	Upstream string
	// Err says why it is not known; the other members are empty then.
	Err error
	// New says that the lock file does not know the upstream.
	New bool
	// Changes are the differences to the lock file, sorted by name. Whatever the block says
	// of first use, what the file does not have is one.
	Changes []lockfile.Change
	// Refused says of what nobody can accept why.
	Refused []string
}

// Drifts returns how the tools of the servers of a catalog differ from the lock file as it
// was read last, in the order of their blocks. Those that are not pinned are left out.
func (f *Federation) Drifts(c *catalog.Catalog) (drifts []Drift) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if _, pinned := f.pins.mode(u); !pinned {
			continue
		}
		d := Drift{Upstream: u.Name, New: !knows(f.pins.read, u.Name)}
		switch s := f.fleet.State(u.Name); {
		case s.Err != nil:
			d.Err = f.shown(s.Err)
		case s.Listing == nil:
			d.Err = fmt.Errorf("it has not told within %s what it offers", settleTime)
		default:
			tools, _ := included(u, s.Listing.Tools)
			l := listedOf(u.Name, tools, f.veil)
			d.Changes = f.pins.read.Check(u.Name, l.tools, lockfile.Strict).Changes
			for i, err := range l.why {
				d.Refused = append(d.Refused, fmt.Sprintf("the tool %.*q: %v", maxShown, decoded(l.refused[i]).text("name"), err))
			}
		}
		drifts = append(drifts, d)
	}
	return drifts
}
