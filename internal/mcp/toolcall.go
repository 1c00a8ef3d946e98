package mcp

import (
	"context"
	"errors"

	"github.com/mcpd/mcpd/identity"
)

// Finder is a [Backend] that looks up one tool without making the list. It is
// asked for each call whose headers must be held to the tool's schema.
type Finder interface {
	// Find returns the named tool if the caller may see it, and nil otherwise.
	Find(ctx context.Context, c identity.Caller, name string) *Tool
}

func callTool(ctx context.Context, c *call) (*result, *fault) {
	name, ok := text(member(c.params, "name"))
	if !ok {
		return nil, invalidParams("params.name must be a string")
	}
	arguments := member(c.params, "arguments")
	if isNull(arguments) {
		arguments = nil
	}
	level, f := c.logLevel()
	if f != nil {
		return nil, f
	}
	caller, err := c.caller()
	if err != nil {
		return c.failed(identity.Caller{}, claimError(err), "")
	}
	if f := c.checkMirrors(ctx, caller, name, arguments); f != nil {
		return nil, f
	}
	request := Request{Tool: name, Arguments: arguments, Caller: caller}
	if e := c.emitter(ctx, name, level); e != nil {
		defer e.stop(c.server.options.Logger)
		request.Emit = e
	}
	response := c.server.backend.Call(ctx, request)
	if response.Err != nil {
		return c.failed(caller, response.Err, response.Revision)
	}
	return c.succeeded(response), nil
}

// checkMirrors holds the Mcp-Param headers to the arguments (2026-07-28
// basic/transports/streamable-http, Server Behavior for Custom Headers).
func (c *call) checkMirrors(ctx context.Context, caller identity.Caller, name string, arguments []byte) *fault {
	h := c.headers()
	if h == nil || c.era != modern {
		return nil
	}
	t := c.server.find(ctx, caller, name)
	if t == nil {
		return nil
	}
	for i := range t.mirrors {
		if f := t.mirrors[i].check(h, arguments); f != nil {
			return f
		}
	}
	return nil
}

func (s *Server) find(ctx context.Context, caller identity.Caller, name string) *Tool {
	if f, ok := s.backend.(Finder); ok {
		return f.Find(ctx, caller, name)
	}
	for _, t := range s.backend.List(ctx, caller).Tools {
		if t.name == name {
			return t
		}
	}
	return nil
}

// claimError returns the CallError that claims are refused with.
func claimError(err error) *CallError {
	var refused *CallError
	if errors.As(err, &refused) {
		return refused
	}
	return &CallError{Code: InvalidInput, Message: err.Error()}
}
