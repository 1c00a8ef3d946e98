package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "context"

// subscribeResource has a legacy session hear of a resource (2025-11-25
// server/resources, Subscriptions).
func subscribeResource(ctx context.Context, c *request) (*result, *fault) {
	uri, f := c.subscribed()
	if f != nil {
		return nil, f
	}
	r := &call.Request{Kind: call.Resources, Name: uri}
	var err error
	if r.Caller, err = c.caller(); err != nil {
		return nil, c.claimFault(r.Caller, err)
	}
	if !c.server.backend.Serves(ctx, r.Caller, uri) {
		return nil, c.notFound(r, &call.Error{Code: call.ToolNotFound, Message: "there is no resource of this URI"})
	}
	session := c.origin.session
	c.server.changes.identify(&session.feed, r.Caller)
	if !c.server.changes.subscribe(&session.feed, topic{name: uri}) {
		return nil, invalidParams("the session is subscribed to too many resources")
	}
	return &result{}, nil
}

// unsubscribeResource takes back subscribeResource.
func unsubscribeResource(_ context.Context, c *request) (*result, *fault) {
	uri, f := c.subscribed()
	if f != nil {
		return nil, f
	}
	c.server.changes.unsubscribe(&c.origin.session.feed, topic{name: uri})
	return &result{}, nil
}

// subscribed returns the URI that the params name.
func (c *request) subscribed() (string, *fault) {
	uri, ok := jsontext.Text(jsontext.Get(c.params, "uri"))
	if !ok || uri == "" {
		return "", invalidParams("params.uri must be a string that is not empty")
	}
	return uri, nil
}
