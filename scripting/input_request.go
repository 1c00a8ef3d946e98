package scripting

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// The MCP methods of requests to the client.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// Limits of requests to the client.
const (
	maxAskBytes    = 1 << 20
	maxAskDepth    = 32
	maxAskRequests = 32
	maxAskMessages = 1000
)

// defaultMaxTokens is the default of maxTokens.
const defaultMaxTokens = 1000

// askRequest is one request to the client: the Go state of the object that elicit.form and similar
// functions return.
type askRequest struct {
	method string
	params []byte
	// form is set if the response has the content of a form.
	form bool
}

// elicitShape is the shape of the argument of elicit, elicit.form and elicit.url.
func elicitShape() builtins.Shape {
	return builtins.Shape{
		What:        "elicit",
		Members:     []builtins.ShapeMember{{Name: "message", Kind: builtins.IsText}, {Name: "schema", Kind: builtins.IsObject}, {Name: "url", Kind: builtins.IsLink}, {Name: "elicitationId", Kind: builtins.IsText}},
		Required:    []string{"message"},
		Suggestions: map[string]string{"requestedSchema": "schema"},
	}
}

func (r *execution) elicitation(s builtins.Shape, v goja.Value) *askRequest {
	found := r.Members(s, v)
	switch schema, url := found["schema"], found["url"]; {
	case schema == nil && url == nil:
		panic(r.TypeError(s.What + ": schema or url is missing"))
	case schema != nil && url != nil:
		panic(r.TypeError(s.What + ": a form has a schema and a page a url; there cannot be both"))
	case schema != nil && found["elicitationId"] != nil:
		panic(r.TypeError(s.What + ": an elicitationId belongs to a url"))
	case url != nil:
		return r.urlElicitation(s, found)
	}
	p := r.newParams(s.What)
	p.value("message", found["message"])
	p.value("requestedSchema", found["schema"])
	if problem := formProblem(p.last); problem != "" {
		panic(r.TypeError(s.What + ": " + problem))
	}
	return &askRequest{method: methodElicit, params: p.end(), form: true}
}

// urlElicitation returns the request to open a page. Older clients require an id, so a random one
// is the default.
func (r *execution) urlElicitation(s builtins.Shape, found map[string]goja.Value) *askRequest {
	link, _ := r.Link(found["url"])
	id := found["elicitationId"]
	if id == nil {
		id = r.Runtime.ToValue(r.UUID())
	}
	p := r.newParams(s.What)
	p.value("mode", r.Runtime.ToValue("url"))
	p.value("message", found["message"])
	p.value("url", r.Runtime.ToValue(link))
	p.value("elicitationId", id)
	return &askRequest{method: methodElicit, params: p.end()}
}

// formProblem returns why a schema is not valid for a form; empty if it is valid. A form is an
// object with members that are not objects.
func formProblem(schema []byte) string {
	var form map[string]json.RawMessage
	var properties map[string]map[string]json.RawMessage
	if json.Unmarshal(schema, &form) != nil || string(form["type"]) != `"object"` {
		return `schema must have the type "object"`
	}
	if json.Unmarshal(form["properties"], &properties) != nil || properties == nil {
		return "schema must have properties, each of which is a schema"
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch string(properties[name]["type"]) {
		case `"string"`, `"number"`, `"integer"`, `"boolean"`, `"array"`:
		default:
			return "schema: a form has no nested members; " + builtins.Spelled(name) + " must be of the type string, number, integer, boolean or array"
		}
	}
	return ""
}

// sampleShape is the shape of the argument of sample and sample.message.
func sampleShape(what string) builtins.Shape {
	return builtins.Shape{
		What: what,
		Members: []builtins.ShapeMember{
			{Name: "prompt", Kind: builtins.IsText}, {Name: "messages", Kind: builtins.IsList}, {Name: "modelPreferences", Kind: builtins.IsObject}, {Name: "systemPrompt", Kind: builtins.IsText},
			{Name: "includeContext", Kind: builtins.IsContext}, {Name: "temperature", Kind: builtins.IsNumber}, {Name: "maxTokens", Kind: builtins.IsCount}, {Name: "stopSequences", Kind: builtins.IsStrings},
			{Name: "metadata", Kind: builtins.IsObject}, {Name: "tools", Kind: builtins.IsList}, {Name: "toolChoice", Kind: builtins.IsObject},
		},
		Suggestions: map[string]string{
			"intelligenceLevel":    "modelPreferences.intelligencePriority",
			"intelligencePriority": "modelPreferences.intelligencePriority",
			"costLevel":            "modelPreferences.costPriority",
			"costPriority":         "modelPreferences.costPriority",
			"speedLevel":           "modelPreferences.speedPriority",
			"speedPriority":        "modelPreferences.speedPriority",
			"hints":                "modelPreferences.hints",
			"system":               "systemPrompt",
		},
	}
}

func preferencesShape(what string) builtins.Shape {
	return builtins.Shape{
		What:        what + ": modelPreferences",
		Members:     []builtins.ShapeMember{{Name: "hints", Kind: builtins.IsList}, {Name: "costPriority", Kind: builtins.IsFraction}, {Name: "speedPriority", Kind: builtins.IsFraction}, {Name: "intelligencePriority", Kind: builtins.IsFraction}},
		Suggestions: map[string]string{"speedLevel": "modelPreferences.speedPriority"},
		// From texts about MCP that are older than the specification.
		Deprecated: map[string]string{"intelligenceLevel": "intelligencePriority", "costLevel": "costPriority"},
	}
}

func (r *execution) sampling(what string, v goja.Value) *askRequest {
	s := sampleShape(what)
	found := r.Members(s, v)
	p := r.newParams(what)
	switch prompt, messages := found["prompt"], found["messages"]; {
	case prompt == nil && messages == nil:
		panic(r.TypeError(what + ": prompt or messages is missing"))
	case prompt != nil && messages != nil:
		panic(r.TypeError(what + ": a prompt is the only message; there cannot be messages too"))
	case prompt != nil:
		p.list("messages", 1, func(int) { p.message(r.Runtime.ToValue("user"), prompt) })
	default:
		r.messages(p, messages.(*goja.Object))
	}
	if found["maxTokens"] == nil {
		found["maxTokens"] = r.Runtime.ToValue(defaultMaxTokens)
	}
	for _, m := range s.Members {
		switch value := found[m.Name]; {
		case value == nil, m.Name == "prompt", m.Name == "messages":
		case m.Name == "modelPreferences":
			p.object(m.Name, preferencesShape(what), value)
		default:
			p.value(m.Name, value)
		}
	}
	params := p.end()
	if problem := toolProblem(params); problem != "" {
		panic(r.TypeError(what + ": " + problem))
	}
	return &askRequest{method: methodSample, params: params}
}

// messages writes the messages to a model. A string as content becomes a text block.
func (r *execution) messages(p *params, list *goja.Object) {
	length := jsvalue.LengthOf(list)
	if length > maxAskMessages {
		panic(r.TypeError(p.what + ": there are more than " + strconv.Itoa(maxAskMessages) + " messages"))
	}
	p.list("messages", int(length), func(i int) {
		s := builtins.Shape{
			What:     p.what + ": messages[" + strconv.Itoa(i) + "]",
			Members:  []builtins.ShapeMember{{Name: "role", Kind: builtins.IsRole}, {Name: "content", Kind: builtins.IsContent}},
			Required: []string{"role", "content"},
		}
		message := r.Members(s, list.Get(strconv.Itoa(i)))
		p.message(message["role"], message["content"])
	})
}

// params encodes the params of a request, within the limits of a request. Values that JSON cannot
// hold are errors of the script.
type params struct {
	r    *execution
	what string
	e    *jsvalue.Encoder
	// last is the JSON of the last value.
	last []byte
}

func (r *execution) newParams(what string) *params {
	p := &params{r: r, what: what, e: jsvalue.NewEncoder(maxAskBytes, maxAskDepth, r.Stopped)}
	p.e.Out = append(p.e.Out, '{')
	return p
}

func (p *params) end() []byte {
	p.e.Out = append(p.e.Out, '}')
	return p.e.Out
}

func (p *params) value(name string, v goja.Value) {
	p.name(name)
	p.json(name, v)
}

func (p *params) name(name string) {
	if p.e.Out[len(p.e.Out)-1] != '{' {
		p.e.Out = append(p.e.Out, ',')
	}
	p.e.Quote(name)
	p.e.Out = append(p.e.Out, ':')
}

func (p *params) json(name string, v goja.Value) {
	start := len(p.e.Out)
	wrote, err := p.e.Encode(v)
	switch {
	case err != nil:
		panic(p.r.TypeError(p.what + ": " + name + ": " + err.Error()))
	case !wrote:
		panic(p.r.TypeError(p.what + ": " + name + " cannot be written as JSON"))
	}
	p.last = p.e.Out[start:]
}

// object writes a member that is an object of a known shape.
func (p *params) object(name string, s builtins.Shape, v goja.Value) {
	found := p.r.Members(s, v)
	p.name(name)
	p.e.Out = append(p.e.Out, '{')
	for _, m := range s.Members {
		if value := found[m.Name]; value != nil {
			p.value(m.Name, value)
		}
	}
	p.e.Out = append(p.e.Out, '}')
}

// list writes a member that is an array. item writes one element.
func (p *params) list(name string, length int, item func(i int)) {
	p.name(name)
	p.e.Out = append(p.e.Out, '[')
	for i := range length {
		if i > 0 {
			p.e.Out = append(p.e.Out, ',')
		}
		item(i)
	}
	p.e.Out = append(p.e.Out, ']')
}

func (p *params) message(role, content goja.Value) {
	p.e.Out = append(p.e.Out, '{')
	p.value("role", role)
	if _, text := content.(goja.String); text {
		p.name("content")
		p.e.Out = append(p.e.Out, '{')
		p.value("type", p.r.Runtime.ToValue("text"))
		p.value("text", content)
		p.e.Out = append(p.e.Out, '}')
	} else {
		p.value("content", content)
	}
	p.e.Out = append(p.e.Out, '}')
}
