package engine

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/policylang"
)

// Snapshot is the set of tools, policies, limits and hooks that serves calls at one moment, with
// the metadata of the server. It is immutable except for cached lists, and needs no Close.
type Snapshot struct {
	catalog     *catalog.Catalog
	publishedAt time.Time
	// tools and offers are in the order of the catalog entries.
	tools  []*Tool
	offers [call.Prompts + 1][]*Offer
	lists  catalog.ListCache[Visible]
}

// newSnapshot returns a snapshot of a catalog. It reuses the tools and offers of before, which may
// be nil, if their items are unchanged.
func newSnapshot(c *catalog.Catalog, before *Snapshot, now time.Time) *Snapshot {
	if before == nil {
		before = &Snapshot{catalog: &catalog.Catalog{}}
	}
	c.RememberRemoved(before.catalog)
	s := &Snapshot{catalog: c, publishedAt: now}
	s.tools = catalog.ReuseViews(c.Entries[call.Tools], before.tools, func(t *Tool) *catalog.Item { return t.item }, func(i *catalog.Item) *Tool { return &Tool{i} })
	for k := call.Resources; k <= call.Prompts; k++ {
		s.offers[k] = catalog.ReuseViews(c.Entries[k], before.offers[k], func(o *Offer) *catalog.Item { return o.item }, func(i *catalog.Item) *Offer { return &Offer{i} })
	}
	return s
}

// logAttrs returns the log attributes of a loaded snapshot.
func (s *Snapshot) logAttrs(took time.Duration) []any {
	return []any{
		slog.String("revision", s.Revision()), slog.Int("tools", len(s.tools)), slog.Int("resources", len(s.offers[call.Resources])),
		slog.Int("templates", len(s.offers[call.Templates])), slog.Int("prompts", len(s.offers[call.Prompts])), slog.Duration("took", took),
	}
}

// Info is the metadata of a server.
type Info struct {
	// Name is never empty. The other texts are empty if they are not set.
	Name, Title, Version, Description, Instructions string
	Icons                                           []Icon
	// ExposesTraces reports that callers see where a script failed.
	ExposesTraces bool
	// LenientLifecycle serves sessions before the client has sent notifications/initialized.
	LenientLifecycle bool
}

// Listen is the listen block of mcpd.hcl.
type Listen struct {
	// Address is host:port; empty if the file sets none.
	Address string
	// Hosts are names that the Host header may have besides loopback names. Origins are browser
	// origins that may send requests.
	Hosts, Origins []string
	// TLS is nil if connections are not encrypted.
	TLS *ListenTLS
}

// Revision returns the content hash of the snapshot.
func (s *Snapshot) Revision() string { return s.catalog.Revision }

// Info returns the metadata of the server.
func (s *Snapshot) Info() Info {
	server := s.catalog.Server
	return Info{Name: server.Name, Title: server.Title, Version: server.Version, Description: server.Description, Instructions: server.Instructions, Icons: iconsOf(server.Icons), ExposesTraces: server.ExposeTraces, LenientLifecycle: server.LenientLifecycle}
}

// Listen returns the listen block of mcpd.hcl.
func (s *Snapshot) Listen() Listen { return listenOf(s.catalog.Listen) }

func listenOf(l definition.Listen) Listen {
	return Listen{Address: l.Address, Hosts: slices.Clone(l.Hosts), Origins: slices.Clone(l.Origins), TLS: clonePtr((*ListenTLS)(l.TLS))}
}

// AutoReload reports whether mcpd.hcl enables automatic reloads of changed files.
func (s *Snapshot) AutoReload() bool { return s.catalog.Reload.Watch }

// Tools returns all tools, in bytewise order of their names.
func (s *Snapshot) Tools() []*Tool { return slices.Clone(s.tools) }

// Offers returns the resources, templates or prompts, in bytewise order of their addresses.
func (s *Snapshot) Offers(k call.Kind) []*Offer { return slices.Clone(s.offers[k]) }

// Tool returns the tool with a name, or nil.
func (s *Snapshot) Tool(name string) *Tool {
	i, found := slices.BinarySearchFunc(s.tools, name, func(t *Tool, name string) int { return cmp.Compare(t.item.Name, name) })
	if !found {
		return nil
	}
	return s.tools[i]
}

// Visible is the part of a snapshot that one caller may see: the items of one kind that no policy
// denies to the caller whatever the arguments are.
type Visible struct {
	Snapshot *Snapshot
	// Tools, or Offers for any other kind, are in bytewise order of their names or addresses. The
	// slices are shared and must not be modified.
	Tools  []*Tool
	Offers []*Offer
	// Hash is the content hash of the list: equal hashes mean equal lists.
	Hash string
	// Private reports that other callers may see other lists.
	Private bool
}

// Visible returns the items of a kind that a caller may see now. Before the first successful load
// it is empty, with a nil Snapshot.
func (s *Server) Visible(ctx context.Context, k call.Kind, caller identity.Caller) Visible {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return Visible{}
	}
	return *snap.list(k, snap.catalog.HiddenMask(ctx, k, s.listInput(caller)))
}

// Find returns the tool with a name if the caller may see it, and nil otherwise.
func (s *Server) Find(ctx context.Context, caller identity.Caller, name string) *Tool {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return nil
	}
	if e := snap.catalog.Entry(call.Tools, name); e == nil || snap.catalog.IsHidden(ctx, e, s.listInput(caller)) {
		return nil
	}
	return snap.Tool(name)
}

// CanRead reports whether a URI names a resource that the caller may see, listed or not.
func (s *Server) CanRead(ctx context.Context, caller identity.Caller, uri string) bool {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return false
	}
	e, _ := snap.catalog.Read(uri)
	return e != nil && !snap.catalog.IsHidden(ctx, e, s.listInput(caller))
}

// listInput returns the policy input for a caller that lists items.
func (s *Server) listInput(caller identity.Caller) policylang.Input {
	return catalog.ListInput(caller, s.options.Now())
}

// list returns the list without the hidden items; hidden has a nonzero byte for each of them.
func (s *Snapshot) list(k call.Kind, hidden []byte) *Visible {
	return s.lists.Get(k, s.catalog.Entries[k], hidden, func(seen []int, hash string) *Visible {
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
