package overlay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// errTaskOnly excludes tools that can only be called as tasks (2025-11-25 server/tools,
// Execution), which this client does not support.
var errTaskOnly = errors.New("it can only be called as a task")

func needsTask(object jsonObject) bool {
	return decoded(object["execution"]).text("taskSupport") == "required"
}

func (b *itemBuilder) tool(item *catalog.Item, object jsonObject) error {
	name := object.text("name")
	item.Name = b.upstream.LocalName(name)
	item.Address = item.Name
	if err := checkName(item.Name); err != nil {
		return err
	}
	if needsTask(object) {
		return errTaskOnly
	}
	setHints(item, object)
	if o := b.upstream.Override(name); o != nil {
		applyOverride(item, o)
	}
	if err := compileSchemas(item, object); err != nil {
		return err
	}
	if accepted, pinned := b.accepted[name]; pinned && !accepted.Hides() {
		item.PolicySchema = decoded(accepted.Definition())["inputSchema"] // as in the lock file: policies are compiled once
	}
	item.Handler = b.handler(item, upstream.MethodTool, name, b.acceptCheck(name))
	return nil
}

func (b *itemBuilder) handler(item *catalog.Item, method, name string, accepts func(*upstream.Listing) bool) *handler {
	return &handler{pool: b.pool, server: b.upstream.Name, method: method, name: name, ask: b.upstream.Ask, output: item.Bounds.Output, accepts: accepts}
}

// setHints copies the annotations of a tool. Without idempotentHint, Idempotent keeps its
// value.
func setHints(item *catalog.Item, object jsonObject) {
	hints := decoded(object["annotations"])
	item.ReadOnly, item.Destructive, item.OpenWorld = hints.boolean("readOnlyHint"), hints.boolean("destructiveHint"), hints.boolean("openWorldHint")
	if idempotent := hints.boolean("idempotentHint"); idempotent != nil {
		item.Idempotent = *idempotent
	}
	item.Title = cmp.Or(item.Title, hints.text("title"))
}

func applyOverride(item *catalog.Item, o *definition.Override) {
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
		item.Bounds.Output = outputLimit(o.Output)
	}
	if o.Concurrency > 0 {
		item.Concurrency = o.Concurrency
	}
	item.Cache = o.Cache
}

func compileSchemas(item *catalog.Item, object jsonObject) (err error) {
	input := object["inputSchema"]
	if !isObject(input) || string(decoded(input)["type"]) != `"object"` {
		return errors.New("its inputSchema is not an object schema")
	}
	if item.Input, err = compileSchema("inputSchema", input); err != nil {
		return err
	}
	item.PolicySchema, item.InputNames = input, slices.Sorted(maps.Keys(decoded(decoded(input)["properties"])))
	output := object["outputSchema"]
	if output == nil || string(output) == "null" {
		return nil
	}
	item.Output, err = compileSchema("outputSchema", output)
	return err
}

func compileSchema(what string, raw []byte) (*schema.Schema, error) {
	s, problems := schema.CompileFor(schema.Reader{Numbers: schema.ForText}, raw, diag.Range{}, nil)
	for _, p := range problems {
		if p.Severity == diag.Error {
			return nil, fmt.Errorf("its %s is invalid: %s", what, p.Summary)
		}
	}
	return s, nil
}

// maxListedName bounds the names of resources, in bytes.
const maxListedName = 256

// resource converts a resource (2026-07-28 server/resources). It keeps the URI of the server.
func (b *itemBuilder) resource(item *catalog.Item, object jsonObject) error {
	uri := object.text("uri")
	if err := checkURI(uri); err != nil {
		return err
	}
	item.Address = uri
	if err := b.readable(item, object); err != nil {
		return err
	}
	item.PolicySchema = item.Offer.Schema()
	item.Handler = b.handler(item, upstream.MethodRead, "", nil)
	return nil
}

func (b *itemBuilder) template(item *catalog.Item, object jsonObject) error {
	text := object.text("uriTemplate")
	if safetext.Hides(text) {
		return errHiddenURI
	}
	parsed, err := uritemplate.Parse(text)
	if err != nil {
		return fmt.Errorf("its template is invalid: %w", err)
	}
	item.Address = text
	if err := b.readable(item, object); err != nil {
		return err
	}
	item.Offer.Template, item.InputNames = parsed, parsed.Names()
	required := parsed.Required()
	for _, name := range item.InputNames {
		item.Offer.Arguments = append(item.Offer.Arguments, catalog.NewArgument(name, "", "", slices.Contains(required, name), b.completion("ref/resource", "uri", text, name)))
	}
	item.PolicySchema = item.Offer.Schema()
	item.Handler = b.handler(item, upstream.MethodRead, "", nil)
	return nil
}

// readable sets the members that resources and templates share.
func (b *itemBuilder) readable(item *catalog.Item, object jsonObject) error {
	name := object.text("name")
	if name == "" || len(name) > maxListedName {
		return fmt.Errorf("its name is empty or longer than %d bytes", maxListedName)
	}
	item.Name = b.upstream.Prefix + name
	yes, no := true, false
	item.ReadOnly, item.Destructive, item.Idempotent = &yes, &no, true
	item.Offer = &catalog.Offer{ListedAs: name, MIMEType: object.text("mimeType"), Size: -1, Annotations: annotations(object["annotations"])}
	var size int64
	if json.Unmarshal(object["size"], &size) == nil && object["size"] != nil && size >= 0 {
		item.Offer.Size = size
	}
	return nil
}

// annotations returns the annotations of a resource, or nil if they are malformed.
func annotations(raw json.RawMessage) json.RawMessage {
	var known struct {
		Audience     []string `json:"audience,omitempty"`
		Priority     *float64 `json:"priority,omitempty"`
		LastModified string   `json:"lastModified,omitempty"`
	}
	if !isObject(raw) || json.Unmarshal(raw, &known) != nil {
		return nil
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(known)
	return encoded
}

// prompt converts a prompt (2026-07-28 server/prompts).
func (b *itemBuilder) prompt(item *catalog.Item, object jsonObject) error {
	name := object.text("name")
	item.Name = b.upstream.LocalName(name)
	item.Address = item.Name
	if err := checkName(item.Name); err != nil {
		return err
	}
	var arguments []jsonObject
	if list := object["arguments"]; list != nil && json.Unmarshal(list, &arguments) != nil {
		return errors.New("its arguments are not a list of objects")
	}
	item.Offer = &catalog.Offer{ListedAs: item.Name, Size: -1}
	yes, no := true, false
	item.ReadOnly, item.Destructive, item.Idempotent = &yes, &no, true
	for _, a := range arguments {
		argument, isRequired := a.text("name"), a.boolean("required")
		if argument == "" || slices.Contains(item.InputNames, argument) {
			return errors.New("an argument has no name or a duplicate name")
		}
		item.InputNames = append(item.InputNames, argument)
		item.Offer.Arguments = append(item.Offer.Arguments,
			catalog.NewArgument(argument, a.text("title"), a.text("description"), isRequired != nil && *isRequired, b.completion("ref/prompt", "name", name, argument)))
	}
	item.PolicySchema = item.Offer.Schema()
	item.Input, _ = schema.Compile(item.PolicySchema, diag.Range{}, nil) // our own schema is valid
	item.Handler = b.handler(item, upstream.MethodPrompt, name, nil)
	return nil
}

// completion returns the completer of an argument, or nil if the server has no completions.
func (b *itemBuilder) completion(kind, key, target, argument string) catalog.Handler {
	if !b.completes {
		return nil
	}
	return &completion{pool: b.pool, server: b.upstream.Name, ref: map[string]string{"type": kind, key: target}, argument: argument}
}
