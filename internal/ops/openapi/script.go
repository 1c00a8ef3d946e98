package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// helpers are functions of the script, in this order.
var helpers = []struct{ name, code string }{
	{"segment", `const segment = (value) => {
  const text = encodeURIComponent(String(value));
  if (text === "" || text === "." || text === "..") throw new ToolError("a part of the path is empty, . or ..");
  return text;
};
`},
	{"spread", `const spread = (to, name, value) => {
  if (value == null) return;
  if (Array.isArray(value)) for (const item of value) to.append(name, String(item));
  else if (typeof value === "object") for (const [key, item] of Object.entries(value)) to.append(key, String(item));
  else to.append(name, String(value));
};
`},
	{"nested", `const nested = (to, name, value) => {
  if (value == null) return;
  if (typeof value !== "object") to.append(name, String(value));
  else for (const [key, item] of Object.entries(value)) nested(to, name + "[" + key + "]", item);
};
`},
}

// credential is how a script or a grant sends a secret.
type credential struct {
	header, value string // of the grant, in HCL
	query, secret string // of the query, with its secret
}

// script returns the body of the tool.
func (r *request) script(grant string, credentials []credential, answer answer) string {
	var b strings.Builder
	for _, h := range helpers {
		if r.helpers[h.name] {
			b.WriteString(h.code)
		}
	}
	for _, c := range credentials {
		if c.query != "" {
			r.query = append(r.query, fmt.Sprintf("query.append(%s, secrets.%s);", quote(c.query), c.secret))
		}
	}
	line := func(text string) { b.WriteString(text + "\n") }
	address := r.path
	if len(r.query) > 0 {
		line("const query = new URLSearchParams();")
		for _, text := range r.query {
			line(text)
		}
		address += ` + (query.toString() === "" ? "" : "?" + query)`
	}
	line("const headers = { accept: " + quote(answer.accept) + " };")
	for _, text := range r.headers {
		line(text)
	}
	for _, text := range r.body {
		line(text)
	}
	options := "{ headers"
	if r.option != "" {
		options += ", " + r.option
	}
	line(fmt.Sprintf("const response = await http.%s.request(%s, %s, %s });", grant, quote(r.op.Method), address, options))
	line(`if (!response.ok) throw new ToolError("the server answered with status " + response.status + ": " + response.text().slice(0, 2000));`)
	line(answer.result)
	return b.String()
}

// answer is what a tool makes of the successful responses.
type answer struct {
	accept string
	result string     // the last line of the script
	output *yaml.Map  // schema of the result; nil without one
	mock   mockAnswer // response in the test
}

type mockAnswer struct {
	status string
	text   string
	json   bool
	ok     bool
}

// answerOf reads the successful responses. A result is an object, since MCP requires that.
func (r *request) answerOf() answer {
	a := answer{accept: "*/*", result: "return { status: response.status };", output: object("status", typed("integer"))}
	a.mock = mockAnswer{ok: true, status: "204"}
	if len(r.op.Responses) == 0 {
		a.mock.status = "200"
		return a
	}
	first, several := r.op.Responses[0], false
	for _, other := range r.op.Responses {
		if first.Media == "" && other.Media != "" {
			first = other
		}
	}
	for _, other := range r.op.Responses {
		several = several || other.Media != first.Media
	}
	if first.Media == "" {
		a.mock.status = first.Status
		return a
	}
	if media := first.MediaType(); media != "" && !strings.HasPrefix(media, "*") {
		a.accept = media
	}
	a.mock.status, a.mock.text = first.Status, "example"
	switch {
	case several && (first.IsJSON() || first.IsText()):
		a.result = `const text = response.text();
let body = text;
try {
  body = text === "" ? null : JSON.parse(text);
} catch {
  // The body is text.
}
return { status: response.status, body };`
		a.output = object("status", typed("integer"), "body", anything())
	case first.IsJSON():
		r.jsonAnswer(&a, first)
	case first.IsText():
		a.result, a.output = "return response.text();", nil
	default:
		a.result, a.output = `return content.resource({ uri: response.url, mimeType: `+quote(first.MediaType())+`, data: response.bytes() });`, nil
	}
	return a
}

func (r *request) jsonAnswer(a *answer, response spec.Response) {
	s, _ := r.schemas.convert(response.Schema, true).(*yaml.Map)
	a.output, a.result, a.mock.json = s, "return response.json();", true
	example, ok := r.schemas.fitting(s, append([]any{response.Example}, r.exampleOf(response.Schema)...)...)
	a.mock.text, a.mock.ok = pretty(example), ok
	if spec.Member(s, "type") != "object" {
		a.output, a.result = object("result", s), "return { result: response.json() };"
	}
}

// object returns the schema of an object with required members: names and schemas in turn.
func object(members ...any) *yaml.Map {
	properties, required := &yaml.Map{}, []any{}
	for i := 0; i < len(members); i += 2 {
		set(properties, members[i].(string), members[i+1])
		required = append(required, members[i])
	}
	o := typed("object")
	set(o, "properties", properties)
	set(o, "required", required)
	return o
}

func typed(kind string) *yaml.Map {
	s := anything()
	set(s, "type", kind)
	return s
}

// pretty returns JSON with indents, or on one line if that has too many lines.
func pretty(v any) string {
	raw := appendJSON(nil, v)
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil && bytes.Count(b.Bytes(), []byte("\n")) < maxLines {
		return b.String()
	}
	return string(raw)
}

// maxLines is the maximum number of lines of JSON in a heredoc.
const maxLines = 400
