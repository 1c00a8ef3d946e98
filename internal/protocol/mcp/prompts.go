package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "context"

func getPrompt(ctx context.Context, c *request) (*result, *fault) {
	p := &c.item
	name, ok := jsontext.Text(p.name)
	if !ok {
		return nil, invalidParams("params.name must be a string")
	}
	if p.arguments != nil && !jsontext.IsObject(p.arguments) {
		return nil, invalidParams("params.arguments must be an object")
	}
	return c.perform(ctx, call.Request{Kind: call.Prompts, Name: name, Arguments: p.arguments}, p)
}
