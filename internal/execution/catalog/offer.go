package catalog

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// Offer is what an item that is no tool says of itself beside its name.
type Offer struct {
	// ListedAs is the name that clients see: that of the item, but for a file
	// of a folder its path.
	ListedAs string
	// Template is that of a template; nil otherwise.
	Template *uritemplate.Template
	// MIMEType is "" when the body decides.
	MIMEType string
	// Size is in bytes; negative when the body decides.
	Size int64
	// Annotations is a JSON object; nil for none.
	Annotations json.RawMessage
	// Arguments are those of a prompt, and the variables of a template.
	Arguments []Argument
}

type Argument struct {
	Name, Title, Description string
	Required                 bool
	// matches reports whether a value may be that of the variable; nil allows any.
	matches func(string) bool
	// completion is nil when nothing completes the value.
	completion Handler
}

// NewArgument returns an argument whose value is completed by a body; nil for nothing that
// completes it.
func NewArgument(name, title, description string, required bool, completion Handler) Argument {
	return Argument{Name: name, Title: title, Description: description, Required: required, completion: completion}
}

// Schema returns the schema of the arguments, all of which are strings.
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

// Completion returns what completes an argument, nil when nothing does, and
// whether there is such an argument.
func (o *Offer) Completion(argument string) (body Handler, known bool) {
	for i := range o.Arguments {
		if o.Arguments[i].Name == argument {
			return o.Arguments[i].completion, true
		}
	}
	return nil, false
}

// Typed returns what is known while an argument is completed: as args what is
// filled in and what was typed, and as input both as the body takes them. The
// error is for the caller.
func (o *Offer) CompletionInput(argument string, request json.RawMessage) (args map[string]any, input json.RawMessage, err error) {
	var typed struct {
		Value  string            `json:"value"`
		Params map[string]string `json:"params"`
	}
	if len(request) > 0 && json.Unmarshal(request, &typed) != nil {
		return nil, nil, errors.New("a completion takes a value and what is filled in, all of them strings")
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

// later returns the required arguments that stand behind one that is completed:
// who completes that one has not filled them in yet.
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

// match returns the variables of the template in a URI, and false when there
// are none.
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

// annotationsOf returns annotations as MCP has them, nil for none.
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
