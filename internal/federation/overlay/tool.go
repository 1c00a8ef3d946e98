package overlay

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/schema"
)

// errTask says that calls of a tool have to be tasks (2025-11-25 server/tools, Execution),
// which those that this server makes are not.
var errTask = errors.New("it can be called as a task alone")

func needsTask(said members) bool {
	return decoded(said["execution"]).text("taskSupport") == "required"
}

// tool makes an item of a tool (2026-07-28 server/tools).
func (m *maker) tool(item *catalog.Item, said members) error {
	name := said.text("name")
	item.Name = m.block.Renamed(name)
	item.Address = item.Name
	if err := named(item.Name); err != nil {
		return err
	}
	if needsTask(said) {
		return errTask
	}
	annotate(item, said)
	if o := m.block.Override(name); o != nil {
		override(item, o)
	}
	if err := schemas(item, said); err != nil {
		return err
	}
	if held, pinned := m.held[name]; pinned && !held.Hides() {
		item.PolicySchema = decoded(held.Definition())["inputSchema"] // as it is in the lock: rules are compiled once
	}
	item.Body = &body{fleet: m.fleet, server: m.block.Name, method: upstream.MethodTool, name: name, ask: m.block.Ask, output: item.Bounds.Output, accepts: m.accepts(name)}
	return nil
}

// annotate takes over what a server says of how a tool behaves. Of one that it does not
// call idempotent it is not known.
func annotate(item *catalog.Item, said members) {
	hints := decoded(said["annotations"])
	item.ReadOnly, item.Destructive, item.OpenWorld = hints.flag("readOnlyHint"), hints.flag("destructiveHint"), hints.flag("openWorldHint")
	if idempotent := hints.flag("idempotentHint"); idempotent != nil {
		item.Idempotent = *idempotent
	}
	if item.Title == "" {
		item.Title = hints.text("title")
	}
}

// override has the block say of a tool what it says.
func override(item *catalog.Item, o *hclfile.Override) {
	if o.Title != nil {
		item.Title = *o.Title
	}
	if o.Description != nil {
		item.Description = o.Description
	}
	item.ReadOnly, item.Destructive, item.OpenWorld = cmp.Or(o.ReadOnly, item.ReadOnly), cmp.Or(o.Destructive, item.Destructive), cmp.Or(o.OpenWorld, item.OpenWorld)
	if o.Idempotent != nil {
		item.Idempotent = *o.Idempotent
	}
	if o.Labels != nil {
		labels := maps.Clone(item.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, o.Labels)
		item.Labels = labels
	}
	if _, written := o.Ranges["timeout"]; written {
		item.Timeout = o.Timeout
	}
	if o.Output > 0 {
		item.Bounds.Output = outputOf(o.Output)
	}
	if o.Concurrency > 0 {
		item.Concurrency = o.Concurrency
	}
	item.Cache = o.Cache
}

// schemas compiles the schemas of a tool.
func schemas(item *catalog.Item, said members) (err error) {
	input := said["inputSchema"]
	if !isObject(input) || string(decoded(input)["type"]) != `"object"` {
		return errors.New("its inputSchema is not that of an object")
	}
	if item.Input, err = compiled("inputSchema", input); err != nil {
		return err
	}
	item.PolicySchema, item.InputNames = input, sortedNames(decoded(input)["properties"])
	output := said["outputSchema"]
	if output == nil || string(output) == "null" {
		return nil
	}
	item.Output, err = compiled("outputSchema", output)
	return err
}

// compiled compiles a schema, or says what is wrong with it.
func compiled(what string, raw []byte) (*schema.Schema, error) {
	s, problems := schema.CompileFor(schema.Reader{Numbers: schema.ForText}, raw, diag.Range{}, nil)
	for _, p := range problems {
		if p.Severity == diag.Error {
			return nil, fmt.Errorf("its %s does not do: %s", what, p.Summary)
		}
	}
	return s, nil
}
