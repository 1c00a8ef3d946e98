package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/internal/wildcard"
	"github.com/mcpd/mcpd/scripting"
)

// Tools calls tools for a body, as the caller of the body would.
type Tools interface {
	// CallTool calls a tool, no longer than ctx lets it, with arguments as a script
	// gives them: a JSON object, or nil. It returns the tool's value as JSON. An error is a
	// [*scripting.HostError] with the code and the message that the caller would
	// have been told. It may be called from any goroutine, until the run of the
	// body has ended.
	CallTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error)
}

// callTool calls a tool that the body may call, unless its own call has ended.
func (h *Call) callTool(ctx context.Context, payload []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the call cannot be read"}
	}
	granted := slices.ContainsFunc(h.Callable, func(pattern string) bool { return wildcard.Matches(pattern, p.Tool) })
	switch {
	case !granted:
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called"}
	case h.Mocks != nil:
		return h.Mocks.callTool(p.Tool)
	case h.Tools == nil:
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no tools can be called here"}
	}
	ctx, cancel := h.bounded(ctx)
	defer cancel()
	return h.Tools.CallTool(ctx, p.Tool, p.Arguments)
}

// bounded returns the context of an operation that ends with the run.
func (h *Call) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.Ends.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, h.Ends)
}
