package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/clip"
	"github.com/mcpd/mcpd/internal/crossref"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// LeftOut is one thing that an upstream server offers and that is not served.
type LeftOut struct {
	leftKey
	// Upstream is the name of the server, and Why says why, for the operator.
	Upstream, Why string
	// Quarantined says that it is a tool that nobody has accepted as it is.
	Quarantined bool
	// Unruled says that a rule which covers it does not fit it, and Taken that it would be
	// called as something that is served.
	Unruled, Taken bool
}

// Quarantined is the code of warnings of tools that nobody has accepted as they are. The log
// has each of them with what has become of it.
const Quarantined = "quarantined"

// NewLeftOut returns what is left out before it is an item: address is what callers would
// call it by.
func NewLeftOut(kind Kind, address, upstream, why string) LeftOut {
	return LeftOut{leftKey: leftKey{kind, clipped(address)}, Upstream: upstream, Why: why}
}

// Federated is what upstream servers offer.
type Federated struct {
	Items []*Item
	// LeftOut is what they offer and is no item, for a reason that the operator is to know.
	LeftOut []LeftOut
	// Problems are warnings of what cannot be offered, and mistakes in the lock file.
	Problems diag.List
	// Instructions are those of servers whose blocks want them added to our own, each behind
	// the name of its server.
	Instructions []string
	// Known are the tools that were accepted of them, also of those that cannot be reached.
	Known []ToolName
	// Silent are the names of those of which nothing is known, as they cannot be reached.
	Silent []string
	// Unasked are the names of those that were not asked: what is known of them are tools alone.
	Unasked []string
	// Accepted hashes what was accepted of them, and what was not; it is zero as long as
	// there is nothing of either.
	Accepted [32]byte
}

// ToolName is how callers call a tool of an upstream server.
type ToolName struct{ Upstream, Name string }

// LockFile is the file of what was accepted of upstream servers.
type LockFile struct {
	// Name is how diagnostics call it; "" where none is kept.
	Name string
	// Text is nil where there is no file.
	Text []byte
}

// leftKey is what callers would call it by.
type leftKey struct {
	Kind    Kind
	Address string
}

// offer is what a server offers by what callers would call it, whatever it is.
type offer struct {
	leftKey
	upstream string
}

// leftItem is one thing that is left out, as it is now.
type leftItem struct {
	leftKey
	key [32]byte
}

// maxLeftTold bounds the warnings of what is left out of one upstream: it lists thousands
// of things as easily, and again and again.
const maxLeftTold = 20

// leaveOut has what an upstream offers not served, and warns of it at a place.
func (f *build) leaveOut(item *Item, why string, at diag.Range, notes ...diag.Note) {
	f.out(item, LeftOut{Why: why}, at, notes...)
}

// out is leaveOut for a reason that the rest of left tells.
func (f *build) out(item *Item, left LeftOut, at diag.Range, notes ...diag.Note) {
	f.mu.Lock()
	is := leftItem{leftKey{item.Kind, item.Address}, item.Key}
	if f.isOut[is] {
		f.mu.Unlock()
		return
	}
	f.isOut[is] = true
	left.leftKey, left.Upstream = is.leftKey, item.Upstream
	f.left = append(f.left, left)
	f.leftOf[item.Upstream]++
	told := f.leftOf[item.Upstream]
	f.mu.Unlock()
	if told > maxLeftTold {
		return
	}
	f.report(diag.List{{
		Severity: diag.Warning, Code: "left-out", Range: at, Notes: notes,
		Summary: fmt.Sprintf("the %s %q of the upstream %q is left out: %s", item.Kind, clipped(item.Name), item.Upstream, left.Why),
	}})
}

// clipped bounds a name that a server gives, in bytes. It breaks no character.
func clipped(name string) string {
	if len(name) > maxName {
		return clip.Start(name, maxName) + "…"
	}
	return name
}

// isLeft reports whether an item is left out.
func (f *build) isLeft(i *Item) bool {
	return i.Upstream != "" && f.isOut[leftItem{leftKey{i.Kind, i.Address}, i.Key}]
}

// tellMore says how much is left out of which nothing was told.
func (f *build) tellMore() {
	for i := range f.upstreams {
		u := &f.upstreams[i]
		if more := f.leftOf[u.Name] - maxLeftTold; more > 0 {
			f.report(diag.List{{
				Severity: diag.Warning, Code: "left-out", Range: u.NameRange, Summary: fmt.Sprintf("%d things more of the upstream %q are left out", more, u.Name),
			}})
		}
	}
}

// excuses reports whether what an upstream offers is left out where it does not fit, and
// is no mistake of the files: it has come, or become another, by itself. What a file
// breaks is a mistake of that file: that is what the catalog which serves has, and all that
// a server offers whose block is new. A server that offers something else all the time
// keeps no file from being loaded.
func (b *Builder) excuses(found *build, item *Item) bool {
	if found.lenient {
		return true
	}
	at := slices.IndexFunc(found.upstreams, func(u hclfile.Upstream) bool { return u.Name == item.Upstream })
	heard, known := b.heard[item.Upstream]
	return known && heard == found.upstreams[at].Meaning && !b.offered[leftItem{leftKey{item.Kind, item.Address}, item.Key}]
}

// hear remembers what the catalog that was made last has of upstream servers.
func (b *Builder) hear() {
	spoke := map[string]bool{}
	b.offered, b.excused = map[leftItem]bool{}, map[namedKind]bool{}
	holders := map[leftKey]string{}
	for kind := range b.built.Entries {
		for _, e := range b.built.Entries[kind] {
			if e.Upstream != "" {
				spoke[e.Upstream], b.offered[leftItem{leftKey{e.Kind, e.Address}, e.Key}] = true, true
				b.excused[namedKind{e.Kind.String(), e.Name}] = true
				if e.Kind == Tools || e.Kind == Prompts {
					holders[leftKey{e.Kind, e.Address}] = e.Upstream
				}
			}
		}
	}
	left := map[offer]bool{}
	for _, l := range b.built.LeftOut {
		left[offer{l.leftKey, l.Upstream}], spoke[l.Upstream] = true, true
	}
	for key, upstream := range b.holders {
		if _, served := holders[key]; !served && (slices.Contains(b.built.silent, upstream) || left[offer{key, upstream}]) {
			holders[key] = upstream
		}
	}
	b.holders = holders
	for _, name := range b.built.excused {
		b.excused[name] = true
	}
	heard := map[string]hclfile.Hash{}
	for i := range b.built.Upstreams {
		u := &b.built.Upstreams[i]
		before, known := b.heard[u.Name]
		if spoke[u.Name] || known && before == u.Meaning {
			heard[u.Name] = u.Meaning
		}
	}
	b.heard = heard
}

// federate returns what upstream servers offer and no address is taken of.
func (b *Builder) federate(found *build, defined []*hclfile.Definitions, registered []*Item, change Change) (kept []*Item) {
	found.report(found.lock.Problems)
	if b.options.Federate == nil || found.lock.Problems.HasErrors() {
		return nil
	}
	_, keys := secretsOf(found.config.Secrets)
	offered := b.options.Federate(found.upstreams, keys, LockFile{found.lock.Name, found.lock.Bytes})
	found.report(offered.Problems)
	found.left, found.accepted = offered.LeftOut, offered.Accepted
	found.instructions, found.unasked, found.known, found.silent = offered.Instructions, offered.Unasked, offered.Known, offered.Silent
	found.knows = make(map[ToolName]bool, len(found.known))
	for _, t := range found.known {
		found.knows[t] = true
	}
	taken, owners, holder := addressesOf(defined, registered), ownersOf(found.upstreams), b.holds(found, offered.Items)
	for _, item := range offered.Items {
		if owner := owners.other(item); owner != nil {
			free := b.excuses(found, item) || found.starting(item)
			if owner.renames && !free {
				found.report(diag.List{{
					Code: "duplicate-" + item.Kind.String(), Range: owner.at,
					Summary: fmt.Sprintf("the upstream %q offers a %s %q, which is no name for one of another upstream", item.Upstream, item.Kind, item.Name),
					Detail:  "give it another name", Notes: []diag.Note{{Range: item.Where, Message: "it is offered by this"}},
				}})
				continue
			}
			found.out(item, LeftOut{Why: owner.why, Taken: owner.renames}, item.Where, diag.Note{Range: owner.at, Message: "it is this"})
			continue
		}
		key := leftKey{item.Kind, item.Address}
		first, is := taken[key]
		if u := holder(key); !is && u != nil && u.Name != item.Upstream {
			first, is = u.NameRange, true
		}
		switch {
		case !is:
			taken[key], kept = item.Where, append(kept, item)
		case item.Kind == Resources || item.Kind == Templates:
			found.leaveOut(item, "there is one of that address already", item.Where, diag.Note{Range: first, Message: "it is of this"})
		case b.excuses(found, item) || found.starting(item):
			found.out(item, LeftOut{Why: "there is one of that name already", Taken: true}, item.Where, diag.Note{Range: first, Message: "it is of this"})
		default:
			found.report(diag.List{{
				Code: "duplicate-" + item.Kind.String(), Range: item.Where,
				Summary: fmt.Sprintf("the upstream %q offers a %s %q, and there is one of that name", item.Upstream, item.Kind, item.Name),
				Detail:  "give the upstream another prefix, or this one another name: rename = { … }",
				Notes:   []diag.Note{{Range: first, Message: "it is defined here"}},
			}})
		}
	}
	return kept
}

// holds returns what tells of a tool or a prompt whose it is, nil for nobody's: who has served
// it first keeps the name, whatever others come to offer, as long as it offers the same or
// cannot be reached.
func (b *Builder) holds(found *build, items []*Item) func(leftKey) *hclfile.Upstream {
	offers := map[offer]bool{}
	for _, item := range items {
		offers[offer{leftKey{item.Kind, item.Address}, item.Upstream}] = true
	}
	for _, l := range found.left { // such as a tool in quarantine
		offers[offer{l.leftKey, l.Upstream}] = true
	}
	return func(key leftKey) *hclfile.Upstream {
		name := b.holders[key]
		at := slices.IndexFunc(found.upstreams, func(u hclfile.Upstream) bool { return u.Name == name })
		if at < 0 || !offers[offer{key, name}] && !slices.Contains(found.silent, name) {
			return nil
		}
		return &found.upstreams[at]
	}
}

// starting reports whether nothing is known yet but that something of the server of an item
// was accepted before: a server that starts again is not to depend on what others have come
// to offer meanwhile.
func (f *build) starting(item *Item) bool {
	return f.starts && slices.ContainsFunc(f.known, func(t ToolName) bool { return t.Upstream == item.Upstream })
}

// namedKind is what a definition is about: a kind and a name.
type namedKind struct{ kind, name string }

// elsewhere returns what no file defines, for those who check references. That no server
// offers what a definition is about is a mistake where an edit brings that in. It is none
// where the server did offer it, or nobody could tell: at the start, and when a server has
// changed its mind, which is not to keep later edits from being loaded.
func (b *Builder) elsewhere(found *build, items []*Item, change Change) crossref.Elsewhere {
	e := crossref.Elsewhere{Offered: make([]crossref.Offered, len(items))}
	for i, item := range items {
		e.Offered[i] = crossref.Offered{Kind: item.Kind.String(), Name: item.Name, Upstream: item.Upstream, Range: item.Where, ToolsAlone: slices.Contains(found.unasked, item.Upstream)}
	}
	accepted := map[string]bool{}
	for _, t := range found.known {
		accepted[t.Name] = true
	}
	e.Excuse = func(kind, name string) bool {
		n := namedKind{kind, name}
		excused := b.whole == nil || change.Upstreams || change.Start || b.excused[n] || kind == Tools.String() && accepted[name]
		if excused {
			found.excused = append(found.excused, n)
		}
		return excused
	}
	return e
}

// excuse leaves an entry out that policies or limits cannot be compiled for, where that
// is no mistake of theirs: at the start nobody knows whether the server has changed since
// they were written, and a server that starts again is not to depend on it. It returns what
// there is left to tell.
func (k *linker) excuse(e *Entry, problems diag.List) diag.List {
	if e.Upstream == "" || !problems.HasErrors() || !k.found.starts && !k.excuses(k.found, e.Item) {
		return problems
	}
	first := problems[slices.IndexFunc(problems, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })]
	k.found.out(e.Item, LeftOut{Why: "a rule that covers it does not fit its inputs: " + first.Summary, Unruled: true}, first.Range, first.Notes...)
	return slices.DeleteFunc(problems, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
}

// leave takes out of the catalog what is left out, and returns the entries that stay.
func (k *linker) leave(entries []*Entry) []*Entry {
	k.catalog.LeftOut, k.catalog.Known, k.catalog.silent, k.catalog.excused = k.found.left, k.found.known, k.found.silent, k.found.excused
	k.found.tellMore()
	if len(k.found.left) == 0 {
		return entries
	}
	h := sha256.New()
	fmt.Fprint(h, k.catalog.Revision)
	for _, l := range k.found.left { // so that the status tells of what has come to be left out
		fmt.Fprintf(h, "\n%s %q %q %q", l.Kind, l.Address, l.Upstream, l.Why)
	}
	k.catalog.Revision = hex.EncodeToString(h.Sum(nil)[:16])
	left := func(e *Entry) bool { return k.found.isLeft(e.Item) }
	for kind := range k.catalog.Entries {
		for _, e := range k.catalog.Entries[kind] {
			if left(e) {
				delete(k.catalog.byAddress[kind], e.Address)
			}
		}
		k.catalog.Entries[kind] = slices.DeleteFunc(k.catalog.Entries[kind], left)
	}
	k.catalog.templates = slices.DeleteFunc(k.catalog.templates, left)
	return slices.DeleteFunc(entries, left)
}
