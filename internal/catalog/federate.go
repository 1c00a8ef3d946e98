package catalog

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

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

// federate returns what upstream servers offer and no address is taken of.
func (b *Builder) federate(found *build, defined []*hclfile.Definitions, registered []*Item) (kept []*Item) {
	found.report(found.lock.Problems)
	if b.options.Federate == nil || found.lock.Problems.HasErrors() {
		return nil
	}
	_, keys := secretsOf(found.config.Secrets)
	offered := b.options.Federate(found.upstreams, keys, LockFile{found.lock.Name, found.lock.Bytes})
	found.offered = offered
	found.report(offered.Problems)
	b.cacheOffered(found, offered.Items)
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
