package pipeline

import (
	"encoding/json"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/execution/catalog"
)

// find looks up what the request names, and what of it is to run. The
// variables of a template become the arguments of the call.
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

// findNamed has the call be one of the tool that its arguments name. Arguments that name
// none are for the alias to refuse.
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

// known reports whether what is to be completed is an argument of the item.
func (x *execution) hasArgument() bool {
	if x.entry.Offer == nil {
		return false
	}
	_, known := x.entry.Offer.Completion(x.req.Argument)
	return known
}

// fillOther makes the input of what takes no arguments of its caller's choice:
// of a resource its URI and the variables of its template, of a completion what
// was typed and what is filled in. Policies see as args what is filled in, with
// what was typed.
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

// kind returns the kind of the item that was found, or else of what was asked for.
func (x *execution) kind() catalog.Kind {
	if x.entry != nil {
		return x.entry.Kind
	}
	return x.req.Kind
}

// name returns the name of the item, or else what was asked for.
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

// bounded returns a name that nothing has where one is too long: logs and hooks need not
// carry all of it.
func truncateName(k call.Kind, name string) string {
	if most := catalog.MaxAddress(k); len(name) > most {
		return name[:most] + "…"
	}
	return name
}
