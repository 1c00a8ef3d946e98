package serve

import (
	"log/slog"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// show encodes what a snapshot offers, each thing once: the same [engine.Tool]
// or [engine.Offer] serves all snapshots in which its definition is unchanged.
type encodeCache struct {
	logger *slog.Logger

	mu sync.Mutex
	// snapshot is what all that follows belongs to.
	snapshot *engine.Snapshot
	// entries are encoded, by their [engine.Tool] or [engine.Offer].
	entries map[any]*mcp.Entry
	lists   map[listKey][]*mcp.Entry
}

func newEncodeCache(logger *slog.Logger) encodeCache {
	return encodeCache{logger: logger, entries: map[any]*mcp.Entry{}}
}

// shownKey is a kind and the content hash of a list.
type listKey struct {
	kind call.Kind
	hash string
}

// maxLists bounds how many lists of a snapshot are remembered: one for each set
// that some caller may see of a kind.
const maxCachedLists = 256

func (s *encodeCache) list(k call.Kind, visible *engine.Visible) (list []*mcp.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != visible.Snapshot {
		s.reset(visible.Snapshot)
	}
	key := listKey{k, visible.Hash}
	if known, ok := s.lists[key]; ok {
		return known
	}
	for _, tool := range visible.Tools {
		if encoded := s.encodeTool(tool); encoded != nil {
			list = append(list, encoded)
		}
	}
	for _, offer := range visible.Offers {
		if encoded := s.encodeOffer(offer); encoded != nil {
			list = append(list, encoded)
		}
	}
	if len(s.lists) < maxCachedLists {
		s.lists[key] = list
	}
	return list
}

// renew forgets what the new snapshot does not hold; mu is held.
func (s *encodeCache) reset(snap *engine.Snapshot) {
	entries := map[any]*mcp.Entry{}
	keep := func(of any) {
		if encoded := s.entries[of]; encoded != nil {
			entries[of] = encoded
		}
	}
	for _, tool := range snap.Tools() {
		keep(tool)
	}
	for _, kind := range []call.Kind{call.Resources, call.Templates, call.Prompts} {
		for _, offer := range snap.Offers(kind) {
			keep(offer)
		}
	}
	s.snapshot, s.entries, s.lists = snap, entries, map[listKey][]*mcp.Entry{}
}

func (s *encodeCache) tool(tool *engine.Tool) *mcp.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.encodeTool(tool)
}

// encodeTool is tool for a caller that holds mu.
func (s *encodeCache) encodeTool(tool *engine.Tool) *mcp.Entry {
	if encoded := s.entries[tool]; encoded != nil {
		return encoded
	}
	encoded, err := mcp.NewTool(toolInfo(tool.Metadata()))
	return s.store(tool, call.Tools, tool.Name(), encoded, err)
}

// encodeOffer encodes a resource, a template or a prompt; mu is held.
func (s *encodeCache) encodeOffer(offer *engine.Offer) *mcp.Entry {
	if encoded := s.entries[offer]; encoded != nil {
		return encoded
	}
	m := offer.Metadata()
	encoded, err := entryOf(m)
	return s.store(offer, m.Kind, m.Name, encoded, err)
}

// keep keeps what was encoded of a tool or an offer. One that cannot be put on the wire is
// left out, and the log says why: [Checks] would have found it at load. mu is held.
func (s *encodeCache) store(of any, k call.Kind, name string, encoded *mcp.Entry, err error) *mcp.Entry {
	if err != nil {
		s.logger.Error("a "+k.String()+" cannot be listed", slog.String("name", name), slog.String("error", err.Error()))
		return nil
	}
	s.entries[of] = encoded
	return encoded
}

func toolInfo(m engine.Metadata) mcp.ToolInfo {
	info := mcp.ToolInfo{
		Name: m.Name, Title: m.Title, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema,
		ReadOnly: m.ReadOnly, Destructive: m.Destructive, OpenWorld: m.OpenWorld,
		Idempotent: m.Idempotent, TimeoutMS: m.Timeout.Milliseconds(), Icons: wireIcons(m.Icons),
	}
	if m.Description != nil {
		info.Description, info.HasDescription = *m.Description, true
	}
	return info
}

func entryOf(m engine.OfferMetadata) (*mcp.Entry, error) {
	info := mcp.EntryInfo{
		Kind: m.Kind, Address: m.Address, Name: m.Name, Title: m.Title, Description: m.Description, MIMEType: m.MIMEType, Size: m.Size,
		Annotations: m.Annotations, Icons: wireIcons(m.Icons),
	}
	for _, a := range m.Arguments {
		info.Arguments = append(info.Arguments, mcp.Argument(a))
	}
	return mcp.NewEntry(info)
}

func wireIcons(icons []engine.Icon) []mcp.Icon {
	var list []mcp.Icon
	for _, i := range icons {
		list = append(list, mcp.Icon(i))
	}
	return list
}
