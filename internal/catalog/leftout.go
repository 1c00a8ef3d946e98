package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/clip"
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

// leftKey is what callers would call it by.
type leftKey struct {
	Kind    Kind
	Address string
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
