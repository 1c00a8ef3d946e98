package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/internal/base/wildcard"
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
		return h.Mocks.CallTool(p.Tool)
	case h.Tools == nil:
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no tools can be called here"}
	}
	return h.within(ctx, func(ctx context.Context) (json.RawMessage, error) { return h.Tools.CallTool(ctx, p.Tool, p.Arguments) })
}

// within does what ends with the run. What failed since the run is over is an
// answer to nobody: then it waits for that to be known.
func (h *Call) within(ctx context.Context, do func(context.Context) (json.RawMessage, error)) ([]byte, error) {
	if h.Ends.IsZero() {
		return do(ctx)
	}
	bounded, cancel := context.WithDeadline(ctx, h.Ends)
	defer cancel()
	answer, err := do(bounded)
	if err != nil && bounded.Err() != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, err
}
