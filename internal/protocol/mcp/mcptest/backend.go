// Package mcptest helps tests of packages that use package mcp. It provides a
// [Backend] with functions as tools. Only tests import it.
package mcptest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// Run implements a tool, or an item of another kind.
type Run func(ctx context.Context, r call.Request) call.Result

// Tool is a tool implemented by a function.
type Tool struct {
	mcp.ToolInfo
	Run Run
	// Visible reports whether the caller may see the tool; nil means everyone
	// may.
	Visible func(identity.Caller) bool
}

// Item is a resource, a template or a prompt implemented by a function, which
// also answers its completions.
type Item struct {
	Kind  call.Kind
	Entry *mcp.Entry
	Run   Run
	// Visible reports whether the caller may see the item; nil means everyone
	// may.
	Visible func(identity.Caller) bool
}

// Backend is an [mcp.Backend] over functions. Its revisions are "rev-1",
// "rev-2" and so on.
type Backend struct {
	mu       sync.Mutex
	info     mcp.Info
	tools    []published
	items    []Item
	revision int
	watchers map[int]func([]string)
	watches  int
}

type published struct {
	Tool
	entry *mcp.Entry
}

// New returns a backend with the tools, in this order. It panics if a tool
// cannot be encoded.
func New(tools ...Tool) *Backend {
	b := &Backend{
		info:     mcp.Info{Name: "fake", Title: "A fake", Version: "1.0.0", Instructions: "Be brief."},
		watchers: map[int]func([]string){},
	}
	b.Publish(tools...)
	return b
}

// Publish replaces all tools and notifies the watchers.
func (b *Backend) Publish(tools ...Tool) {
	b.mu.Lock()
	b.tools = nil
	for _, t := range tools {
		entry, err := mcp.NewTool(t.ToolInfo)
		if err != nil {
			panic(err)
		}
		b.tools = append(b.tools, published{t, entry})
	}
	b.mu.Unlock()
	b.ChangeResources()
}

// PublishItems replaces all items of other kinds and notifies the watchers.
func (b *Backend) PublishItems(items ...Item) {
	b.SetItems(items...)
	b.ChangeResources()
}

// SetItems replaces all items of other kinds without a new revision.
func (b *Backend) SetItems(items ...Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = items
}

// ChangeResources starts a new revision, in which the resources with the URIs
// have new contents, and notifies the watchers.
func (b *Backend) ChangeResources(uris ...string) {
	b.mu.Lock()
	b.revision++
	var watchers []func([]string)
	for _, fn := range b.watchers {
		watchers = append(watchers, fn)
	}
	b.mu.Unlock()
	for _, fn := range watchers {
		fn(uris)
	}
}

// Watchers returns the number of watchers.
func (b *Backend) Watchers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.watchers)
}

// Info implements [mcp.Backend].
func (b *Backend) Info() mcp.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	info := b.info
	info.Revision = revisionName(b.revision)
	return info
}

// List implements [mcp.Backend].
func (b *Backend) List(_ context.Context, k call.Kind, c identity.Caller) mcp.List {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := mcp.List{Revision: revisionName(b.revision)}
	hash := sha256.New()
	for _, t := range b.tools {
		if k == call.Tools && sees(&list, c, t.Visible) {
			list.Entries = append(list.Entries, t.entry)
			hash.Write(t.entry.Capability())
		}
	}
	for _, i := range b.items {
		if i.Kind == k && sees(&list, c, i.Visible) {
			list.Entries = append(list.Entries, i.Entry)
			hash.Write([]byte(i.Entry.Name() + "\n"))
		}
	}
	list.Hash = hex.EncodeToString(hash.Sum(nil))
	return list
}

// Find implements [mcp.Backend].
func (b *Backend) Find(ctx context.Context, c identity.Caller, name string) *mcp.Entry {
	for _, t := range b.List(ctx, call.Tools, c).Entries {
		if t.Name() == name {
			return t
		}
	}
	return nil
}

// sees reports whether the caller sees an entry. An entry with a visibility
// function makes the list private.
func sees(list *mcp.List, c identity.Caller, visible func(identity.Caller) bool) bool {
	if visible == nil {
		return true
	}
	list.Private = true
	return visible(c)
}

// Call implements [mcp.Backend].
func (b *Backend) Call(ctx context.Context, r call.Request) (call.Result, *mcp.Task) {
	run, revision := b.find(r)
	if run == nil {
		return call.Result{Revision: revision, Err: &call.Error{
			Code: call.ToolNotFound, Message: "there is no " + nouns[r.Kind] + " of this name",
		}}, nil
	}
	if r.RejectErr != nil {
		return call.Result{Revision: revision, Err: r.RejectErr}, nil
	}
	response := run(ctx, r)
	response.Revision = revision
	return response, nil
}

var nouns = map[call.Kind]string{call.Tools: "tool", call.Resources: "resource", call.Templates: "template", call.Prompts: "prompt"}

func (b *Backend) find(r call.Request) (run Run, revision string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	revision = revisionName(b.revision)
	for _, t := range b.tools {
		if r.Kind == call.Tools && t.Name == r.Name && (t.Visible == nil || t.Visible(r.Caller)) {
			return t.Run, revision
		}
	}
	for _, i := range b.items {
		if i.answers(r) && (i.Visible == nil || i.Visible(r.Caller)) {
			return i.Run, revision
		}
	}
	return nil, revision
}

// answers reports whether a request calls the item. A template matches all URIs
// with the same prefix.
func (i *Item) answers(r call.Request) bool {
	if i.Kind == call.Templates && r.Kind == call.Resources {
		before, _, _ := strings.Cut(i.Entry.Name(), "{")
		return strings.HasPrefix(r.Name, before)
	}
	return i.Kind == r.Kind && i.Entry.Name() == r.Name
}

// CanRead implements [mcp.Backend].
func (b *Backend) CanRead(_ context.Context, c identity.Caller, uri string) bool {
	run, _ := b.find(call.Request{Kind: call.Resources, Name: uri, Caller: c})
	return run != nil
}

// Watch implements [mcp.Backend].
func (b *Backend) Watch(fn func(changed []string)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches++
	id := b.watches
	b.watchers[id] = fn
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, id)
	}
}

// WatchResource implements [mcp.Backend]: no upstream server has resources.
func (b *Backend) WatchResource(string) (leave func()) { return func() {} }

func revisionName(n int) string { return "rev-" + strconv.Itoa(n) }
