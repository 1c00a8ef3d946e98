package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/mcp"
)

// backend shows an engine to the protocol. Each tool is encoded once: the same
// [engine.Tool] serves all snapshots in which its definition is unchanged.
type backend struct {
	engine *engine.Server
	logger *slog.Logger
	// life ends, by end, when calls are not waited for any longer.
	life context.Context
	end  context.CancelCauseFunc

	mu sync.Mutex
	// snapshot is what encoded and lists belong to.
	snapshot *engine.Snapshot
	encoded  map[*engine.Tool]*mcp.Tool
	// lists are the encoded lists of the snapshot by content hash.
	lists map[string][]*mcp.Tool
}

// maxLists bounds how many lists of a snapshot are remembered: one for each set
// of tools that some caller may see.
const maxLists = 256

func newBackend(e *engine.Server) *backend {
	b := &backend{engine: e, logger: e.Logger()}
	b.life, b.end = context.WithCancelCause(context.Background())
	return b
}

// Info returns what the server says of itself.
func (b *backend) Info() mcp.Info {
	snap := b.engine.Snapshot()
	if snap == nil {
		return mcp.Info{}
	}
	info := snap.Info()
	return mcp.Info{
		Name: info.Name, Title: info.Title, Version: info.Version, Description: info.Description,
		Instructions: info.Instructions, Revision: snap.Revision(),
	}
}

// List returns what the caller may see. The engine has tools alone.
func (b *backend) List(ctx context.Context, k mcp.Kind, caller identity.Caller) mcp.List {
	if k != mcp.Tools {
		return mcp.List{Revision: b.Info().Revision}
	}
	visible := b.engine.Visible(ctx, caller)
	if visible.Snapshot == nil {
		return mcp.List{}
	}
	return mcp.List{
		Revision: visible.Snapshot.Revision(), Hash: visible.Hash, Private: visible.Private,
		Tools: b.encode(visible),
	}
}

// Find returns a tool that the caller may see, or nil.
func (b *backend) Find(ctx context.Context, caller identity.Caller, name string) *mcp.Tool {
	tool := b.engine.Find(ctx, caller, name)
	if tool == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tool(tool)
}

// Serves reports that there is no resource: the engine has tools alone.
func (b *backend) Serves(context.Context, identity.Caller, string) bool { return false }

// Watch passes on that a snapshot was published.
func (b *backend) Watch(fn func(changed []string)) (stop func()) {
	return b.engine.Watch(func() { fn(nil) })
}

// Call runs a tool, until it ends or the life of the backend does.
func (b *backend) Call(ctx context.Context, r mcp.Request) mcp.Response {
	if r.Kind != mcp.Tools {
		return mcp.Response{Err: &mcp.CallError{Code: mcp.ToolNotFound, Message: "there is none of this name"}}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.life, func() { cancel(context.Cause(b.life)) })()
	request := engine.Request{
		Tool: r.Name, Arguments: r.Arguments, Caller: r.Caller,
		Can: engine.Capabilities{Form: r.Can.Form, URL: r.Can.URL, Sample: r.Can.Sample, SampleTools: r.Can.SampleTools, Roots: r.Can.Roots},
	}
	if r.Resume != nil {
		request.Resume = resumeOf(r.Resume)
	}
	if r.Emit != nil {
		request.Emit = r.Emit
	}
	result := b.engine.Execute(ctx, request)
	return mcp.Response{
		Value: result.Value, Content: result.Content, Rich: result.Rich, Structured: result.Structured,
		Ask: askOf(result.Ask), Err: callError(result.Err), Revision: result.Revision, CallID: result.CallID,
	}
}

// encode returns the encoded tools of a list, and makes those that are new.
func (b *backend) encode(visible engine.Visible) []*mcp.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.snapshot != visible.Snapshot {
		b.renew(visible.Snapshot)
	}
	if known, ok := b.lists[visible.Hash]; ok {
		return known
	}
	tools := make([]*mcp.Tool, 0, len(visible.Tools))
	for _, tool := range visible.Tools {
		if encoded := b.tool(tool); encoded != nil {
			tools = append(tools, encoded)
		}
	}
	if len(b.lists) < maxLists {
		b.lists[visible.Hash] = tools
	}
	return tools
}

// renew forgets what the new snapshot does not hold; mu is held.
func (b *backend) renew(snap *engine.Snapshot) {
	kept := make(map[*engine.Tool]*mcp.Tool, len(b.encoded))
	for _, tool := range snap.Tools() {
		if encoded := b.encoded[tool]; encoded != nil {
			kept[tool] = encoded
		}
	}
	b.snapshot, b.encoded, b.lists = snap, kept, map[string][]*mcp.Tool{}
}

// tool returns the encoded form of a tool; mu is held. A tool that cannot be
// put on the wire is left out, and the log says why: [CheckTool] would have
// found it at load.
func (b *backend) tool(tool *engine.Tool) *mcp.Tool {
	if encoded := b.encoded[tool]; encoded != nil {
		return encoded
	}
	encoded, err := mcp.NewTool(toolInfo(tool.Metadata()))
	if err != nil {
		b.logger.Error("a tool cannot be listed", slog.String("tool", tool.Name()), slog.String("error", err.Error()))
		return nil
	}
	if b.encoded == nil {
		b.encoded = map[*engine.Tool]*mcp.Tool{}
	}
	b.encoded[tool] = encoded
	return encoded
}

// CheckTool reports whether a tool can be put on the wire, for
// [engine.Options].CheckTool.
func CheckTool(m engine.Metadata) error {
	_, err := mcp.NewTool(toolInfo(m))
	return err
}

func toolInfo(m engine.Metadata) mcp.ToolInfo {
	info := mcp.ToolInfo{
		Name: m.Name, Title: m.Title, InputSchema: m.InputSchema, OutputSchema: m.OutputSchema,
		ReadOnly: m.ReadOnly, Destructive: m.Destructive, OpenWorld: m.OpenWorld,
		Idempotent: m.Idempotent, TimeoutMS: m.Timeout.Milliseconds(),
	}
	if m.Description != nil {
		info.Description, info.HasDescription = *m.Description, true
	}
	return info
}

func callError(e *engine.CallError) *mcp.CallError {
	if e == nil {
		return nil
	}
	wire := &mcp.CallError{
		Code: mcp.Code(e.Code), Message: e.Message, Details: e.Details, Schema: e.Schema,
		RetryAfter: e.RetryAfter, Overloaded: e.Overloaded, Required: e.Required,
	}
	if e.Violations != nil {
		if details, err := json.Marshal(e.Violations); err == nil {
			wire.Details = details
		}
	}
	if e.RPC != nil {
		wire.RPC = &mcp.RPCError{Code: e.RPC.Code, Message: e.RPC.Message, Data: e.RPC.Data}
	}
	return wire
}

func resumeOf(r *mcp.Resume) *engine.Resume {
	resume := &engine.Resume{State: r.State, Responses: r.Responses, Refused: make(map[string]bool, len(r.Refused))}
	for key := range r.Refused {
		resume.Refused[key] = true
	}
	return resume
}

func askOf(a *engine.Ask) *mcp.Ask {
	if a == nil {
		return nil
	}
	ask := &mcp.Ask{State: a.State, Wait: a.Wait}
	for _, r := range a.Requests {
		ask.Requests = append(ask.Requests, mcp.AskRequest(r))
	}
	return ask
}
