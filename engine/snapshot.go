package engine

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/policylang"
)

// Snapshot is everything that serves calls at one moment: tools, policies,
// limits, hooks and what the server says of itself. It is immutable but for what it
// remembers about its own lists, and owns nothing that needs closing.
type Snapshot struct {
	catalog     *catalog.Catalog
	publishedAt time.Time
	// tools, and offers by kind, are those of the entries, in their order.
	tools  []*Tool
	offers [call.Prompts + 1][]*Offer
	lists  catalog.Lists[Visible]
}

// newSnapshot returns a snapshot of a catalog. Tools and offers whose items were
// in the snapshot before, which may be nil, are the same.
func newSnapshot(c *catalog.Catalog, before *Snapshot, now time.Time) *Snapshot {
	if before == nil {
		before = &Snapshot{catalog: &catalog.Catalog{}}
	}
	c.Follow(before.catalog)
	s := &Snapshot{catalog: c, publishedAt: now}
	s.tools = catalog.Faces(c.Entries[call.Tools], before.tools, func(t *Tool) *catalog.Item { return t.item }, func(i *catalog.Item) *Tool { return &Tool{i} })
	for k := call.Resources; k <= call.Prompts; k++ {
		s.offers[k] = catalog.Faces(c.Entries[k], before.offers[k], func(o *Offer) *catalog.Item { return o.item }, func(i *catalog.Item) *Offer { return &Offer{i} })
	}
	return s
}

// counted is what the log says of a snapshot that was loaded.
func (s *Snapshot) logAttrs(took time.Duration) []any {
	return []any{
		slog.String("revision", s.Revision()), slog.Int("tools", len(s.tools)), slog.Int("resources", len(s.offers[call.Resources])),
		slog.Int("templates", len(s.offers[call.Templates])), slog.Int("prompts", len(s.offers[call.Prompts])), slog.Duration("took", took),
	}
}

// Info is what a server says of itself.
type Info struct {
	Name, Title, Version, Description, Instructions string
	Icons                                           []Icon
	// ExposesTraces says that callers are told where a body failed.
	ExposesTraces bool
	// LenientLifecycle says that sessions are served before their clients have
	// sent notifications/initialized.
	LenientLifecycle bool
}

// Listen is what the operator's file says of the address to serve on.
type Listen struct {
	// Address is host:port, empty when the file does not say.
	Address string
	// Hosts are names that requests may carry beside the loopback ones, and
	// Origins the browser origins that may send requests.
	Hosts, Origins []string
	// TLS is nil where connections are not encrypted.
	TLS *ListenTLS
}

// Revision is the content hash of everything that the snapshot is made of.
func (s *Snapshot) Revision() string { return s.catalog.Revision }

// Info returns what the server says of itself.
func (s *Snapshot) Info() Info {
	said := s.catalog.Server
	return Info{Name: said.Name, Title: said.Title, Version: said.Version, Description: said.Description, Instructions: said.Instructions, Icons: iconsOf(said.Icons), ExposesTraces: said.ExposeTraces, LenientLifecycle: said.LenientLifecycle}
}

// Listen returns what the operator's file says of the address to serve on.
func (s *Snapshot) Listen() Listen { return listenOf(s.catalog.Listen) }

func listenOf(l definition.Listen) Listen {
	return Listen{Address: l.Address, Hosts: slices.Clone(l.Hosts), Origins: slices.Clone(l.Origins), TLS: clonePtr((*ListenTLS)(l.TLS))}
}

// Watch reports whether the operator's file lets changed files be loaded by themselves.
func (s *Snapshot) AutoReload() bool { return s.catalog.Reload.Watch }

// Tools returns all tools, in bytewise order of their names.
func (s *Snapshot) Tools() []*Tool { return slices.Clone(s.tools) }

// Offers returns what is offered of a kind that is not that of tools, in
// bytewise order of the addresses.
func (s *Snapshot) Offers(k call.Kind) []*Offer { return slices.Clone(s.offers[k]) }

// Tool returns the tool with a name, or nil.
func (s *Snapshot) Tool(name string) *Tool {
	i, found := slices.BinarySearchFunc(s.tools, name, func(t *Tool, name string) int { return cmp.Compare(t.item.Name, name) })
	if !found {
		return nil
	}
	return s.tools[i]
}

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
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return Visible{}
	}
	return *snap.list(k, snap.catalog.Hidden(ctx, k, s.listInput(caller)))
}

// Find returns the tool with a name when the caller may see it, and nil otherwise.
func (s *Server) Find(ctx context.Context, caller identity.Caller, name string) *Tool {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return nil
	}
	if e := snap.catalog.Entry(call.Tools, name); e == nil || s.isHidden(ctx, snap, e, caller) {
		return nil
	}
	return snap.Tool(name)
}

// Serves reports whether a URI names a resource that the caller may see, listed
// or not.
func (s *Server) CanRead(ctx context.Context, caller identity.Caller, uri string) bool {
	snap, err := s.ensureLoaded(ctx)
	if err != nil {
		return false
	}
	e, _ := snap.catalog.Read(uri)
	return e != nil && !s.isHidden(ctx, snap, e, caller)
}

func (s *Server) isHidden(ctx context.Context, snap *Snapshot, e *catalog.Entry, caller identity.Caller) bool {
	return snap.catalog.Hides(ctx, e, s.listInput(caller))
}

// looking is what policies know of a caller who looks at what there is.
func (s *Server) listInput(caller identity.Caller) policylang.Input {
	return catalog.Looking(caller, s.options.Now())
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

// audience is who hears of each snapshot that is published. It is safe for concurrent use,
// and the zero audience is empty.
type subscribers struct {
	mu        sync.Mutex
	functions map[int]func(changed []string)
	next      int
}

// join has fn told of every change, until leave is called.
func (a *subscribers) add(fn func(changed []string)) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.functions == nil {
		a.functions = map[int]func([]string){}
	}
	id := a.next
	a.next++
	a.functions[id] = fn
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.functions, id)
	}
}

// tell tells everybody who listens now, one after the other.
func (a *subscribers) notify(changed []string) {
	a.mu.Lock()
	listeners := slices.Collect(maps.Values(a.functions))
	a.mu.Unlock()
	for _, fn := range listeners {
		fn(changed)
	}
}
