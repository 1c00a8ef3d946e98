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
func (c *schemas) fitting(s *yaml.Map, candidates ...any) (value any, ok bool) {
	compiled := c.compiled[s]
	if compiled == nil {
		compiled, _ = schema.Compile(appendJSON(nil, s), diag.Range{}, nil)
	}
	if compiled == nil {
		return nil, false
	}
	for _, v := range append(candidates, (&maker{left: maxMade}).made(s, maxLevels)) {
		if v == nil || !isSmall(v) {
			continue
		}
		if raw := appendJSON(nil, v); len(raw) <= maxExample && len(compiled.Validate(raw)) == 0 {
			return v, true
		}
	}
	return nil, false
}

// isSmall reports whether the JSON of a value has at most about maxExample bytes.
func isSmall(v any) bool {
	left := maxExample
	spend(v, &left)
	return left >= 0
}

func spend(v any, left *int) {
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case []any:
		for i := 0; i < len(v) && *left >= 0; i++ {
			spend(v[i], left)
		}
	case *yaml.Map:
		for i := 0; i < len(v.Names) && *left >= 0; i++ {
			*left -= len(v.Names[i])
			spend(v.Values[i], left)
		}
	}
	*left--
}

// samples are values of formats.
var samples = map[string]string{
	"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "time": "03:04:05Z", "duration": "P1D",
	"email": "ada@example.com", "idn-email": "ada@example.com", "hostname": "example.com", "idn-hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "00000000-0000-4000-8000-000000000000",
	"uri": "https://example.com/", "uri-reference": "/a", "uri-template": "/a", "iri": "https://example.com/", "iri-reference": "/a",
	"json-pointer": "/a", "relative-json-pointer": "0", "regex": "a",
}

// maxMade is the maximum number of values in a value that is made from a schema.
const maxMade = 2_000

// maker makes a value from a schema.
type maker struct{ left int }

// made returns a value that a schema probably accepts. Objects have only their required members.
func (m *maker) made(v any, levels int) any {
	s, _ := v.(*yaml.Map)
	if m.left--; s == nil || levels == 0 || m.left < 0 {
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
		return m.made(list[0], levels-1)
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
			list[i] = m.made(spec.Member(s, "items"), levels-1)
		}
		return list
	case "object":
		return m.madeObject(s, levels)
	}
	if has(s, "properties") || has(s, "allOf") {
		return m.madeObject(s, levels)
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

func (m *maker) madeObject(s *yaml.Map, levels int) any {
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
			set(object, name, m.made(property, levels-1))
		}
	}
	return object
}

func firstOf(list []any) []any { return list[:min(len(list), 1)] }
