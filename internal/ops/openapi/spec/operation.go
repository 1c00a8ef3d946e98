package spec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// Operation is a method of a path. Operations share their parts, which must not change.
type Operation struct {
	Method, Path         string
	ID                   string
	Summary, Description string
	Tags                 []string
	Servers              []Server // nil: the servers of the document
	Parameters           []*Parameter
	Body                 *Body
	Responses            []Response
	// Security lists the alternatives. An alternative without schemes needs no credential.
	Security [][]Scheme
	// Problem says why the operation cannot be used, "" if it can.
	Problem string
}

// Key identifies the operation in its document.
func (o *Operation) Key() string { return o.Method + " " + o.Path }

// Parameter is a value in the path, the query, a header or a cookie.
type Parameter struct {
	Name, In, Description string
	Required              bool
	Style                 string
	Explode               bool
	// JSON means that the value is encoded as JSON.
	JSON    bool
	Schema  any
	Example any
}

// Body is the request body in one media type.
type Body struct {
	Media    string
	Required bool
	Schema   any
	Example  any
	Encoding *yaml.Map
}

// Response is a successful response in one media type.
type Response struct {
	Status  string
	Media   string // "" without content
	Schema  any
	Example any
}

// Scheme is a way to authenticate.
type Scheme struct {
	Name   string // of the security scheme
	Kind   string // apiKey, basic or bearer
	In     string // of an API key: header, query or cookie
	Header string // name of the API key
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch"}

// readPaths reads all operations, in the order of the document.
func (d *Document) readPaths() error {
	paths := Object(d.root, "paths")
	for i, path := range paths.Names {
		item, err := d.Resolve(paths.Values[i])
		if err != nil {
			return fmt.Errorf("path %q: %w", cut(path), err)
		}
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		m, _ := item.(*yaml.Map)
		if m == nil {
			continue
		}
		for j, method := range m.Names {
			if !slices.Contains(methods, method) {
				continue
			}
			if len(d.Operations) == maxOperations {
				return fmt.Errorf("path %q: more than 5,000 operations", cut(path))
			}
			d.Operations = append(d.Operations, d.operation(path, method, m, m.Values[j]))
		}
	}
	return nil
}

// operationNodes are the objects of an operation: its path item and its own.
type operationNodes struct{ item, own *yaml.Map }

func (d *Document) operation(path, method string, item *yaml.Map, v any) *Operation {
	own, ok := v.(*yaml.Map)
	if !ok {
		own = &yaml.Map{}
	}
	shared, _ := d.operations.get(operationNodes{item, own}, func() (*Operation, error) { return d.readOperation(item, own), nil })
	o := *shared
	o.Method, o.Path = strings.ToUpper(method), path
	return &o
}

// readOperation reads an operation without its method and path.
func (d *Document) readOperation(item, v *yaml.Map) *Operation {
	o := &Operation{ID: Text(v, "operationId"), Summary: Text(v, "summary"), Description: Text(v, "description")}
	for _, tag := range atMost(List(v, "tags")) {
		if text, ok := tag.(string); ok {
			o.Tags = append(o.Tags, text)
		}
	}
	if o.Servers = servers(v); o.Servers == nil {
		o.Servers = servers(item)
	}
	for _, step := range []func() error{
		func() error { return d.readParameters(o, List(item, "parameters"), List(v, "parameters")) },
		func() (err error) { o.Body, err = d.body(Member(v, "requestBody")); return err },
		func() error { return d.readResponses(o, Object(v, "responses")) },
		func() (err error) { o.Security, err = d.securityOf(v); return err },
	} {
		if err := step(); err != nil {
			o.Problem = err.Error()
			break
		}
	}
	return o
}

// resolvePart reads the object that a value is or refers to, once.
func resolvePart[T any](d *Document, known *parts[*yaml.Map, T], v any, read func(*yaml.Map) (T, error)) (T, error) {
	target, err := d.Resolve(v)
	if err != nil {
		var none T
		return none, err
	}
	m, ok := target.(*yaml.Map)
	if !ok {
		return read(&yaml.Map{})
	}
	return known.get(m, func() (T, error) { return read(m) })
}

// readParameters reads the parameters of the path and of the operation, which replace parameters of the path.
func (d *Document) readParameters(o *Operation, shared, own []any) error {
	if len(shared)+len(own) > maxList {
		return errors.New("it has more than 200 parameters")
	}
	for _, v := range slices.Concat(shared, own) {
		p, err := resolvePart(d, &d.parameters, v, d.parameter)
		if err != nil {
			return err
		}
		same := slices.IndexFunc(o.Parameters, func(q *Parameter) bool { return q.Name == p.Name && q.In == p.In })
		if same >= 0 {
			o.Parameters[same] = p
			continue
		}
		o.Parameters = append(o.Parameters, p)
	}
	return nil
}

func (d *Document) parameter(v *yaml.Map) (*Parameter, error) {
	p := &Parameter{
		Name: Text(v, "name"), In: Text(v, "in"), Description: Text(v, "description"),
		Required: Flag(v, "required"), Style: Text(v, "style"), Schema: Member(v, "schema"), Example: d.example(v),
	}
	switch {
	case p.Name == "" || len(p.Name) > maxName:
		return nil, errors.New("the name of a parameter is missing or too long")
	case len(p.In) > maxName:
		return nil, errors.New("a parameter is in an unknown place")
	}
	if p.Style == "" {
		p.Style = map[string]string{"query": "form", "cookie": "form"}[p.In]
	}
	if p.Style == "" {
		p.Style = "simple"
	}
	p.Explode = p.Style == "form"
	if explode, ok := Member(v, "explode").(bool); ok {
		p.Explode = explode
	}
	if content := Object(v, "content"); len(content.Names) == 1 {
		p.JSON, p.Schema = isJSON(content.Names[0]), Member(content.Values[0], "schema")
		if !p.JSON {
			return nil, fmt.Errorf("parameter %q has an unsupported content type", cut(p.Name))
		}
	}
	return p, nil
}

// body reads a request body; nil if v is nil.
func (d *Document) body(v any) (*Body, error) {
	if v == nil {
		return nil, nil
	}
	return resolvePart(d, &d.bodies, v, func(v *yaml.Map) (*Body, error) {
		content := Object(v, "content")
		i := preferred(content.Names, true)
		if i < 0 {
			return nil, errors.New("its request body has no supported media type: JSON, form or text")
		}
		return &Body{
			Media: content.Names[i], Required: Flag(v, "required"), Schema: Member(content.Values[i], "schema"),
			Example: d.example(content.Values[i]), Encoding: Object(content.Values[i], "encoding"),
		}, nil
	})
}

// readResponses reads the successful responses.
func (d *Document) readResponses(o *Operation, all *yaml.Map) error {
	if len(all.Names) > maxList {
		return errors.New("it has more than 200 responses")
	}
	for i, status := range all.Names {
		if !strings.HasPrefix(status, "2") && !(status == "default" && len(all.Names) == 1) {
			continue
		}
		r, err := resolvePart(d, &d.responses, all.Values[i], d.response)
		if err != nil {
			return err
		}
		r.Status = status
		o.Responses = append(o.Responses, r)
	}
	return nil
}

// response reads a response without its status.
func (d *Document) response(v *yaml.Map) (r Response, err error) {
	content := Object(v, "content")
	if j := preferred(content.Names, false); j >= 0 {
		r.Media, r.Schema, r.Example = content.Names[j], Member(content.Values[j], "schema"), d.example(content.Values[j])
	}
	return r, nil
}

// preferred returns the index of the media type to use, or -1: JSON, then other JSON, forms and text.
// For responses, any other comes last.
func preferred(media []string, request bool) int {
	media = atMost(media)
	for _, fits := range []func(string) bool{
		func(m string) bool { return mediaType(m) == "application/json" },
		isJSON,
		func(m string) bool { return request && mediaType(m) == "application/x-www-form-urlencoded" },
		func(m string) bool { return strings.HasPrefix(mediaType(m), "text/") },
		func(m string) bool { return request && mediaType(m) == "*/*" || !request && mediaType(m) != "" },
	} {
		if i := slices.IndexFunc(media, fits); i >= 0 {
			return i
		}
	}
	return -1
}

// safeMedia matches a media type without parameters.
var safeMedia = regexp.MustCompile(`^[A-Za-z0-9.+*_-]+/[A-Za-z0-9.+*_-]+$`)

// mediaType returns the media type without parameters, "" if it is malformed.
func mediaType(m string) string {
	if len(m) > maxName {
		return ""
	}
	m, _, _ = strings.Cut(m, ";")
	m = strings.ToLower(strings.TrimSpace(m))
	if !safeMedia.MatchString(m) {
		return ""
	}
	return m
}

func isJSON(m string) bool {
	m = mediaType(m)
	return m == "application/json" || strings.HasSuffix(m, "+json")
}

// MediaType returns the media type of the body without parameters.
func (b *Body) MediaType() string { return mediaType(b.Media) }

// IsJSON reports whether the body is JSON.
func (b *Body) IsJSON() bool { return isJSON(b.Media) || b.MediaType() == "*/*" }

// IsForm reports whether the body is a form.
func (b *Body) IsForm() bool { return b.MediaType() == "application/x-www-form-urlencoded" }

// MediaType returns the media type of the response without parameters.
func (r *Response) MediaType() string { return mediaType(r.Media) }

// IsJSON reports whether the response is JSON.
func (r *Response) IsJSON() bool { return isJSON(r.Media) || r.MediaType() == "*/*" }

// IsText reports whether the response is text.
func (r *Response) IsText() bool { return strings.HasPrefix(r.MediaType(), "text/") }

// example returns the example of a parameter or media type, or the first of its examples.
func (d *Document) example(v any) any {
	if example := Member(v, "example"); example != nil {
		return example
	}
	examples := Object(v, "examples")
	for _, one := range atMost(examples.Values) {
		if one, err := d.Resolve(one); err == nil {
			if value := Member(one, "value"); value != nil {
				return value
			}
		}
	}
	return nil
}

// atMost returns the first elements of a list.
func atMost[T any](list []T) []T { return list[:min(len(list), maxList)] }

// cut returns the start of a name, for messages.
func cut(name string) string { return name[:min(len(name), maxName)] }

// maxURL is the maximum length of the URL of a server and of the value of a variable in it.
const maxURL = 2048

// placeholder matches a variable in a URL or a path.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// servers returns the servers of a document, path or operation.
func servers(v any) (all []Server) {
	for _, one := range atMost(List(v, "servers")) {
		url, variables := Text(one, "url"), Object(one, "variables")
		if len(url) > maxURL || len(variables.Names) > maxURL {
			continue
		}
		all = append(all, Server{placeholder.ReplaceAllStringFunc(url, func(name string) string {
			value := Text(Member(variables, name[1:len(name)-1]), "default")
			return value[:min(len(value), maxURL)]
		})})
	}
	return all
}

// securityOf returns the alternatives of an operation, or of the document.
func (d *Document) securityOf(v *yaml.Map) ([][]Scheme, error) {
	if _, own := Member(v, "security").([]any); !own {
		v = d.root
	}
	return d.security.get(v, func() ([][]Scheme, error) { return d.alternatives(List(v, "security")) })
}

// alternatives reads the alternatives that mcpd supports. The error says why there are none.
func (d *Document) alternatives(list []any) (all [][]Scheme, problem error) {
	for _, one := range atMost(list) {
		needed, _ := one.(*yaml.Map)
		if needed == nil || len(needed.Names) > maxList {
			continue
		}
		alternative := []Scheme{}
		var err error
		for _, name := range needed.Names {
			var s Scheme
			if s, err = d.schemes.get(name, func() (Scheme, error) { return d.scheme(name) }); err != nil {
				problem = err
				break
			}
			alternative = append(alternative, s)
		}
		if err == nil {
			all = append(all, alternative)
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, problem
}

func (d *Document) scheme(name string) (Scheme, error) {
	v, err := d.Resolve(d.member(d.member(d.member(d.root, "components"), "securitySchemes"), name))
	if err != nil {
		return Scheme{}, err
	}
	s := Scheme{Name: name}
	switch kind := Text(v, "type"); {
	case kind == "apiKey":
		s.Kind, s.In, s.Header = kind, Text(v, "in"), Text(v, "name")
		if s.In != "header" && s.In != "query" || len(s.Header) > maxName {
			return s, fmt.Errorf("the API key of %q is in neither a header nor the query", cut(name))
		}
	case kind == "http" && strings.EqualFold(Text(v, "scheme"), "basic"):
		s.Kind = "basic"
	case kind == "http" && strings.EqualFold(Text(v, "scheme"), "bearer"), kind == "oauth2", kind == "openIdConnect":
		s.Kind = "bearer"
	default:
		return s, fmt.Errorf("security scheme %q is not supported", cut(name))
	}
	return s, nil
}
