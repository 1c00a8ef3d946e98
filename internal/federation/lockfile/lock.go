// Package lockfile stores the accepted tools of upstream MCP servers.
//
// A [Tool] is a definition that an upstream lists: what an agent reads, and the schema of its
// calls. A [Lock] holds the accepted tools, the content of the file mcpd.lock. [ParseTool]
// extracts the definition from an entry of tools/list. [Lock.Check] compares a listing with the
// lock and returns the tools that may be served, and each [Change]. [Change.Diff] shows a
// change, and [Lock.Accept] accepts it. Locks are immutable: methods that change one return a
// new one.
//
// # Policy
//
// A tool is served only with the definition in the lock. Any other definition is quarantined
// until the operator accepts it. With [FirstUse], the tools of an upstream that the lock does
// not have are accepted automatically, and later changes are not. With [Strict], nothing is
// accepted automatically. An upstream stays in the lock even if it has no tools left.
//
// # Definitions
//
// A definition has the members name, title, description, inputSchema, outputSchema and
// annotations of an entry. Other members (_meta, icons, execution, and members of future
// revisions) are not part of it: they change with releases and sessions of a server, and do not
// describe the behavior of the tool. A program that serves a pinned tool must not pass them to
// a model. A null member counts as absent, because servers write either.
//
// Definitions are compared by value, in the canonical form of RFC 8785, except that numbers
// keep all their digits. Key order, white space and the spelling of strings and numbers do not
// matter, but two integers with the same float64 value are different. The hash of a definition
// is the SHA-256 of this form.
//
// # File
//
// The file is text with a sorted block for each tool. It holds the full definition with one
// member per line, and long texts with one sentence per line, so that a review shows what was
// added. Adjacent string literals form one string. Characters that are invisible, or that move
// others, are escaped. A definition that does not match its hash is an error: it was edited by
// hand, or mixed by a merge. The hash is not a signature: a user who can write the file can accept
// tools. A tool with an excessive encoded size is rejected: a few bytes in a listing may take
// many in the file.
//
// The package contacts no servers, makes no decisions about calls, and does not lock the file
// against other processes.
//
// The canonical JSON encoder is hand-written: implementations of RFC 8785 round numbers to
// float64, and hashes of accepted definitions must stay the same.
package lockfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Lock holds the accepted tools. It is immutable; methods that change it return a new Lock. The
// zero Lock has no upstreams.
type Lock struct {
	upstreams []upstreamTools // sorted by name
}

// upstreamTools are the tools of one upstream, sorted by name.
type upstreamTools struct {
	upstream string
	tools    []Tool
}

// index returns the position of an upstream, or its insertion point.
func (l *Lock) index(upstream string) (i int, known bool) {
	return slices.BinarySearchFunc(l.upstreams, upstream, func(a upstreamTools, name string) int {
		return strings.Compare(a.upstream, name)
	})
}

// toolsOf returns the accepted tools of an upstream. known is false if the lock does not have
// it.
func (l *Lock) toolsOf(upstream string) (tools []Tool, known bool) {
	i, known := l.index(upstream)
	if !known {
		return nil, false
	}
	return l.upstreams[i].tools, true
}

// Upstreams returns the sorted names of the upstreams in the lock.
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

// WithTools returns the lock with an upstream added, and with its tools replaced or added. It
// ignores tools of other upstreams. Use it for [CheckResult.FirstUse].
func (l *Lock) WithTools(upstream string, tools ...Tool) *Lock {
	before, _ := l.toolsOf(upstream)
	b := lockBuilder{}
	b.add(upstream, before)
	for _, t := range tools {
		if t.upstream == upstream {
			b[upstream][t.name] = t
		}
	}
	return l.with(b.tools(upstream))
}

// with returns the lock with the tools of one upstream replaced.
func (l *Lock) with(t upstreamTools) *Lock {
	i, known := l.index(t.upstream)
	upstreams := slices.Clone(l.upstreams)
	if known {
		upstreams[i] = t
	} else {
		upstreams = slices.Insert(upstreams, i, t)
	}
	return &Lock{upstreams}
}

// Accept returns the lock with changes accepted: added and changed tools as they were listed,
// and without the removed ones.
func (l *Lock) Accept(changes ...Change) *Lock {
	b := lockBuilder{}
	for _, a := range l.upstreams {
		b.add(a.upstream, a.tools)
	}
	for _, c := range changes {
		b.addUpstream(c.Upstream)
		if c.Kind == Removed {
			delete(b[c.Upstream], c.Name)
		} else {
			b[c.Upstream][c.Name] = c.New
		}
	}
	return b.lock()
}

// RawChanges returns the tools of an upstream that other accepts raw and l does not, with the
// same definition.
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

// lockBuilder is a mutable lock: tools by upstream and name.
type lockBuilder map[string]map[string]Tool

func (b lockBuilder) add(upstream string, tools []Tool) {
	b.addUpstream(upstream)
	for _, t := range tools {
		b[upstream][t.name] = t
	}
}

func (b lockBuilder) addUpstream(upstream string) {
	if b[upstream] == nil {
		b[upstream] = map[string]Tool{}
	}
}

func (b lockBuilder) lock() *Lock {
	l := &Lock{}
	for _, upstream := range slices.Sorted(maps.Keys(b)) {
		l.upstreams = append(l.upstreams, b.tools(upstream))
	}
	return l
}

// tools returns the tools of an upstream.
func (b lockBuilder) tools(upstream string) upstreamTools {
	return upstreamTools{upstream, slices.SortedFunc(maps.Values(b[upstream]), byName)}
}

// WithMissing returns the lock with those upstreams of another lock that it does not have, as
// far as they fit into the file. Smaller ones come first, so that a large one does not displace
// others. It returns l if none can be added.
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

// Hash returns a hash of the lock that is equal for equal locks only. It covers the hashes of
// the definitions and is not the hash of the file.
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
