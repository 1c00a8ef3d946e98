package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/execution/pipeline"
)

// Execute runs one call to its end. It never panics, and the call ends soon
// after ctx does. Hooks fire exactly twice: at the start, and at the end or for
// the error.
func (s *Server) Execute(ctx context.Context, req call.Request) call.Result {
	return s.pipeline.Execute(ctx, req)
}

// Call calls a tool in this process, as the anonymous principal of a client.
// args is anything that encodes to a JSON object or null; the error is a
// [*CallError] unless args do not encode.
func (s *Server) Call(ctx context.Context, tool string, args any) (call.Result, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return call.Result{}, fmt.Errorf("encode arguments of %s: %w", tool, err)
	}
	request := call.Request{
		Name: tool, Arguments: encoded,
		Caller: identity.Caller{
			Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent},
			Source: identity.Source{Listener: "local"},
		},
	}
	if string(encoded) == "null" {
		request.Arguments = nil
	} else if err := jsonguard.Check(encoded, jsonguard.Client()); err != nil {
		request.Refused = &call.Error{Code: call.InvalidInput, Message: err.Error()}
	}
	result := s.Execute(ctx, request)
	if result.Err != nil {
		return result, result.Err
	}
	return result, nil
}

// CheckArguments reports what keeps bytes from being the arguments of a call:
// they must be a JSON object within the bounds of the JSON gate. Arguments from
// outside pass it before [Server.Execute].
func CheckArguments(raw []byte) error { return pipeline.CheckArguments(raw) }
