package telemetry

import (
	"slices"
	"time"
)

// What is kept of names that are in no snapshot any more: for how long, and how
// many names of all there may be at once.
const (
	keepGone  = 10 * time.Minute
	mostNames = 2000
)

// names maps names to what counts them. It is immutable: a new one is made for
// each snapshot, and whenever names are let go of.
type names[Name comparable, Series any] struct {
	known map[Name]Series
	gone  map[Name]time.Time // when a name ceased to be in the snapshot
}

// with returns the names for a snapshot. Of more than there may be, the later ones
// are left out; those that are gone make room first.
func (n names[Name, Series]) with(wanted []Name, now time.Time, begin func(Name) Series) (next names[Name, Series], dropped []Series) {
	next = names[Name, Series]{known: make(map[Name]Series, len(wanted)), gone: map[Name]time.Time{}}
	for _, name := range wanted {
		if _, twice := next.known[name]; twice || len(next.known) == mostNames {
			continue
		}
		series, known := n.known[name]
		if !known {
			series = begin(name)
		}
		next.known[name] = series
	}
	for _, name := range n.latest() {
		if _, wanted := next.known[name]; wanted {
			continue
		}
		since, gone := n.gone[name]
		if !gone {
			since = now
		}
		if len(next.known) == mostNames || now.Sub(since) >= keepGone {
			dropped = append(dropped, n.known[name])
			continue
		}
		next.known[name], next.gone[name] = n.known[name], since
	}
	return next, dropped
}

// latest returns the names, those that went last or have not gone first.
func (n names[Name, Series]) latest() []Name {
	all := make([]Name, 0, len(n.known))
	for name := range n.known {
		if _, gone := n.gone[name]; !gone {
			all = append(all, name)
		}
	}
	here := len(all)
	for name := range n.gone {
		all = append(all, name)
	}
	slices.SortFunc(all[here:], func(a, b Name) int { return n.gone[b].Compare(n.gone[a]) })
	return all
}

// overdue reports whether there are names to let go of.
func (n names[Name, Series]) overdue(now time.Time) bool {
	for _, since := range n.gone {
		if now.Sub(since) >= keepGone {
			return true
		}
	}
	return false
}

// present returns the names of the snapshot, in no order.
func (n names[Name, Series]) present() []Name {
	var all []Name
	for name := range n.known {
		if _, gone := n.gone[name]; !gone {
			all = append(all, name)
		}
	}
	return all
}
