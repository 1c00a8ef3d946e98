package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "context"

// resources lists resources and templates, and reads what they stand for
// (2026-07-28 server/resources).
func resources() feature {
	return feature{
		capability: "resources", settings: `{"listChanged":true,"subscribe":true}`, declared: bothEras,
		methods: []method{
			{name: "resources/list", eras: bothEras, serve: lister(call.Resources)},
			{name: "resources/templates/list", eras: bothEras, serve: lister(call.Templates)},
			{name: "resources/read", eras: bothEras, slow: true, nameOf: "uri", serve: readResource},
			{name: "resources/subscribe", eras: legacy, serve: subscribeResource},
			{name: "resources/unsubscribe", eras: legacy, serve: unsubscribeResource},
		},
	}
}

func readResource(ctx context.Context, c *request) (*result, *fault) {
	p := &c.item
	uri, ok := jsontext.Text(p.uri)
	if !ok || uri == "" {
		return nil, invalidParams("params.uri must be a string that is not empty")
	}
	return c.perform(ctx, call.Request{Kind: call.Resources, Name: uri}, p)
}
