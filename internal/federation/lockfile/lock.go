package lockfile

import (
	"maps"
	"slices"
	"strings"
)

// Lock holds the tools that were accepted. It does not change; what changes one returns
// another. The zero Lock knows no upstream.
type Lock struct {
	upstreams []accepted // sorted by name
}

// accepted are the tools of one upstream, sorted by name.
type accepted struct {
	upstream string
	tools    []Tool
}

// find returns where an upstream stands, or would.
func (l *Lock) find(upstream string) (i int, known bool) {
	return slices.BinarySearchFunc(l.upstreams, upstream, func(a accepted, name string) int {
		return strings.Compare(a.upstream, name)
	})
}

// of returns the accepted tools of an upstream; known is false when the lock has never
// heard of it.
func (l *Lock) of(upstream string) (tools []Tool, known bool) {
	i, known := l.find(upstream)
	if !known {
		return nil, false
	}
	return l.upstreams[i].tools, true
}

// Upstreams returns the names of the upstreams that the lock knows, sorted.
func (l *Lock) Upstreams() []string {
	var names []string
	for _, a := range l.upstreams {
		names = append(names, a.upstream)
	}
	return names
}

// Tools returns the accepted tools of an upstream, sorted by name.
func (l *Lock) Tools(upstream string) []Tool {
	tools, _ := l.of(upstream)
	return slices.Clone(tools)
}

// Pin returns the lock with an upstream that it knows from now on, and with those of the
// tools that are of this upstream in place of what was accepted under their names. It is
// for [Verdict.First].
func (l *Lock) Pin(upstream string, tools ...Tool) *Lock {
	before, _ := l.of(upstream)
	d := draft{}
	d.add(upstream, before)
	for _, t := range tools {
		if t.upstream == upstream {
			d[upstream][t.name] = t
		}
	}
	return l.with(d.accepted(upstream))
}

// with returns the lock with what it holds of one upstream in place of what it held.
func (l *Lock) with(a accepted) *Lock {
	i, known := l.find(a.upstream)
	upstreams := slices.Clone(l.upstreams)
	if known {
		upstreams[i] = a
	} else {
		upstreams = slices.Insert(upstreams, i, a)
	}
	return &Lock{upstreams}
}

// Accept returns the lock with changes taken in: what was added or changed is accepted as
// it was listed then, and what was removed is no longer.
func (l *Lock) Accept(changes ...Change) *Lock {
	d := draftOf(l)
	for _, c := range changes {
		d.know(c.Upstream)
		if c.Kind == Removed {
			delete(d[c.Upstream], c.Name)
		} else {
			d[c.Upstream][c.Name] = c.New
		}
	}
	return d.lock()
}

// Exposed returns the tools of an upstream that another lock holds with the same definition,
// and raw, as this lock does not.
func (l *Lock) Exposed(upstream string, other *Lock) (changes []Change) {
	before, _ := l.of(upstream)
	for _, now := range other.Tools(upstream) {
		if !now.raw {
			continue
		}
		i, known := slices.BinarySearchFunc(before, now.name, func(t Tool, name string) int { return strings.Compare(t.name, name) })
		if known && !before[i].raw && before[i].Equal(now) {
			changes = append(changes, Change{Kind: Changed, Upstream: upstream, Name: now.name, Old: before[i], New: now})
		}
	}
	return changes
}

// draft is a lock that changes: tools by the names of their upstreams and their own.
type draft map[string]map[string]Tool

func draftOf(l *Lock) draft {
	d := draft{}
	for _, a := range l.upstreams {
		d.add(a.upstream, a.tools)
	}
	return d
}

// add adds an upstream, and tools of it.
func (d draft) add(upstream string, tools []Tool) {
	d.know(upstream)
	for _, t := range tools {
		d[upstream][t.name] = t
	}
}

func (d draft) know(upstream string) {
	if d[upstream] == nil {
		d[upstream] = map[string]Tool{}
	}
}

func (d draft) lock() *Lock {
	l := &Lock{}
	for _, upstream := range slices.Sorted(maps.Keys(d)) {
		l.upstreams = append(l.upstreams, d.accepted(upstream))
	}
	return l
}

// accepted returns what a draft holds of an upstream.
func (d draft) accepted(upstream string) accepted {
	return accepted{upstream, slices.SortedFunc(maps.Values(d[upstream]), byName)}
}
