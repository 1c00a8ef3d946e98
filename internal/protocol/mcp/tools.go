package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// Finder is a [Backend] that looks up one tool without making the list. It is
// asked for each call whose headers must be held to the tool's schema.
type Finder interface {
	// Find returns the named tool, and nil where there is none. One that has
	// mirrors it returns only if the caller may see it.
	Find(ctx context.Context, c identity.Caller, name string) *Tool
}

func callTool(ctx context.Context, c *request) (*result, *fault) {
	p := &c.item
	name, ok := jsontext.Text(p.name)
	if !ok {
		return nil, invalidParams("params.name must be a string")
	}
	return c.perform(ctx, call.Request{Kind: call.Tools, Name: name, Arguments: p.arguments}, p)
}

// checkMirrors holds the Mcp-Param headers to the arguments (2026-07-28
// basic/transports/streamable-http, Server Behavior for Custom Headers).
func (c *request) checkMirrors(ctx context.Context, r *call.Request) *fault {
	h := c.headers()
	if h == nil || c.era != modern || r.Kind != call.Tools {
		return nil
	}
	t := c.server.find(ctx, r.Caller, r.Name)
	if t == nil {
		return nil
	}
	for i := range t.mirrors {
		if f := t.mirrors[i].check(h, r.Arguments); f != nil {
			return f
		}
	}
	return nil
}

func (s *Server) find(ctx context.Context, caller identity.Caller, name string) *Tool {
	if f, ok := s.backend.(Finder); ok {
		return f.Find(ctx, caller, name)
	}
	for _, t := range s.backend.List(ctx, call.Tools, caller).Tools {
		if t.name == name {
			return t
		}
	}
	return nil
}
