package host

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/scripting"
)

// module runs a function of a module that the body is granted, unless the call
// has ended.
func (h *Call) module(ctx context.Context, payload []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p struct {
		Module    string          `json:"module"`
		Function  string          `json:"function"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	options, ok := h.Granted[p.Module]
	if !ok {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no module grant of this name"}
	}
	if h.Mocks != nil {
		return h.Mocks.module(p.Module, p.Function)
	}
	call := gomodule.Call{Caller: h.Caller, Kind: h.What, Name: h.Name, ID: h.ID, Options: options}
	return h.within(ctx, func(ctx context.Context) (json.RawMessage, error) {
		return h.Modules.Do(ctx, call, p.Module, p.Function, p.Arguments)
	})
}
