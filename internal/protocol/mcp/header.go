package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// The headers that mirror the body of a modern request, in canonical form
// (2026-07-28 basic/transports/streamable-http, Request Metadata).
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
)

func canonical(name string) string {
	return strings.TrimPrefix(textproto.CanonicalMIMEHeaderKey(headerParam+name), headerParam)
}

// singleHeader returns the value of a header that must be present exactly once.
func singleHeader(h http.Header, name string) (value string, f *fault) {
	switch values := h[name]; len(values) {
	case 1:
		return values[0], nil
	case 0:
		return "", mismatch("the header " + name + " is missing")
	default:
		return "", mismatch("the header " + name + " is there more than once")
	}
}

func checkHeader(h http.Header, name, body string) *fault {
	value, f := singleHeader(h, name)
	if f != nil {
		return f
	}
	if value != body {
		return mismatch("the header " + name + " does not match the body")
	}
	return nil
}

// decodedHeader returns the value of a header that may be encoded.
func decodedHeader(h http.Header, name string) (string, *fault) {
	value, f := singleHeader(h, name)
	if f != nil {
		return "", f
	}
	text, ok := decodeHeader(value)
	if !ok {
		return "", mismatch("the header " + name + " is not encoded as it must be")
	}
	return text, nil
}

func checkName(h http.Header, body []byte) *fault {
	name, f := decodedHeader(h, headerName)
	if f == nil && name != string(body) {
		f = mismatch("the header " + headerName + " does not match the body")
	}
	return f
}

// check compares the header of an annotated argument with the arguments.
func (m *mirror) check(h http.Header, arguments []byte) *fault {
	body := arguments
	for _, name := range m.path {
		body = jsontext.Get(body, name)
	}
	if jsontext.IsNull(body) || jsontext.IsObject(body) || body[0] == '[' {
		if len(h[m.header]) > 0 {
			return mismatch("the header " + m.header + " repeats an argument that is not there")
		}
		return nil
	}
	value, f := decodedHeader(h, m.header)
	if f == nil && !sameValue(value, body) {
		f = mismatch("the header " + m.header + " does not match the body")
	}
	return f
}

// sameValue reports whether a header equals a JSON scalar. Numbers are compared
// by value, so that 42.0 equals 42.
func sameValue(header string, body []byte) bool {
	switch body[0] {
	case '"':
		return header == string(jsontext.Unquote(body))
	case 't', 'f':
		return header == string(body)
	}
	a, okA := number(header)
	b, okB := number(string(body))
	return okA && okB && a == b
}

// maxSafe is the greatest integer below which a float64 represents every
// integer; annotated integers stay within it.
const maxSafe = 1<<53 - 1

// number parses a decimal number that is no larger than maxSafe.
func number(s string) (float64, bool) {
	if strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && !strings.ContainsRune("+-.eE", r) }) {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && math.Abs(f) <= maxSafe
}

// decodeHeader returns the decoded header value: a value between =?base64? and
// ?= is encoded, any other is literal (Value Encoding).
func decodeHeader(value string) (string, bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if encoded, closed := strings.CutSuffix(encoded, "?="); ok && closed {
		decoded, err := base64.StdEncoding.Strict().DecodeString(encoded)
		return string(decoded), err == nil && !strings.ContainsAny(encoded, "\r\n")
	}
	outside := func(r rune) bool { return (r < ' ' || r > '~') && r != '\t' }
	return value, strings.IndexFunc(value, outside) < 0
}

func mismatch(message string) *fault {
	return newFault(codeHeaderMismatch, Malformed, "header mismatch: "+message)
}

// keyMirror marks a property of an input schema that clients mirror in a header
// (2026-07-28 server/tools, x-mcp-header).
const keyMirror = "x-mcp-header"

// mirror is one argument that clients mirror in the header Mcp-Param-NAME.
type mirror struct {
	// header is the canonical name of the header.
	header string
	// path is the path from the arguments to the value.
	path []string
}

// findMirrors returns the annotated properties of an input schema, ordered by
// header. The error names an annotation for which clients would reject the
// whole tool.
func findMirrors(schema []byte) ([]mirror, error) {
	if !strings.Contains(string(schema), keyMirror) {
		return nil, nil
	}
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	var found mirrorFinder
	if err := found.schema(root, nil, true); err != nil {
		return nil, err
	}
	slices.SortFunc(found.mirrors, func(a, b mirror) int { return strings.Compare(a.header, b.header) })
	for i := 1; i < len(found.mirrors); i++ {
		if found.mirrors[i].header == found.mirrors[i-1].header {
			return nil, fmt.Errorf("two properties have the %s of %s", keyMirror, found.mirrors[i].header)
		}
	}
	return found.mirrors, nil
}

type mirrorFinder struct{ mirrors []mirror }

// schema visits one schema. reachable is true for the root and for schemas that
// only "properties" lead to.
func (f *mirrorFinder) schema(value any, path []string, reachable bool) error {
	object, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	if annotation, ok := object[keyMirror]; ok {
		if err := f.annotation(annotation, object["type"], path, reachable); err != nil {
			return err
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		if err := f.keyword(keyword, object[keyword], path, reachable); err != nil {
			return err
		}
	}
	return nil
}

// keyword visits the schemas below one keyword (JSON Schema 2020-12 core
// section 10). It ignores values that are not schemas, such as an enum.
func (f *mirrorFinder) keyword(keyword string, value any, path []string, reachable bool) error {
	switch keyword {
	case "properties":
		return f.named(value, path, reachable)
	case "patternProperties", "$defs", "definitions", "dependentSchemas":
		return f.named(value, path, false)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		list, _ := value.([]any)
		for _, schema := range list {
			if err := f.schema(schema, path, false); err != nil {
				return err
			}
		}
	case "items", "contains", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"propertyNames", "not", "if", "then", "else":
		return f.schema(value, path, false)
	}
	return nil
}

func (f *mirrorFinder) named(value any, path []string, reachable bool) error {
	schemas, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if err := f.schema(schemas[name], append(slices.Clip(path), name), reachable); err != nil {
			return err
		}
	}
	return nil
}

func (f *mirrorFinder) annotation(annotation, typ any, path []string, reachable bool) error {
	name, ok := annotation.(string)
	switch {
	case !ok || !httpheader.IsToken(name):
		return fmt.Errorf("%s must be the rest of a header's name: letters, digits and hyphens", keyMirror)
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s %q must be in a property that only \"properties\" lead to", keyMirror, name)
	case typ != "string" && typ != "integer" && typ != "boolean":
		return fmt.Errorf("%s %q must annotate a string, an integer or a boolean", keyMirror, name)
	}
	if len(f.mirrors) == maxMirrors {
		return errors.New("too many properties have an " + keyMirror)
	}
	f.mirrors = append(f.mirrors, mirror{header: headerParam + canonical(name), path: path})
	return nil
}

// maxMirrors bounds the headers that a client must send for one tool.
const maxMirrors = 64
