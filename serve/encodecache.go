package serve

import (
	"log/slog"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// encodeCache encodes each tool and offer of a snapshot once: an [engine.Tool]
// or [engine.Offer] is shared by all snapshots with the same definition.
type encodeCache struct {
	logger *slog.Logger

	mu sync.Mutex
	// snapshot is the snapshot of the lists.
	snapshot *engine.Snapshot
	// entries are the encoded entries by [engine.Tool] or [engine.Offer].
	entries map[any]*mcp.Entry
	lists   map[listKey][]*mcp.Entry
}

func newEncodeCache(logger *slog.Logger) encodeCache {
	return encodeCache{logger: logger, entries: map[any]*mcp.Entry{}}
}

// listKey identifies a list by its kind and content hash.
type listKey struct {
	kind call.Kind
	hash string
}

// maxCachedLists bounds the cached lists of a snapshot: one for each kind and
// each set that callers may see.
const maxCachedLists = 256

func (s *encodeCache) list(k call.Kind, visible *engine.Visible) (list []*mcp.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != visible.Snapshot {
		s.reset(visible.Snapshot)
	}
	key := listKey{k, visible.Hash}
	if cached, ok := s.lists[key]; ok {
		return cached
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

// reset drops the entries that the new snapshot does not contain. The caller
// holds mu.
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

// encodeTool is tool for callers that hold mu.
func (s *encodeCache) encodeTool(tool *engine.Tool) *mcp.Entry {
	if encoded := s.entries[tool]; encoded != nil {
		return encoded
	}
	encoded, err := mcp.NewTool(toolInfo(tool.Metadata()))
	return s.store(tool, call.Tools, tool.Name(), encoded, err)
}

// encodeOffer encodes a resource, a template or a prompt. The caller holds mu.
func (s *encodeCache) encodeOffer(offer *engine.Offer) *mcp.Entry {
	if encoded := s.entries[offer]; encoded != nil {
		return encoded
	}
	m := offer.Metadata()
	encoded, err := entryOf(m)
	return s.store(offer, m.Kind, m.Name, encoded, err)
}

// store stores the encoded tool or offer. It omits and logs an entry that
// cannot be encoded: [Checks] finds such an error at load. The caller holds mu.
func (s *encodeCache) store(of any, k call.Kind, name string, encoded *mcp.Entry, err error) *mcp.Entry {
	if err != nil {
		s.logger.Error("encode "+k.String(), slog.String("name", name), slog.String("error", err.Error()))
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
