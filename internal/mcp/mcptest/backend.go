package mcptest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/mcp"
)

// Tool is a tool that is a function.
type Tool struct {
	mcp.ToolInfo
	Run func(ctx context.Context, r mcp.Request) mcp.Response
	// Visible says who may see the tool; nil for everyone.
	Visible func(identity.Caller) bool
}

// Backend is an [mcp.Backend] over functions. Its revisions are "rev-1",
// "rev-2" and so on.
type Backend struct {
	mu       sync.Mutex
	info     mcp.Info
	tools    []published
	revision int
	watchers map[int]func()
	watches  int
}

type published struct {
	Tool
	entry *mcp.Tool
}

// New returns a backend with the tools, in this order. It panics when a tool
// cannot be put on the wire.
func New(tools ...Tool) *Backend {
	b := &Backend{
		info:     mcp.Info{Name: "fake", Title: "A fake", Version: "1.0.0", Instructions: "Be brief."},
		watchers: map[int]func(){},
	}
	b.Publish(tools...)
	return b
}

// Publish replaces all tools and tells the watchers.
func (b *Backend) Publish(tools ...Tool) {
	b.mu.Lock()
	b.revision++
	b.tools = nil
	for _, t := range tools {
		entry, err := mcp.NewTool(t.ToolInfo)
		if err != nil {
			panic(err)
		}
		b.tools = append(b.tools, published{t, entry})
	}
	var watchers []func()
	for _, fn := range b.watchers {
		watchers = append(watchers, fn)
	}
	b.mu.Unlock()
	for _, fn := range watchers {
		fn()
	}
}

// Watchers returns how many watch the backend.
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
func (b *Backend) List(_ context.Context, c identity.Caller) mcp.List {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := mcp.List{Revision: revisionName(b.revision)}
	hash := sha256.New()
	for _, t := range b.tools {
		if t.Visible != nil {
			list.Private = true
			if !t.Visible(c) {
				continue
			}
		}
		list.Tools = append(list.Tools, t.entry)
		hash.Write(t.entry.Capability())
	}
	list.Hash = hex.EncodeToString(hash.Sum(nil))
	return list
}

// Call implements [mcp.Backend].
func (b *Backend) Call(ctx context.Context, r mcp.Request) mcp.Response {
	b.mu.Lock()
	revision := revisionName(b.revision)
	i := slices.IndexFunc(b.tools, func(t published) bool {
		return t.Name == r.Tool && (t.Visible == nil || t.Visible(r.Caller))
	})
	var run func(context.Context, mcp.Request) mcp.Response
	if i >= 0 {
		run = b.tools[i].Run
	}
	b.mu.Unlock()
	if run == nil {
		return mcp.Response{Revision: revision, Err: &mcp.CallError{
			Code: mcp.ToolNotFound, Message: "there is no tool of this name",
		}}
	}
	response := run(ctx, r)
	response.Revision = revision
	return response
}

// Watch implements [mcp.Backend].
func (b *Backend) Watch(fn func()) (stop func()) {
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

func revisionName(n int) string { return "rev-" + strconv.Itoa(n) }
