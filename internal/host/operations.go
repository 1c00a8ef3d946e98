package host

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/host/execs"
	"github.com/mcpd/mcpd/internal/host/gomodule"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/scripting"
)

func (h *RunHost) file(ctx context.Context, name, method string, payload []byte) ([]byte, error) {
	for _, folder := range h.folders {
		if folder.Grant.Name != name {
			continue
		}
		if h.Mocks != nil {
			return h.Mocks.file(folder, method, payload)
		}
		return h.Files.Do(ctx, folder, method, payload)
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no fs grant has this name"}
}

// environment returns the granted variables that are set, as a JSON object.
func (h *RunHost) environment(payload []byte) ([]byte, error) {
	var nothing struct{}
	if err := json.Unmarshal(payload, &nothing); err != nil || string(payload) == "null" {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	if len(h.Variables) == 0 {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no environment variable is granted"}
	}
	lookup := h.Secrets.LookupEnv
	if h.Mocks != nil {
		lookup = h.Mocks.variable
	}
	values := make(map[string]string, len(h.Variables))
	for _, name := range h.Variables {
		if value, ok := lookup(name); ok {
			values[name] = h.Secrets.Redact(value)
		}
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(values)
	return encoded, nil
}

func (h *RunHost) execute(ctx context.Context, name string, payload []byte) ([]byte, error) {
	i := slices.IndexFunc(h.Exec, func(e execs.Program) bool { return e.Name == name })
	if i < 0 {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no exec grant has this name"}
	}
	if h.Mocks != nil {
		return h.Mocks.execute(h.Exec[i], payload)
	}
	return h.Programs.Do(ctx, h.Exec[i].WithSecrets(h.SecretKeys), payload)
}

func (h *RunHost) database(ctx context.Context, name, method string, payload []byte) ([]byte, error) {
	for _, granted := range h.Databases {
		if granted.Name != name {
			continue
		}
		if h.Mocks != nil {
			return h.Mocks.database(granted, method, payload)
		}
		return h.SQL.Do(ctx, granted.WithSecrets(h.SecretKeys), method, payload)
	}
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no sql grant has this name"}
}

// kvOperation carries out a kv operation in the space of the script and its caller.
func (h *RunHost) kvOperation(ctx context.Context, name, op string, payload []byte) ([]byte, error) {
	granted, ok := h.KV[name]
	if !ok {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no kv grant has this name"}
	}
	space, err := kv.SpaceName(granted, kv.Subject{Kind: h.CallerKind, Name: h.Name, Caller: h.Caller})
	if err != nil {
		return nil, err
	}
	if h.Mocks != nil {
		return h.Mocks.kvOperation(ctx, granted, space, op, payload)
	}
	return h.Values.Do(ctx, granted, space, op, payload)
}

// Tools calls tools on behalf of the caller of a script.
type Tools interface {
	// CallTool calls a tool, bounded by ctx. The arguments are a JSON object or nil. It returns
	// the value of the tool as JSON. An error is a [*scripting.HostError] with the code and
	// message that the caller would see. It is safe for concurrent use until the run has ended.
	CallTool(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error)
}

func (h *RunHost) callTool(ctx context.Context, p grantPayload) ([]byte, error) {
	granted := slices.ContainsFunc(h.CallableTools, func(pattern string) bool { return wildcard.Matches(pattern, p.Tool) })
	switch {
	case !granted:
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this tool may not be called"}
	case h.Mocks != nil:
		return h.Mocks.CallTool(p.Tool)
	case h.Tools == nil:
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no tools can be called here"}
	}
	return h.untilDeadline(ctx, func(ctx context.Context) (json.RawMessage, error) { return h.Tools.CallTool(ctx, p.Tool, p.Arguments) })
}

// untilDeadline bounds do by the deadline of the run. If do fails after that, it waits until
// ctx is done, because the run cannot use the error.
func (h *RunHost) untilDeadline(ctx context.Context, do func(context.Context) (json.RawMessage, error)) ([]byte, error) {
	if h.Deadline.IsZero() {
		return do(ctx)
	}
	bounded, cancel := context.WithDeadline(ctx, h.Deadline)
	defer cancel()
	answer, err := do(bounded)
	if err != nil && bounded.Err() != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return answer, err
}

func (h *RunHost) module(ctx context.Context, p grantPayload) ([]byte, error) {
	options, ok := h.ModuleOptions[p.Module]
	if !ok {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no module grant has this name"}
	}
	if h.Mocks != nil {
		return h.Mocks.value("modules."+p.Module, p.Function)
	}
	call := gomodule.CallInfo{Caller: h.Caller, Kind: h.CallerKind, Name: h.Name, ID: h.ID, Options: options}
	return h.untilDeadline(ctx, func(ctx context.Context) (json.RawMessage, error) {
		return h.Modules.Do(ctx, call, p.Module, p.Function, p.Arguments)
	})
}
