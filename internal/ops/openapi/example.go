package openapi

import (
	"math"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// maxExample is the maximum length of an example of the document in a test, in bytes of JSON.
const maxExample = 4 << 10

// fitting returns the first candidate that a schema accepts, or else a value made from the schema.
// ok is false if that does not fit either, for example because of a pattern.
func fitting(s *yaml.Map, candidates ...any) (value any, ok bool) {
	compiled, _ := schema.Compile(appendJSON(nil, s), diag.Range{}, nil)
	if compiled == nil {
		return nil, false
	}
	for _, v := range append(candidates, made(s, deepest)) {
		if v == nil {
			continue
		}
		if raw := appendJSON(nil, v); len(raw) <= maxExample && len(compiled.Validate(raw)) == 0 {
			return v, true
		}
	}
	return nil, false
}

// samples are values of formats.
var samples = map[string]string{
	"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "time": "03:04:05Z", "duration": "P1D",
	"email": "ada@example.com", "idn-email": "ada@example.com", "hostname": "example.com", "idn-hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "00000000-0000-4000-8000-000000000000",
	"uri": "https://example.com/", "uri-reference": "/a", "uri-template": "/a", "iri": "https://example.com/", "iri-reference": "/a",
	"json-pointer": "/a", "relative-json-pointer": "0", "regex": "a",
}

// made returns a value that a schema probably accepts. Objects have only their required members.
func made(v any, levels int) any {
	s, _ := v.(*yaml.Map)
	if s == nil || levels == 0 {
		return "example"
	}
	if list := spec.List(s, "enum"); len(list) > 0 {
		return list[0]
	}
	kind, _ := spec.Member(s, "type").(string)
	if types := spec.List(s, "type"); len(types) > 0 {
		kind, _ = types[0].(string)
	}
	if list := spec.List(s, "anyOf"); len(list) > 0 && kind != "object" {
		return made(list[0], levels-1)
	}
	switch kind {
	case "string":
		return madeText(s)
	case "integer", "number":
		return madeNumber(s)
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		n, _ := spec.Member(s, "minItems").(float64)
		list := make([]any, int(min(max(n, 1), 20)))
		for i := range list {
			list[i] = made(spec.Member(s, "items"), levels-1)
		}
		return list
	case "object":
		return madeObject(s, levels)
	}
	if has(s, "properties") || has(s, "allOf") {
		return madeObject(s, levels)
	}
	return "example"
}

func madeText(s *yaml.Map) string {
	text := samples[spec.Text(s, "format")]
	if pattern := spec.Text(s, "pattern"); pattern != "" {
		text = matching(pattern)
	} else if text == "" {
		text = "example"
	}
	if n, ok := spec.Member(s, "minLength").(float64); ok && float64(len(text)) < n && n <= maxExample {
		text += strings.Repeat("x", int(n)-len(text))
	}
	if n, ok := spec.Member(s, "maxLength").(float64); ok && float64(len(text)) > n {
		text = text[:int(n)]
	}
	return text
}

func madeNumber(s *yaml.Map) float64 {
	n := 1.0
	if low, ok := spec.Member(s, "minimum").(float64); ok {
		n = max(n, math.Ceil(low))
	}
	if low, ok := spec.Member(s, "exclusiveMinimum").(float64); ok {
		n = max(n, math.Floor(low)+1)
	}
	if high, ok := spec.Member(s, "maximum").(float64); ok {
		n = min(n, math.Floor(high))
	}
	if high, ok := spec.Member(s, "exclusiveMaximum").(float64); ok {
		n = min(n, math.Ceil(high)-1)
	}
	return n
}

func madeObject(s *yaml.Map, levels int) any {
	object := &yaml.Map{}
	for _, part := range append([]any{s}, append(spec.List(s, "allOf"), firstOf(spec.List(s, "anyOf"))...)...) {
		properties := spec.Object(part, "properties")
		for _, name := range spec.List(part, "required") {
			name, _ := name.(string)
			if has(object, name) {
				continue
			}
			var property any
			if i := slices.Index(properties.Names, name); i >= 0 {
				property = properties.Values[i]
			}
			set(object, name, made(property, levels-1))
		}
	}
	return object
}

func firstOf(list []any) []any { return list[:min(len(list), 1)] }
