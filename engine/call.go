package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/jsongate"
)

// Call calls a tool in this process, as the anonymous principal of a client.
// args is anything that encodes to a JSON object or null; the error is a
// [*CallError] unless args do not encode.
func (s *Server) Call(ctx context.Context, tool string, args any) (Result, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return Result{}, fmt.Errorf("encode arguments of %s: %w", tool, err)
	}
	request := Request{
		Name: tool, Arguments: encoded,
		Caller: identity.Caller{
			Principal: identity.Anonymous(), Agent: identity.Agent{AgentID: identity.AnonymousAgent},
			Source: identity.Source{Listener: "local"},
		},
	}
	if string(encoded) == "null" {
		request.Arguments = nil
	} else if err := jsongate.Check(encoded, jsongate.Client()); err != nil {
		request.refused = &CallError{Code: InvalidInput, Message: err.Error()}
	}
	result := s.Execute(ctx, request)
	if result.Err != nil {
		return result, result.Err
	}
	return result, nil
}

// public returns a copy without what only the operator may see, for hooks.
func (e *CallError) public() *CallError {
	c := *e
	c.Violations, c.Schema, c.Details, c.RPC = slices.Clone(e.Violations), bytes.Clone(e.Schema), bytes.Clone(e.Details), copied(e.RPC)
	c.Required = bytes.Clone(e.Required)
	c.cause = nil
	return &c
}

// logFailure tells the operator what the caller is not told.
func (x *execution) logFailure(ctx context.Context, err *CallError) {
	called := x.req.Name
	if x.entry != nil {
		called = x.entry.Address // without what a URI gives a template
	}
	attrs := []slog.Attr{
		slog.String(x.req.Kind.String(), called), slog.String("call_id", x.id),
		slog.String("request_id", x.req.Caller.Agent.RequestID), slog.String("code", string(err.Code)),
	}
	if parent := x.place.Parent(); parent != "" {
		attrs = append(attrs, slog.String("parent_id", parent))
	}
	level := slog.LevelInfo
	if cause := errors.Unwrap(err); cause != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("cause", x.server.brokers.Secrets.Redact(cause.Error())))
	}
	x.server.options.Logger.LogAttrs(ctx, level, "a call failed", attrs...)
}

// CheckArguments reports what keeps bytes from being the arguments of a call:
// they must be a JSON object within the bounds of the JSON gate. Arguments from
// outside pass it before [Server.Execute].
func CheckArguments(raw []byte) error {
	if err := jsongate.Check(raw, jsongate.Client()); err != nil || jsongate.IsObject(raw) {
		return err
	}
	return errors.New("the arguments must be a JSON object")
}
