package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// input is an argument of a tool.
type input struct {
	name     string
	schema   *yaml.Map
	required bool
	// example is a value for a test, if hasExample.
	example    any
	hasExample bool
}

// request writes the part of a script that sends a request, and computes the request of its test.
type request struct {
	schemas *schemas
	op      *spec.Operation
	inputs  []input
	taken   map[string]bool
	// path, query, headers and body are lines and expressions of JavaScript.
	path          string
	query         []string
	headers       []string
	body          []string
	option        string // the body in the options of the request
	helpers       map[string]bool
	examplePath   string
	exampleQuery  []pair
	exampleValues *yaml.Map // arguments of the test
	// untestable names an input without an example, "" if all have one.
	untestable string
}

type pair struct{ name, value string }

// add adds an input and returns its expression, and its value in the test; ok is false if the test
// leaves it out. The candidates are values for the test, the best first.
func (r *request) add(name, suffix string, s *yaml.Map, required bool, candidates ...any) (expression string, example any, ok bool) {
	in := input{name: identifier(name, suffix, r.taken), schema: s, required: required}
	in.example, in.hasExample = r.schemas.fitting(s, candidates...)
	r.inputs = append(r.inputs, in)
	switch {
	case !required:
		return "input." + in.name, nil, false
	case in.hasExample:
		set(r.exampleValues, in.name, in.example)
	default:
		r.untestable = in.name
	}
	return "input." + in.name, in.example, in.hasExample
}

// allExamples returns an example of each input that has one.
func (r *request) allExamples() *yaml.Map {
	all := &yaml.Map{}
	for _, in := range r.inputs {
		if in.hasExample {
			set(all, in.name, in.example)
		}
	}
	return all
}

var token = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// reserved are headers that scripts cannot set, or that the script sets itself.
var reserved = strings.Fields("accept authorization connection content-length content-type cookie expect forwarded host http2-settings keep-alive te trailer transfer-encoding upgrade via x-host x-http-method x-http-method-override x-method-override x-original-host x-original-url x-rewrite-url")

func isReserved(header string) bool {
	header = strings.ToLower(header)
	return slices.Contains(reserved, header) || strings.HasPrefix(header, "proxy-") || strings.HasPrefix(header, "x-forwarded-")
}

// parameters adds the inputs of all parameters.
func (r *request) parameters(at endpoint) error {
	path, examplePath := quote(at.origin+at.base+r.op.Path), at.base+r.op.Path
	for _, p := range r.op.Parameters {
		switch p.In {
		case "path":
			if p.Style != "simple" || p.JSON {
				return fmt.Errorf("path parameter %q has an unsupported style", p.Name)
			}
			mark := "{" + p.Name + "}"
			if !strings.Contains(r.op.Path, mark) {
				continue
			}
			expression, example, _ := r.add(p.Name, "path", r.parameterSchema(p), true, r.candidates(p)...)
			r.helpers["segment"] = true
			path = strings.ReplaceAll(path, mark, `" + segment(`+expression+`) + "`)
			examplePath = strings.ReplaceAll(examplePath, mark, segment(example))
		case "query":
			if err := r.queryParameter(p); err != nil {
				return err
			}
		case "header":
			switch {
			case isReserved(p.Name) && p.Required && !slices.Contains([]string{"accept", "authorization", "content-type"}, strings.ToLower(p.Name)):
				return fmt.Errorf("scripts cannot set its header %q", p.Name)
			case isReserved(p.Name):
				continue
			case !token.MatchString(p.Name):
				return errors.New("the name of a header is malformed")
			}
			expression, _, _ := r.add(p.Name, "header", r.parameterSchema(p), p.Required, r.candidates(p)...)
			value := "String(" + expression + ")"
			if p.JSON {
				value = "JSON.stringify(" + expression + ")"
			}
			r.headers = append(r.headers, fmt.Sprintf("if (%s != null) headers[%s] = %s;", expression, quote(strings.ToLower(p.Name)), value))
		case "cookie":
			if p.Required {
				return fmt.Errorf("it needs cookie %q", p.Name)
			}
		default:
			return errors.New("a parameter is in an unknown place")
		}
	}
	if missing := parameter.FindString(path); missing != "" {
		return fmt.Errorf("its path has %s, which is not a parameter", missing)
	}
	r.path, r.examplePath = strings.TrimSuffix(strings.ReplaceAll(path, ` + "" + `, " + "), ` + ""`), examplePath
	return nil
}

// parameterSchema returns the schema of a parameter with its description.
func (r *request) parameterSchema(p *spec.Parameter) *yaml.Map {
	s, _ := r.schemas.convert(p.Schema, false).(*yaml.Map)
	if note := words(p.Description, maxNote); note != "" {
		set(s, "description", note)
	}
	return s
}

// candidates returns the example values of a parameter.
func (r *request) candidates(p *spec.Parameter) []any {
	return append([]any{p.Example}, r.exampleOf(p.Schema)...)
}

// exampleOf returns the examples in a schema of the document.
func (r *request) exampleOf(v any) []any {
	v, err := r.schemas.document.Resolve(v)
	if err != nil {
		return nil
	}
	return append([]any{spec.Member(v, "example")}, append(firstOf(spec.List(v, "examples")), spec.Member(v, "default"))...)
}

func scalar(s *yaml.Map) bool {
	return slices.Contains([]any{"string", "number", "integer", "boolean"}, spec.Member(s, "type"))
}

func (r *request) queryParameter(p *spec.Parameter) error {
	s := r.parameterSchema(p)
	expression, example, ok := r.add(p.Name, "query", s, p.Required, r.candidates(p)...)
	name := quote(p.Name)
	separator, separated := map[string]string{"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}[p.Style]
	switch {
	case p.JSON:
		r.query = append(r.query, fmt.Sprintf("if (%s !== undefined) query.append(%s, JSON.stringify(%[1]s));", expression, name))
		if ok {
			r.exampleQuery = append(r.exampleQuery, pair{p.Name, stringify(example)})
		}
		return nil
	case p.Style == "deepObject":
		r.use("nested", "query", expression, name)
	case !separated:
		return fmt.Errorf("query parameter %q has an unsupported style", p.Name)
	case scalar(s):
		r.query = append(r.query, fmt.Sprintf("if (%s !== undefined) query.append(%s, String(%[1]s));", expression, name))
	case p.Explode:
		r.use("spread", "query", expression, name)
	default:
		r.query = append(r.query, fmt.Sprintf("if (%s != null) query.append(%s, [%[1]s].flat().join(%[3]s));", expression, name, quote(separator)))
		if list, isList := example.([]any); isList {
			r.exampleQuery = append(r.exampleQuery, pair{p.Name, joined(list, separator)})
		} else if ok {
			r.exampleQuery = append(r.exampleQuery, pair{p.Name, plain(example)})
		}
		return nil
	}
	if ok {
		r.exampleQuery = append(r.exampleQuery, pairs(p.Name, example, p.Style == "deepObject")...)
	}
	return nil
}

// use adds a call of a helper that appends a value to the query or a form.
func (r *request) use(helper, to, expression, name string) {
	r.helpers[helper] = true
	line := fmt.Sprintf("%s(%s, %s, %s);", helper, to, name, expression)
	if to == "query" {
		r.query = append(r.query, line)
	} else {
		r.body = append(r.body, line)
	}
}

// plain returns a value as String of JavaScript does.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		return joined(v, ",")
	case *yaml.Map:
		return "[object Object]"
	}
	return string(appendJSON(nil, v))
}

func joined(list []any, separator string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		if v != nil {
			texts[i] = plain(v)
		}
	}
	return strings.Join(texts, separator)
}

// pairs are the names and values that the helpers append for a value.
func pairs(name string, v any, nested bool) (all []pair) {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		for i, item := range v {
			if nested {
				all = append(all, pairs(fmt.Sprintf("%s[%d]", name, i), item, true)...)
			} else {
				all = append(all, pair{name, plain(item)})
			}
		}
		return all
	case *yaml.Map:
		for i, key := range v.Names {
			if nested {
				all = append(all, pairs(name+"["+key+"]", v.Values[i], true)...)
			} else {
				all = append(all, pair{key, plain(v.Values[i])})
			}
		}
		return all
	}
	return []pair{{name, plain(v)}}
}

// segment encodes a value like encodeURIComponent.
func segment(v any) string {
	escaped := url.QueryEscape(plain(v))
	return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(escaped)
}

// formEncode encodes pairs like URLSearchParams.
func formEncode(list []pair) string {
	encode := strings.NewReplacer("~", "%7E", "%2A", "*")
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = encode.Replace(url.QueryEscape(p.name)) + "=" + encode.Replace(url.QueryEscape(p.value))
	}
	return strings.Join(texts, "&")
}

// requestBody adds the inputs of the body. The members of an object are inputs of their own.
func (r *request) requestBody() error {
	b := r.op.Body
	if b == nil {
		return nil
	}
	s, _ := r.schemas.convert(b.Schema, false).(*yaml.Map)
	media := b.MediaType()
	switch {
	case b.IsForm():
		r.body = append(r.body, "const form = new URLSearchParams();")
		if !flat(s) {
			return errors.New("its form has no fixed fields")
		}
		r.members(s, func(name, expression string, property *yaml.Map) {
			if spec.Text(spec.Object(b.Encoding, name), "style") == "deepObject" || !scalar(property) && spec.Text(property, "type") != "array" {
				r.use("nested", "form", expression, quote(name))
			} else {
				r.use("spread", "form", expression, quote(name))
			}
		})
		r.option = "body: form"
		if !b.Required {
			r.option = `body: form.toString() === "" ? undefined : form`
		}
	case b.IsJSON():
		r.jsonBody(s, media)
	default: // text
		set(s, "description", strings.TrimSpace("The body of the request. "+spec.Text(s, "description")))
		expression, _, _ := r.add("body", "body", textOnly(s), b.Required, b.Example)
		r.headers = append(r.headers, fmt.Sprintf("headers[\"content-type\"] = %s;", quote(media)))
		r.option = "body: " + expression
	}
	return nil
}

func textOnly(s *yaml.Map) *yaml.Map {
	text := anything()
	set(text, "type", "string")
	set(text, "description", spec.Text(s, "description"))
	return text
}

func (r *request) jsonBody(s *yaml.Map, media string) {
	b := r.op.Body
	value := "body"
	if flat(s) {
		r.body = append(r.body, "const body = {")
		r.members(s, func(name, expression string, _ *yaml.Map) {
			key := quote(name)
			if name == "__proto__" {
				key = `["__proto__"]`
			} else if word.MatchString(name) {
				key = name
			}
			r.body = append(r.body, "  "+key+": "+expression+",")
		})
		r.body = append(r.body, "};")
		if !b.Required {
			value = "Object.values(body).some((value) => value !== undefined) ? body : undefined"
		}
	} else {
		value, _, _ = r.add("body", "body", s, b.Required, append([]any{b.Example}, r.exampleOf(b.Schema)...)...)
	}
	if media == "application/json" || media == "*/*" {
		r.option = "json: " + value
		return
	}
	r.headers = append(r.headers, fmt.Sprintf("headers[\"content-type\"] = %s;", quote(media)))
	if b.Required {
		r.option = "body: JSON.stringify(" + value + ")"
	} else {
		r.body = append(r.body, "const sent = "+value+";")
		r.option = "body: sent === undefined ? undefined : JSON.stringify(sent)"
	}
}

// flat reports whether the members of an object can be inputs.
func flat(s *yaml.Map) bool {
	if spec.Member(s, "type") != "object" || !has(s, "properties") {
		return false
	}
	for i, name := range s.Names {
		switch name {
		case "type", "description", "properties", "required":
		case "additionalProperties":
			if s.Values[i] != false {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// members adds an input for each member of a body.
func (r *request) members(s *yaml.Map, each func(name, expression string, property *yaml.Map)) {
	properties, b := spec.Object(s, "properties"), r.op.Body
	example := b.Example
	if !isSmall(example) {
		example = nil
	}
	raw, _ := r.schemas.document.Resolve(b.Schema)
	for i, name := range properties.Names {
		property, _ := properties.Values[i].(*yaml.Map)
		required := b.Required && slices.Contains(spec.List(s, "required"), any(name))
		candidates := append([]any{spec.Member(example, name)}, r.exampleOf(spec.Member(spec.Object(raw, "properties"), name))...)
		expression, _, _ := r.add(name, "body", property, required, candidates...)
		each(name, expression, property)
	}
}
