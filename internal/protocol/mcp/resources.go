package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "context"

func readResource(ctx context.Context, c *request) (*result, *fault) {
	p := &c.item
	uri, ok := jsontext.Text(p.uri)
	if !ok || uri == "" {
		return nil, invalidParams("params.uri must be a string that is not empty")
	}
	return c.perform(ctx, call.Request{Kind: call.Resources, Name: uri}, p)
}
