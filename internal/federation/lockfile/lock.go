// Package lockfile holds the tools of other MCP servers as an operator has accepted them.
//
// A [Tool] is the definition that an upstream lists: what an agent reads of it, and what
// it is called with. A [Lock] is what was accepted, the content of the file mcpd.lock.
// [Of] takes a definition out of an entry of tools/list, [Lock.Check] compares what an
// upstream lists now with what was accepted, and says what may be served and what is a
// [Change]; [Change.Diff] shows one, and [Lock.Accept] takes it in. Locks are values: what
// changes one returns another.
//
// # Policy
//
// A tool is served only with the definition that the lock holds. Whatever else is listed
// is quarantined until somebody accepts it, under one of two modes: with [FirstUse], all
// that an upstream lists while the lock does not know that upstream is taken in without a
// question, and what it lists later is not; with [Strict], nothing is ever taken in
// without a question. An upstream is known from then on, also when it has no tool left.
//
// # Definitions
//
// A definition is the members name, title, description, inputSchema, outputSchema and
// annotations of an entry. Others (_meta, icons, execution, and those of revisions to
// come) are no part of it: they change with releases and sessions of a server, and say
// nothing of what a tool does. Who serves a tool by its pin must therefore not pass them
// to a model. A member that is null is absent, as servers write either.
//
// Definitions are compared by value, in the canonical form of RFC 8785 but for numbers,
// which keep all their digits: key order, white space and the spelling of strings and
// numbers change nothing, and two integers that are the same float64 are still two. The
// hash of a definition is the SHA-256 of that form.
//
// # File
//
// The file is text, a block for each tool, sorted, with the whole definition one member a
// line, and long texts one sentence a line, so that a review shows what was put into one.
// Adjacent string literals are one string. Characters that show nothing, or that move
// others, are escapes. A definition that does not fit the hash above it is an error: it
// was edited by hand, or mixed by a merge. The hash is no signature; who may write the
// file may accept tools. What would take much of a file is no tool: what is listed in a few
// bytes may take many there.
//
// The package asks no server, decides nothing about a call, and locks no file against
// other processes.
//
// Canonical JSON is written by hand: implementations of RFC 8785 round numbers to a
// float64, and hashes of accepted definitions must stay what they are.
package lockfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Lock holds the tools that were accepted. It does not change; what changes one returns
// another. The zero Lock knows no upstream.
type Lock struct {
	upstreams []upstreamTools // sorted by name
}

// accepted are the tools of one upstream, sorted by name.
type upstreamTools struct {
	upstream string
	tools    []Tool
}

// find returns where an upstream stands, or would.
func (l *Lock) index(upstream string) (i int, known bool) {
	return slices.BinarySearchFunc(l.upstreams, upstream, func(a upstreamTools, name string) int {
		return strings.Compare(a.upstream, name)
	})
}

// of returns the accepted tools of an upstream; known is false when the lock has never
// heard of it.
func (l *Lock) toolsOf(upstream string) (tools []Tool, known bool) {
	i, known := l.index(upstream)
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
	tools, _ := l.toolsOf(upstream)
	return slices.Clone(tools)
}

// Pin returns the lock with an upstream that it knows from now on, and with those of the
// tools that are of this upstream in place of what was accepted under their names. It is
// for [Verdict.First].
func (l *Lock) WithTools(upstream string, tools ...Tool) *Lock {
	before, _ := l.toolsOf(upstream)
	d := lockBuilder{}
	d.add(upstream, before)
	for _, t := range tools {
		if t.upstream == upstream {
			d[upstream][t.name] = t
		}
	}
	return l.with(d.tools(upstream))
}

// with returns the lock with what it holds of one upstream in place of what it held.
func (l *Lock) with(a upstreamTools) *Lock {
	i, known := l.index(a.upstream)
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
	d := lockBuilder{}
	for _, a := range l.upstreams {
		d.add(a.upstream, a.tools)
	}
	for _, c := range changes {
		d.addUpstream(c.Upstream)
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
func (l *Lock) RawChanges(upstream string, other *Lock) (changes []Change) {
	before, _ := l.toolsOf(upstream)
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
type lockBuilder map[string]map[string]Tool

func (d lockBuilder) add(upstream string, tools []Tool) {
	d.addUpstream(upstream)
	for _, t := range tools {
		d[upstream][t.name] = t
	}
}

func (d lockBuilder) addUpstream(upstream string) {
	if d[upstream] == nil {
		d[upstream] = map[string]Tool{}
	}
}

func (d lockBuilder) lock() *Lock {
	l := &Lock{}
	for _, upstream := range slices.Sorted(maps.Keys(d)) {
		l.upstreams = append(l.upstreams, d.tools(upstream))
	}
	return l
}

// accepted returns what a draft holds of an upstream.
func (d lockBuilder) tools(upstream string) upstreamTools {
	return upstreamTools{upstream, slices.SortedFunc(maps.Values(d[upstream]), byName)}
}

// Fill returns the lock with those upstreams of another that it does not know and that its
// file has room for. The shortest come first: one that lists much takes the room of none
// that lists little. It is the lock itself where that is none.
func (l *Lock) WithMissing(other *Lock) *Lock {
	shortest := slices.SortedFunc(slices.Values(other.upstreams), func(a, b upstreamTools) int {
		return cmp.Or(a.encodedSize()-b.encodedSize(), strings.Compare(a.upstream, b.upstream))
	})
	room := maxFile - l.EncodedSize()
	for _, a := range shortest {
		if _, known := l.index(a.upstream); !known && a.encodedSize() <= room {
			l, room = l.with(a), room-a.encodedSize()
		}
	}
	return l
}

// Sum returns a hash of what a lock holds, which equal locks share, and no others. It is
// made of the hashes of the definitions, and is not that of the file.
func (l *Lock) Hash() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, a := range l.upstreams {
		head := binary.AppendUvarint(nil, uint64(len(a.upstream)))
		head = append(head, a.upstream...)
		h.Write(binary.AppendUvarint(head, uint64(len(a.tools))))
		for i := range a.tools {
			h.Write(a.tools[i].sum[:])
		}
		for i := range a.tools {
			if a.tools[i].raw {
				h.Write(binary.AppendUvarint([]byte(rawLine), uint64(i)))
			}
		}
	}
	h.Sum(sum[:0])
	return sum
}
