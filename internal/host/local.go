package host

import (
	"context"
	"encoding/json"

	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// local is what one run is granted of the machine that the server runs on.
type local struct {
	folders []*files.Folder
	env     []string
}

// GrantLocal grants files and variables of the environment. What the run has
// read and written is counted from here on.
func (h *Call) GrantLocal(granted []grant.FS, env []string) {
	if len(granted) == 0 && len(env) == 0 {
		return
	}
	h.local = &local{env: env}
	for _, g := range granted {
		h.local.folders = append(h.local.folders, files.Open(g))
	}
}

// file does one operation on files.
func (h *Call) file(ctx context.Context, method string, payload []byte) ([]byte, error) {
	var p grantPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	if h.local != nil {
		for _, folder := range h.local.folders {
			if folder.Grant.Name != p.Grant {
				continue
			}
			if h.Mocks != nil {
				return h.Mocks.file(folder, method, payload)
			}
			return h.Files.Do(ctx, folder, method, payload)
		}
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no fs grant of this name"}
}

// environment returns the granted variables that are set, as a JSON object.
func (h *Call) environment(payload []byte) ([]byte, error) {
	var nothing struct{}
	if err := json.Unmarshal(payload, &nothing); err != nil || string(payload) == "null" {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	if h.local == nil || len(h.local.env) == 0 {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no variable of the environment is granted"}
	}
	lookup := h.Secrets.LookupEnv
	if h.Mocks != nil {
		lookup = h.Mocks.variable
	}
	values := make(map[string]string, len(h.local.env))
	for _, name := range h.local.env {
		if value, ok := lookup(name); ok {
			values[name] = h.Secrets.Redact(value)
		}
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(values)
	return encoded, nil
}
