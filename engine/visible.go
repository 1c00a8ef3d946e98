package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/catalog"
	"github.com/mcpd/mcpd/policylang"
)

// Visible is what one caller may see of a snapshot: every tool that its
// policies do not surely deny to that caller.
type Visible struct {
	Snapshot *Snapshot
	// Tools are in bytewise order of their names. The slice is shared and must
	// not be changed.
	Tools []*Tool
	// Hash is the content hash of the tools: equal hashes mean equal lists.
	Hash string
	// Private says that other callers may see other lists.
	Private bool
}

// lists remembers the lists of a snapshot by what is visible in them, so that
// callers who see the same share one.
type lists struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*Visible
}

// maxLists bounds what a snapshot remembers; a flood of callers who each see
// something else costs time, not memory.
const maxLists = 256

// Visible returns what a caller may see now. Before the first successful load
// it is empty, with a nil Snapshot.
func (s *Server) Visible(ctx context.Context, caller identity.Caller) Visible {
	snap, err := s.loaded(ctx)
	if err != nil {
		return Visible{}
	}
	return *snap.visible(ctx, policylang.Input{Caller: caller, Now: s.options.Now()})
}

// Find returns the tool with a name when the caller may see it, and nil otherwise.
func (s *Server) Find(ctx context.Context, caller identity.Caller, name string) *Tool {
	snap, err := s.loaded(ctx)
	if err != nil {
		return nil
	}
	e := snap.catalog.Entry(name)
	if e == nil || snap.hiddenFrom(ctx, e, policylang.Input{Caller: caller, Now: s.options.Now()}) {
		return nil
	}
	return snap.Tool(name)
}

// hiddenFrom reports whether the tool is surely denied.
func (s *Snapshot) hiddenFrom(ctx context.Context, e *catalog.Entry, facts policylang.Input) bool {
	facts.Tool, facts.Call.Via = e.Facts, string(ViaClient)
	denier, _, covered := surely(ctx, e, facts)
	return denier != nil || s.catalog.DenyByDefault && !covered
}

// visible asks the policies of every tool what they say to this caller.
func (s *Snapshot) visible(ctx context.Context, facts policylang.Input) *Visible {
	if s.catalog.Policies == 0 && !s.catalog.DenyByDefault {
		return s.list(nil)
	}
	hidden := make([]byte, len(s.catalog.Entries))
	for i, e := range s.catalog.Entries {
		if s.hiddenFrom(ctx, e, facts) {
			hidden[i] = 1
		}
	}
	return s.list(hidden)
}

// list returns the list without the tools that are hidden, each marked by a one.
func (s *Snapshot) list(hidden []byte) *Visible {
	key := sha256.Sum256(hidden)
	s.lists.mu.Lock()
	defer s.lists.mu.Unlock()
	if known := s.lists.byKey[key]; known != nil {
		return known
	}
	v := &Visible{Snapshot: s, Private: s.catalog.Policies > 0}
	h := sha256.New()
	for i, e := range s.catalog.Entries {
		if hidden != nil && hidden[i] == 1 {
			continue
		}
		v.Tools = append(v.Tools, s.tools[i])
		h.Write(e.Key[:])
	}
	v.Hash = hex.EncodeToString(h.Sum(nil)[:16])
	if len(s.lists.byKey) < maxLists {
		if s.lists.byKey == nil {
			s.lists.byKey = map[[sha256.Size]byte]*Visible{}
		}
		s.lists.byKey[key] = v
	}
	return v
}

// nearest returns the name of a visible tool that the caller may have meant.
func (s *Snapshot) nearest(ctx context.Context, server *Server, req Request) string {
	visible := s.visible(ctx, policylang.Input{Caller: req.Caller, Now: server.options.Now()})
	names := make([]string, len(visible.Tools))
	for i, tool := range visible.Tools {
		names[i] = tool.item.Name
	}
	return diag.Suggest(req.Tool, names)
}
