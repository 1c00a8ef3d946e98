package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// maxListedName bounds the names of resources, in bytes.
const maxListedName = 256

// resource makes an item of a resource (2026-07-28 server/resources). Its URI is that
// which its server gives it.
func (m *maker) resource(item *catalog.Item, said members) error {
	uri := said.text("uri")
	if err := addressed(uri); err != nil {
		return err
	}
	item.Address = uri
	if err := m.readable(item, said); err != nil {
		return err
	}
	item.PolicySchema = stringsSchema(nil, nil)
	item.Body = &body{fleet: m.fleet, server: m.block.Name, method: upstream.MethodRead, ask: m.block.Ask, output: item.Bounds.Output}
	return nil
}

// template makes an item of a template.
func (m *maker) template(item *catalog.Item, said members) error {
	text := said.text("uriTemplate")
	if safetext.Hides(text) {
		return errHidesAddress
	}
	parsed, err := uritemplate.Parse(text)
	if err != nil {
		return fmt.Errorf("its template does not do: %w", err)
	}
	item.Address = text
	if err := m.readable(item, said); err != nil {
		return err
	}
	item.Offer.Template, item.InputNames = parsed, parsed.Names()
	required := parsed.Required()
	for _, name := range item.InputNames {
		item.Offer.Arguments = append(item.Offer.Arguments, catalog.NewArgument(name, "", "", slices.Contains(required, name), m.completion("ref/resource", "uri", text, name)))
	}
	item.PolicySchema = stringsSchema(item.InputNames, required)
	item.Body = &body{fleet: m.fleet, server: m.block.Name, method: upstream.MethodRead, ask: m.block.Ask, output: item.Bounds.Output}
	return nil
}

// readable takes over what a server says of what can be read.
func (m *maker) readable(item *catalog.Item, said members) error {
	name := said.text("name")
	if name == "" || len(name) > maxListedName {
		return fmt.Errorf("its name has none or more than %d bytes", maxListedName)
	}
	item.Name = m.block.Prefix + name
	yes, no := true, false
	item.ReadOnly, item.Destructive, item.Idempotent = &yes, &no, true
	item.Offer = &catalog.Offer{ListedAs: name, MIMEType: said.text("mimeType"), Size: -1, Annotations: annotations(said["annotations"])}
	var size int64
	if json.Unmarshal(said["size"], &size) == nil && said["size"] != nil && size >= 0 {
		item.Offer.Size = size
	}
	return nil
}

// annotations returns those of what is read, nil where they are of another form.
func annotations(raw json.RawMessage) json.RawMessage {
	var said struct {
		Audience     []string `json:"audience,omitempty"`
		Priority     *float64 `json:"priority,omitempty"`
		LastModified string   `json:"lastModified,omitempty"`
	}
	if !isObject(raw) || json.Unmarshal(raw, &said) != nil {
		return nil
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(said)
	return encoded
}

// prompt makes an item of a prompt (2026-07-28 server/prompts).
func (m *maker) prompt(item *catalog.Item, said members) error {
	name := said.text("name")
	item.Name = m.block.Renamed(name)
	item.Address = item.Name
	if err := named(item.Name); err != nil {
		return err
	}
	var arguments []members
	if list := said["arguments"]; list != nil && json.Unmarshal(list, &arguments) != nil {
		return errors.New("its arguments are no list of objects")
	}
	item.Offer = &catalog.Offer{ListedAs: item.Name, Size: -1}
	yes, no := true, false
	item.ReadOnly, item.Destructive, item.Idempotent = &yes, &no, true
	var required []string
	for _, a := range arguments {
		argument, must := a.text("name"), a.flag("required")
		if argument == "" || slices.Contains(item.InputNames, argument) {
			return errors.New("an argument of it has no name, or that of another")
		}
		needed := must != nil && *must
		if item.InputNames = append(item.InputNames, argument); needed {
			required = append(required, argument)
		}
		item.Offer.Arguments = append(item.Offer.Arguments,
			catalog.NewArgument(argument, a.text("title"), a.text("description"), needed, m.completion("ref/prompt", "name", name, argument)))
	}
	item.PolicySchema = stringsSchema(item.InputNames, required)
	item.Input, _ = schema.Compile(item.PolicySchema, diag.Range{}, nil) // it is ours, and sound
	item.Body = &body{fleet: m.fleet, server: m.block.Name, method: upstream.MethodPrompt, name: name, ask: m.block.Ask, output: item.Bounds.Output}
	return nil
}

// completion returns what completes an argument, nil where the server completes nothing.
func (m *maker) completion(kind, key, of, argument string) catalog.Body {
	if !m.completes {
		return nil
	}
	return &completion{fleet: m.fleet, server: m.block.Name, ref: map[string]string{"type": kind, key: of}, argument: argument}
}

// stringsSchema is the schema of arguments that are strings.
func stringsSchema(names, required []string) json.RawMessage {
	properties := make(map[string]any, len(names))
	for _, name := range names {
		properties[name] = map[string]string{"type": "string"}
	}
	required = append([]string{}, required...)
	slices.Sort(required)
	// Plain data always encodes.
	encoded, _ := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	return encoded
}
