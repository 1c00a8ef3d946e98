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
type show struct {
	logger *slog.Logger

	mu sync.Mutex
	// snapshot is what all that follows belongs to.
	snapshot *engine.Snapshot
	tools    map[*engine.Tool]*mcp.Tool
	offers   map[*engine.Offer]*mcp.Entry
	lists    map[shownKey]shown
}

func newShow(logger *slog.Logger) show {
	return show{logger: logger, tools: map[*engine.Tool]*mcp.Tool{}, offers: map[*engine.Offer]*mcp.Entry{}}
}

// shownKey is a kind and the content hash of a list.
type shownKey struct {
	kind call.Kind
	hash string
}

// shown is an encoded list.
type shown struct {
	tools   []*mcp.Tool
	entries []*mcp.Entry
}

// maxLists bounds how many lists of a snapshot are remembered: one for each set
// that some caller may see of a kind.
const maxLists = 256

func (s *show) list(k call.Kind, visible *engine.Visible) shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != visible.Snapshot {
		s.renew(visible.Snapshot)
	}
	key := shownKey{k, visible.Hash}
	if known, ok := s.lists[key]; ok {
		return known
	}
	var list shown
	for _, tool := range visible.Tools {
		if encoded := s.encodeTool(tool); encoded != nil {
			list.tools = append(list.tools, encoded)
		}
	}
	for _, offer := range visible.Offers {
		if encoded := s.encodeOffer(offer); encoded != nil {
			list.entries = append(list.entries, encoded)
		}
	}
	if len(s.lists) < maxLists {
		s.lists[key] = list
	}
	return list
}

// renew forgets what the new snapshot does not hold; mu is held.
func (s *show) renew(snap *engine.Snapshot) {
	tools, offers := map[*engine.Tool]*mcp.Tool{}, map[*engine.Offer]*mcp.Entry{}
	for _, tool := range snap.Tools() {
		if encoded := s.tools[tool]; encoded != nil {
			tools[tool] = encoded
		}
	}
	for _, kind := range []call.Kind{call.Resources, call.Templates, call.Prompts} {
		for _, offer := range snap.Offers(kind) {
			if encoded := s.offers[offer]; encoded != nil {
				offers[offer] = encoded
			}
		}
	}
	s.snapshot, s.tools, s.offers, s.lists = snap, tools, offers, map[shownKey]shown{}
}

func (s *show) tool(tool *engine.Tool) *mcp.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.encodeTool(tool)
}

// encodeTool is tool with mu held. A tool that cannot be put on the wire is
// left out, and the log says why: [Checks] would have found it at load.
func (s *show) encodeTool(tool *engine.Tool) *mcp.Tool {
	if encoded := s.tools[tool]; encoded != nil {
		return encoded
	}
	encoded, err := mcp.NewTool(toolInfo(tool.Metadata()))
	if err != nil {
		s.logger.Error("a tool cannot be listed", slog.String("tool", tool.Name()), slog.String("error", err.Error()))
		return nil
	}
	s.tools[tool] = encoded
	return encoded
}

// encodeOffer is encodeTool for what is no tool.
func (s *show) encodeOffer(offer *engine.Offer) *mcp.Entry {
	if encoded := s.offers[offer]; encoded != nil {
		return encoded
	}
	m := offer.Metadata()
	encoded, err := entryOf(m)
	if err != nil {
		s.logger.Error("a "+m.Kind.String()+" cannot be listed", slog.String("name", m.Name), slog.String("error", err.Error()))
		return nil
	}
	s.offers[offer] = encoded
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
