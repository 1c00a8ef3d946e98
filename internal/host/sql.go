package host

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/scripting"
)

// database does one operation on a database.
func (h *Call) database(ctx context.Context, method string, payload []byte) ([]byte, error) {
	var p grantPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	for _, granted := range h.Databases {
		if granted.Name != p.Grant {
			continue
		}
		if h.Mocks != nil {
			return h.Mocks.database(granted, method, payload)
		}
		return h.SQL.Do(ctx, granted.WithSecrets(h.SecretKeys), method, payload)
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no sql grant of this name"}
}
