package mcp

import (
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

import "context"

func complete(ctx context.Context, c *request) (*result, *fault) {
	r, f := completionOf(c.params)
	if f != nil {
		return nil, f
	}
	return c.perform(ctx, r, &itemParams{})
}

// completionOf reads the params of completion/complete.
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

// referenceOf reads what is to be completed.
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
