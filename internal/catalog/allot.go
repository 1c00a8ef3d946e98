package catalog

import (
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/source"
)

// allot has each entry bound to what covers it, of which there is a bounded number, and
// returns what is wrong with each, and whether our own are too many; rules is how many may
// cover one. Our own come first, then what of upstream servers is served already, then tools
// that were accepted, and what is new last: a server that comes to offer more than there is
// room for has that left out, and takes the room of nobody.
func allot[T any](k *linker, s *soundRules[T], entries []*Entry, rules int, bind func(*Entry) diag.List) (found []diag.List, full bool) {
	found = make([]diag.List, len(entries))
	var own, served, accepted, fresh []int
	for i, e := range entries {
		switch {
		case e.Upstream == "":
			own = append(own, i)
		case k.offered[leftItem{leftKey{e.Kind, e.Address}, e.Key}]:
			served = append(served, i)
		case k.found.knows[ToolName{e.Upstream, e.Name}]:
			accepted = append(accepted, i)
		default:
			fresh = append(fresh, i)
		}
	}
	source.Parallel(len(own), func(n int) { found[own[n]] = bind(entries[own[n]]) })
	if s.room() < 0 {
		return found, true
	}
	for _, group := range [][]int{served, accepted, fresh} {
		if s.room() >= len(group)*rules {
			source.Parallel(len(group), func(n int) { found[group[n]] = bind(entries[group[n]]) })
			continue
		}
		for _, i := range group { // in order: which are left out is the same each time
			if s.room() >= 0 {
				found[i] = bind(entries[i])
			}
			if s.room() < 0 {
				found[i] = nil
				k.found.out(entries[i].Item, LeftOut{Why: "the rules that read args cover too many items", Unruled: true}, entries[i].Where)
			}
		}
	}
	return found, false
}
