package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

func (c *compiler) template(def *definition.Template) *compiledItem {
	item := resourceItem(Templates, def.Name, "", def.Title, def.Description, def.Call)
	item.Icons, item.Where = def.Icons, def.NameRange
	item.Offer.MIMEType, item.Offer.Annotations = def.MIMEType, annotationsOf(def.Annotations)
	c.found.authors.bound(item, def.Bounds)
	k := c.begin(item, def.Meaning)
	if def.URITemplate == nil { // whoever decoded the file has told
		item.PolicySchema = json.RawMessage(`{"type":"object"}`)
		return k.done(def.Grant, def.GrantRanges)
	}
	item.Address, item.Offer.Template = def.URITemplate.String(), def.URITemplate
	item.InputNames = def.URITemplate.Names()
	arguments, required := make([]definition.Argument, len(def.Params)), def.URITemplate.Required()
	for i, p := range def.Params {
		arguments[i] = definition.Argument{
			Name: p.Name, Description: p.Description, Required: slices.Contains(required, p.Name), Complete: p.Complete, Range: p.Range,
		}
	}
	k.arguments(arguments, def.Call)
	for i, p := range def.Params {
		if p.Pattern != "" {
			// Whoever decoded the file has compiled it already.
			if pattern, err := regexp.Compile(p.Pattern); err == nil {
				item.Offer.Arguments[i].matches = pattern.MatchString
			}
		}
	}
	item.PolicySchema = stringsSchema(arguments)
	if def.Run == nil {
		item.Body = phrase{text: def.Text, mimeType: def.MIMEType}
		return k.done(def.Grant, def.GrantRanges)
	}
	src := scripting.Source{Name: def.Name, Kind: scripting.Resource, MustReturn: true, Inputs: item.InputNames}
	item.Body = k.reading(src, *def.Run, def.Call, def.MIMEType)
	return k.done(def.Grant, def.GrantRanges)
}

// arguments adds the arguments of a prompt or the variables of a template, with
// what completes them.
func (k *compiling) arguments(list []definition.Argument, call definition.Call) {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	for _, a := range list {
		k.item.Offer.Arguments = append(k.item.Offer.Arguments, Argument{
			Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required,
			completion: k.completion(a.Complete, names, call),
		})
	}
}

// completion returns what completes a value; nil when nothing does. It asks
// nobody, since no client can be asked while its user types.
func (k *compiling) completion(def *definition.Complete, names []string, call definition.Call) Body {
	switch {
	case def == nil:
		return nil
	case def.Run == nil:
		return suggested(def.Values)
	}
	granted := call.Grant
	granted.Ask = nil
	src := scripting.Source{Name: k.item.Name, Kind: scripting.Complete, MustReturn: true, Inputs: names}
	return shaped(k.body(src, *def.Run, granted), func(_ *Invocation, r *scripting.Result) (json.RawMessage, error) {
		return reply.Suggestions(r)
	})
}

// suggested is a completion whose values stand in the file.
type suggested []string

// Run returns the values that begin with what was typed.
func (s suggested) Run(_ context.Context, i Invocation) (scripting.Outcome, error) {
	var input struct{ Value string }
	if err := json.Unmarshal(i.Input, &input); err != nil {
		return scripting.Outcome{}, err
	}
	return replied(reply.Beginning(s, input.Value)), nil
}

// phrase is the body of a template whose text stands in the file.
type phrase struct {
	text     definition.Phrase
	mimeType string
}

// Run fills in the variables.
func (p phrase) Run(_ context.Context, i Invocation) (scripting.Outcome, error) {
	mimeType := p.mimeType
	if mimeType == "" {
		mimeType = "text/plain"
	}
	values := texts(i.Args)
	if size := p.text.Len(values); size > definition.MaxFilled {
		return tooLong(size), nil
	}
	return replied(reply.Stored(i.Address, mimeType, []byte(p.text.Fill(values)), false)), nil
}

// tooLong is the outcome of a body whose reply would have too many bytes.
func tooLong(size int) scripting.Outcome {
	message := fmt.Sprintf("with these values the text has %d bytes, more than %d", size, definition.MaxFilled)
	return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Limit, Limit: "output", Message: message}}
}

// texts returns the arguments that are strings, as all of these are.
func texts(args map[string]any) map[string]string {
	values := make(map[string]string, len(args))
	for name, value := range args {
		values[name], _ = value.(string)
	}
	return values
}

// stringsSchema is the schema of arguments that are strings.
func stringsSchema(list []definition.Argument) json.RawMessage {
	properties := make(map[string]any, len(list))
	required := []string{}
	for _, a := range list {
		properties[a.Name] = map[string]string{"type": "string"}
		if a.Required {
			required = append(required, a.Name)
		}
	}
	slices.Sort(required)
	// Plain data always encodes.
	encoded, _ := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	return encoded
}
