package catalog

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Offer is the metadata of a resource, template or prompt.
type Offer struct {
	// ListedAs is the name for clients: the name of the item, or the path of a file of a folder
	// block.
	ListedAs string
	// Template is set for a template only.
	Template *uritemplate.Template
	// MIMEType is "" if the handler sets it.
	MIMEType string
	// Size is in bytes; negative if unknown.
	Size int64
	// Annotations is a JSON object; nil for none.
	Annotations json.RawMessage
	// Arguments are the arguments of a prompt, or the variables of a template.
	Arguments []Argument
}

// Argument is an argument of a prompt or a variable of a template.
type Argument struct {
	Name, Title, Description string
	Required                 bool
	// matches reports whether a value is allowed; nil allows any.
	matches func(string) bool
	// completion completes the value; it may be nil.
	completion Handler
}

// NewArgument returns an argument. completion may be nil.
func NewArgument(name, title, description string, required bool, completion Handler) Argument {
	return Argument{Name: name, Title: title, Description: description, Required: required, completion: completion}
}

// Schema returns the schema of the arguments, which are strings.
func (o *Offer) Schema() json.RawMessage {
	properties := make(map[string]any, len(o.Arguments))
	required := []string{}
	for i := range o.Arguments {
		properties[o.Arguments[i].Name] = map[string]string{"type": "string"}
		if o.Arguments[i].Required {
			required = append(required, o.Arguments[i].Name)
		}
	}
	slices.Sort(required)
	// Plain data always encodes.
	encoded, _ := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	})
	return encoded
}

// Completion returns the handler that completes an argument, which may be nil, and whether the
// argument exists.
func (o *Offer) Completion(argument string) (body Handler, known bool) {
	for i := range o.Arguments {
		if o.Arguments[i].Name == argument {
			return o.Arguments[i].completion, true
		}
	}
	return nil, false
}

// CompletionInput returns the input of a completion: as args the typed value and the other
// arguments, and as input both in the form for the handler. The error is for the caller.
func (o *Offer) CompletionInput(argument string, request json.RawMessage) (args map[string]any, input json.RawMessage, err error) {
	var typed struct {
		Value  string            `json:"value"`
		Params map[string]string `json:"params"`
	}
	if len(request) > 0 && json.Unmarshal(request, &typed) != nil {
		return nil, nil, errors.New("a completion takes a value and params, all of them strings")
	}
	args = map[string]any{}
	params := map[string]string{}
	for name, value := range typed.Params {
		if _, known := o.Completion(name); known {
			args[name], params[name] = value, value
		}
	}
	args[argument] = typed.Value
	// Strings always encode.
	input, _ = json.Marshal(map[string]any{"value": typed.Value, "params": params})
	return args, input, nil
}

// remainingArguments returns the required arguments after the first one with a completion. They
// have no value yet while that one is completed.
func (o *Offer) remainingArguments() []string {
	if o == nil {
		return nil
	}
	var names []string
	completes := false
	for i := range o.Arguments {
		if completes && o.Arguments[i].Required {
			names = append(names, o.Arguments[i].Name)
		}
		completes = completes || o.Arguments[i].completion != nil
	}
	return names
}

// match returns the variables of the template in a URI, and false if the URI does not match.
func (o *Offer) match(uri *uritemplate.URI) (map[string]string, bool) {
	values, ok := o.Template.Match(uri)
	if !ok {
		return nil, false
	}
	for i := range o.Arguments {
		a := &o.Arguments[i]
		if value, given := values[a.Name]; given && a.matches != nil && !a.matches(value) {
			return nil, false
		}
	}
	return values, true
}

// annotationsOf returns annotations as JSON, or nil.
func annotationsOf(a *definition.Annotations) json.RawMessage {
	if a == nil {
		return nil
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(struct {
		Audience []string `json:"audience,omitempty"`
		Priority *float64 `json:"priority,omitempty"`
	}{a.Audience, a.Priority})
	return encoded
}
