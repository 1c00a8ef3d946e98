package catalog

import (
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/crossref"
	"github.com/mcpd/mcpd/internal/hclfile"
)

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
	e := crossref.Elsewhere{Offered: make([]crossref.Offered, len(items)), Incomplete: b.tree.Incomplete()}
	for i, item := range items {
		e.Offered[i] = crossref.Offered{Kind: item.Kind.String(), Name: item.Name, Upstream: item.Upstream, Range: item.Where, ToolsAlone: slices.Contains(found.unasked, item.Upstream)}
	}
	accepted := map[string]bool{}
	for _, t := range found.known {
		accepted[t.Name] = true
	}
	e.Excuse = func(kind, name string) bool {
		n := namedKind{kind, name}
		excused := b.whole == nil || found.lenient || change.Start || b.excused[n] || kind == Tools.String() && accepted[name]
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
