package mcp

import (
	"context"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func callTool(ctx context.Context, req *request) (*result, *fault) {
	p := &req.item
	name, ok := jsontext.Text(p.name)
	if !ok {
		return nil, invalidParams("params.name must be a string")
	}
	return req.invoke(ctx, call.Request{Kind: call.Tools, Name: name, Arguments: p.arguments}, p)
}

// checkMirrors compares the Mcp-Param headers with the arguments (2026-07-28
// basic/transports/streamable-http, Server Behavior for Custom Headers).
func (req *request) checkMirrors(ctx context.Context, r *call.Request) *fault {
	h := req.headers()
	if h == nil || req.era != modern || r.Kind != call.Tools {
		return nil
	}
	t := req.server.backend.Find(ctx, r.Caller, r.Name)
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

func readResource(ctx context.Context, req *request) (*result, *fault) {
	p := &req.item
	uri, ok := jsontext.Text(p.uri)
	if !ok || uri == "" {
		return nil, invalidParams("params.uri must be a string that is not empty")
	}
	return req.invoke(ctx, call.Request{Kind: call.Resources, Name: uri}, p)
}

func getPrompt(ctx context.Context, req *request) (*result, *fault) {
	p := &req.item
	name, ok := jsontext.Text(p.name)
	if !ok {
		return nil, invalidParams("params.name must be a string")
	}
	if p.arguments != nil && !jsontext.IsObject(p.arguments) {
		return nil, invalidParams("params.arguments must be an object")
	}
	return req.invoke(ctx, call.Request{Kind: call.Prompts, Name: name, Arguments: p.arguments}, p)
}

func complete(ctx context.Context, req *request) (*result, *fault) {
	r, f := completionOf(req.params)
	if f != nil {
		return nil, f
	}
	return req.invoke(ctx, r, &itemParams{})
}

func completionOf(params []byte) (r call.Request, f *fault) {
	if r, f = referenceOf(jsontext.Get(params, "ref")); f != nil {
		return r, f
	}
	argument := jsontext.Get(params, "argument")
	var ok bool
	if r.Argument, ok = jsontext.Text(jsontext.Get(argument, "name")); !ok || r.Argument == "" {
		return r, invalidParams("params.argument.name must be a string that is not empty")
	}
	value := jsontext.Get(argument, "value")
	if _, ok = jsontext.Text(value); !ok {
		return r, invalidParams("params.argument.value must be a string")
	}
	filled := jsontext.Get(jsontext.Get(params, "context"), "arguments")
	switch {
	case jsontext.IsNull(filled):
		filled = []byte("{}")
	case !jsontext.IsObject(filled):
		return r, invalidParams("params.context.arguments must be an object")
	}
	r.Arguments = append(appendValue(appendValue([]byte{'{'}, "value", value), "params", filled), '}')
	return r, nil
}

func referenceOf(ref []byte) (r call.Request, f *fault) {
	key := "name"
	switch kind, _ := jsontext.Text(jsontext.Get(ref, "type")); kind {
	case "ref/prompt":
		r.Kind = call.Prompts
	case "ref/resource":
		r.Kind, key = call.Templates, "uri"
	default:
		return r, invalidParams("params.ref.type must be ref/prompt or ref/resource")
	}
	var ok bool
	if r.Name, ok = jsontext.Text(jsontext.Get(ref, key)); !ok {
		return r, invalidParams("params.ref." + key + " must be a string")
	}
	return r, nil
}
