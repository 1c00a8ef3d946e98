// Package spec reads OpenAPI 3.0 and 3.1 documents.
//
// A [Document] is a bounded tree of values with its [Operation] list. Documents are untrusted:
// references outside of the document are errors, and nothing is read from the network or the disk.
// Package openapi makes tools of the operations.
package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

// Bounds of a document.
const (
	MaxBytes      = 32 << 20
	maxYAML       = 8 << 20 // bytes: the parser needs many times as much memory
	maxDepth      = 200
	maxValues     = 2_000_000
	maxOperations = 5_000
	maxReferences = 32
	// Objects with more members are no operations, parameters or schemas. References could make each
	// operation read them again.
	MaxMembers = 1_000
	maxList    = 200 // parameters, responses and similar parts of one operation
	maxName    = 200 // bytes
)

// Document is an OpenAPI document.
type Document struct {
	Title      string
	Servers    []Server
	Operations []*Operation
	root       *yaml.Map
	targets    map[string]any // the objects that references name
	// indexes are the members of objects that references went through, by name.
	indexes map[*yaml.Map]map[string]any
	// References let many operations share their parts. These are the parts that were read.
	resolved   parts[string, any] // ends of chains of references
	operations parts[operationNodes, *Operation]
	parameters parts[*yaml.Map, *Parameter]
	bodies     parts[*yaml.Map, *Body]
	responses  parts[*yaml.Map, Response]
	schemes    parts[string, Scheme]
	security   parts[*yaml.Map, [][]Scheme]
}

// parts are parts of a document that were read once, with the error of each, by name or object.
type parts[K comparable, T any] map[K]struct {
	part T
	err  error
}

// get returns a part. It calls read if the part was not read.
func (p *parts[K, T]) get(key K, read func() (T, error)) (T, error) {
	one, ok := (*p)[key]
	if !ok {
		one.part, one.err = read()
		if *p == nil {
			*p = parts[K, T]{}
		}
		(*p)[key] = one
	}
	return one.part, one.err
}

// Server is a URL with the default values of its variables.
type Server struct{ URL string }

// Read reads a document in JSON or YAML.
func Read(text []byte) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, errors.New("the document is larger than 32 MiB")
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	d := &Document{root: root, targets: map[string]any{}, indexes: map[*yaml.Map]map[string]any{}}
	switch version := Text(root, "openapi"); {
	case Member(root, "swagger") != nil:
		return nil, errors.New("the document is Swagger 2.0; convert it to OpenAPI 3 first")
	case !strings.HasPrefix(version, "3.0.") && !strings.HasPrefix(version, "3.1.") && version != "3.0" && version != "3.1":
		return nil, errors.New("the document is not OpenAPI 3.0 or 3.1: it has no such version in its member openapi")
	}
	d.Title = Text(Member(root, "info"), "title")
	d.Servers = servers(root)
	if err := d.readPaths(); err != nil {
		return nil, err
	}
	return d, nil
}

// parse reads JSON if the text starts with a brace, and YAML otherwise.
func parse(text []byte) (*yaml.Map, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var value any
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		r := reader{decoder: json.NewDecoder(bytes.NewReader(text))}
		r.decoder.UseNumber()
		var err error
		if value, err = r.value(); err != nil {
			return nil, fmt.Errorf("read JSON: %w", err)
		}
		if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read JSON: offset %d: more text after the document", r.decoder.InputOffset())
		}
	} else if len(text) > maxYAML {
		return nil, errors.New("the document is YAML and larger than 8 MiB; convert it to JSON first")
	} else {
		documents, err := yaml.ParseLong(string(text), func() error { return nil })
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		if len(documents) != 1 {
			return nil, errors.New("read YAML: want one document")
		}
		value = documents[0]
	}
	root, ok := value.(*yaml.Map)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	return root, nil
}

// reader reads JSON into the values of package yaml.
type reader struct {
	decoder       *json.Decoder
	depth, values int
}

func (r *reader) value() (any, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("offset %d: not JSON", r.decoder.InputOffset())
	}
	if r.values++; r.values > maxValues {
		return nil, fmt.Errorf("offset %d: more than 2,000,000 values", r.decoder.InputOffset())
	}
	switch token := token.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(token.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("offset %d: a number out of range", r.decoder.InputOffset())
		}
		return f, nil
	case json.Delim:
		if r.depth++; r.depth > maxDepth {
			return nil, fmt.Errorf("offset %d: nested deeper than 200", r.decoder.InputOffset())
		}
		defer func() { r.depth-- }()
		if token == '[' {
			return r.list()
		}
		return r.object()
	default:
		return token, nil
	}
}

func (r *reader) list() (any, error) {
	list := []any{}
	for r.decoder.More() {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, r.end()
}

func (r *reader) object() (any, error) {
	m := &yaml.Map{}
	seen := map[string]bool{}
	for r.decoder.More() {
		name, err := r.decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("offset %d: not JSON", r.decoder.InputOffset())
		}
		key, _ := name.(string)
		if seen[key] {
			return nil, fmt.Errorf("offset %d: a second member of the name", r.decoder.InputOffset())
		}
		seen[key] = true
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		m.Names, m.Values = append(m.Names, key), append(m.Values, v)
	}
	return m, r.end()
}

func (r *reader) end() error {
	if _, err := r.decoder.Token(); err != nil {
		return fmt.Errorf("offset %d: not JSON", r.decoder.InputOffset())
	}
	return nil
}

// Member returns a member of an object; nil if v is no object or lacks it.
func Member(v any, name string) any {
	if m, ok := v.(*yaml.Map); ok {
		if i := slices.Index(m.Names, name); i >= 0 {
			return m.Values[i]
		}
	}
	return nil
}

// Text returns a member that is a string, or "".
func Text(v any, name string) string {
	text, _ := Member(v, name).(string)
	return text
}

// Flag reports whether a member is true.
func Flag(v any, name string) bool { return Member(v, name) == true }

// List returns a member that is a list, or nil.
func List(v any, name string) []any {
	list, _ := Member(v, name).([]any)
	return list
}

// Object returns a member that is an object, or an empty one.
func Object(v any, name string) *yaml.Map {
	if m, ok := Member(v, name).(*yaml.Map); ok {
		return m
	}
	return &yaml.Map{}
}

// Resolve follows a chain of references within the document.
func (d *Document) Resolve(v any) (any, error) {
	reference := Text(v, "$ref")
	if reference == "" {
		return v, nil
	}
	return d.resolved.get(reference, func() (any, error) { return d.follow(v) })
}

// follow is Resolve without the chains that were followed before.
func (d *Document) follow(v any) (any, error) {
	for range maxReferences {
		reference := Text(v, "$ref")
		if reference == "" {
			return v, nil
		}
		target, err := d.target(reference)
		if err != nil {
			return nil, err
		}
		if m, ok := target.(*yaml.Map); ok && len(m.Names) > MaxMembers {
			return nil, errors.New("a reference to an object with more than 1,000 members")
		}
		v = target
	}
	return nil, errors.New("a chain of references without an end")
}

func (d *Document) target(reference string) (any, error) {
	if v, ok := d.targets[reference]; ok {
		return v, nil
	}
	pointer, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return nil, errors.New("a reference outside of the document")
	}
	var v any = d.root
	for part := range strings.SplitSeq(pointer, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}").Replace(part)
		switch at := v.(type) {
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil, errors.New("a reference to a missing part of the document")
			}
			v = at[i]
		default:
			if v = d.member(at, part); v == nil {
				return nil, errors.New("a reference to a missing part of the document")
			}
		}
	}
	d.targets[reference] = v
	return v, nil
}

// member is [Member] for an object with many members that is searched often.
func (d *Document) member(v any, name string) any {
	m, ok := v.(*yaml.Map)
	if !ok {
		return nil
	}
	index := d.indexes[m]
	if index == nil {
		index = make(map[string]any, len(m.Names))
		for i, name := range m.Names {
			index[name] = m.Values[i]
		}
		d.indexes[m] = index
	}
	return index[name]
}
