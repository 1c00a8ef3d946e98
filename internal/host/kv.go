package host

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/scripting"
)

// keep carries out an operation on kept values, in the space of who runs, unless
// the call has ended.
func (h *Call) keep(ctx context.Context, op string, payload []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p grantPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the request cannot be read"}
	}
	granted, ok := h.KV[p.Grant]
	if !ok {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no kv grant of this name"}
	}
	space, err := kv.SpaceOf(granted, kv.Runner{Kind: h.What, Name: h.Name, Caller: h.Caller})
	if err != nil {
		return nil, err
	}
	if h.Mocks != nil {
		return h.Mocks.keep(ctx, granted, space, op, payload)
	}
	return h.Values.Do(ctx, granted, space, op, payload)
}
