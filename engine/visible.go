package engine

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/policylang"
)

// Visible is what one caller may see of a kind of a snapshot: all that its
// policies do not surely deny to that caller.
type Visible struct {
	Snapshot *Snapshot
	// Tools, or Offers of any other kind, are in bytewise order of what they are
	// called by. The slices are shared and must not be changed.
	Tools  []*Tool
	Offers []*Offer
	// Hash is the content hash of what a list shows: equal hashes mean equal lists.
	Hash string
	// Private says that other callers may see other lists.
	Private bool
}

// Visible returns what a caller may see of a kind now. Before the first
// successful load it is empty, with a nil Snapshot.
func (s *Server) Visible(ctx context.Context, k call.Kind, caller identity.Caller) Visible {
	snap, err := s.loaded(ctx)
	if err != nil {
		return Visible{}
	}
	return *snap.visible(ctx, k, s.looking(caller))
}

// Find returns the tool with a name when the caller may see it, and nil otherwise.
func (s *Server) Find(ctx context.Context, caller identity.Caller, name string) *Tool {
	snap, err := s.loaded(ctx)
	if err != nil {
		return nil
	}
	if e := snap.catalog.Entry(call.Tools, name); e == nil || s.hides(ctx, snap, e, caller) {
		return nil
	}
	return snap.Tool(name)
}

// Serves reports whether a URI names a resource that the caller may see, listed
// or not.
func (s *Server) Serves(ctx context.Context, caller identity.Caller, uri string) bool {
	snap, err := s.loaded(ctx)
	if err != nil {
		return false
	}
	e, _ := snap.catalog.Read(uri)
	return e != nil && !s.hides(ctx, snap, e, caller)
}

func (s *Server) hides(ctx context.Context, snap *Snapshot, e *catalog.Entry, caller identity.Caller) bool {
	return snap.catalog.Hides(ctx, e, s.looking(caller))
}

// looking is what policies know of a caller who looks at what there is.
func (s *Server) looking(caller identity.Caller) policylang.Input {
	return catalog.Looking(caller, s.options.Now())
}

// visible returns what a caller may see of a kind.
func (s *Snapshot) visible(ctx context.Context, k call.Kind, facts policylang.Input) *Visible {
	return s.list(k, s.catalog.Hidden(ctx, k, facts))
}

// list returns the list without the items that are hidden, each marked by a one.
func (s *Snapshot) list(k call.Kind, hidden []byte) *Visible {
	return s.lists.Of(k, s.catalog.Entries[k], hidden, func(seen []int, hash string) *Visible {
		v := &Visible{Snapshot: s, Hash: hash, Private: s.catalog.Policies > 0}
		for _, i := range seen {
			if k == call.Tools {
				v.Tools = append(v.Tools, s.tools[i])
			} else {
				v.Offers = append(v.Offers, s.offers[k][i])
			}
		}
		return v
	})
}
