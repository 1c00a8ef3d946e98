package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/scripting"
)

// execute runs a program, unless the call has ended.
func (h *Call) execute(ctx context.Context, payload []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p grantPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	i := slices.IndexFunc(h.Exec, func(e execs.Program) bool { return e.Name == p.Grant })
	if i < 0 {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no exec grant of this name"}
	}
	if h.Mocks != nil {
		return h.Mocks.execute(h.Exec[i], payload)
	}
	return h.Programs.Do(ctx, h.Exec[i].WithSecrets(h.SecretKeys), payload)
}
