package pipeline

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/execution/catalog"
)

// resolve looks up the requested item and its handler. The variables of a template become the
// arguments of the call.
func (x *execution) resolve() {
	if x.req.Kind == call.Resources {
		var variables map[string]string
		x.entry, variables = x.catalog.Read(x.req.Name)
		x.args = make(map[string]any, len(variables))
		for name, value := range variables {
			x.args[name] = value
		}
	} else {
		x.entry = x.catalog.Entry(x.req.Kind, x.req.Name)
	}
	if x.entry != nil && x.entry.Alias {
		x.resolveAlias()
	}
	switch {
	case x.entry == nil:
	case x.req.Argument == "" && x.req.Kind != call.Templates:
		x.handler = x.entry.Handler
	case x.entry.Offer != nil:
		x.handler, _ = x.entry.Offer.Completion(x.req.Argument)
	}
}

// resolveAlias replaces an alias by the tool that its arguments name. If they name none, the alias
// rejects them.
func (x *execution) resolveAlias() {
	var named map[string]json.RawMessage
	var name string
	if x.req.ArgumentsErr != nil || json.Unmarshal(x.req.Arguments, &named) != nil || json.Unmarshal(named["name"], &name) != nil || len(named) > 2 || name == "" {
		return
	}
	arguments, given := named["arguments"]
	if len(named) == 2 && !given || x.catalog.Entry(call.Tools, name) == x.entry {
		return
	}
	x.alias = x.entry.Name
	x.req.Name, x.req.Arguments = truncateName(call.Tools, name), arguments
	x.entry = x.catalog.Entry(call.Tools, name)
}

// hasArgument reports whether the argument to complete exists.
func (x *execution) hasArgument() bool {
	if x.entry.Offer == nil {
		return false
	}
	_, known := x.entry.Offer.Completion(x.req.Argument)
	return known
}

// buildInput builds the input of a resource or a completion: the URI and the variables of its
// template, or the typed text and the other arguments. Policies see all of these as args.
func (x *execution) buildInput() *call.Error {
	if x.req.Argument == "" {
		if x.handler != nil && !x.entry.Static {
			x.input = encode(map[string]any{"uri": x.req.Name, "params": x.args})
		}
		return nil
	}
	var err error
	if x.args, x.input, err = x.entry.Offer.CompletionInput(x.req.Argument, x.req.Arguments); err != nil {
		return invalidParams(err.Error())
	}
	return nil
}

// kind returns the kind of the item, or the requested kind.
func (x *execution) kind() catalog.Kind {
	if x.entry != nil {
		return x.entry.Kind
	}
	return x.req.Kind
}

// name returns the name of the item, or the requested name.
func (x *execution) name() string {
	if x.entry != nil {
		return x.entry.Name
	}
	return x.req.Name
}

func (x *execution) eventKind() string {
	if x.req.Argument != "" {
		return "completion"
	}
	return x.kind().String()
}

// truncateName shortens a name that is too long for any item, for logs and hooks. It does not split
// characters. The result is also too long for any item, so that it finds none.
func truncateName(k call.Kind, name string) string {
	if limit := catalog.MaxAddress(k); len(name) > limit {
		return truncate.Start(name, limit+utf8.UTFMax-1) + "…"
	}
	return name
}
