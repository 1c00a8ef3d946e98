package schema

import (
	"encoding/json"
	"math/rand/v2"
)

// generator generates schemas, and values that nearly match them, from few names.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator { return generator{rand.New(rand.NewPCG(seed, 1))} }

func (g generator) one(list ...any) any { return list[g.IntN(len(list))] }

func (g generator) name() string { return g.one("a", "b", "c", "kind").(string) }

func (g generator) scalar() any {
	return g.one(nil, true, false, 0, 1, -1, 2, 5, 1.5, 0.1, -2.5, 10, 1e300, 100, "", "a", "b", "abc", "C-17", "2026-07-28", "é€😀", "kind",
		int64(9007199254740993), json.Number("3.0"), json.Number("1e2"), json.Number("-0.0"))
}

func (g generator) value(depth int) any {
	switch n := g.IntN(10); {
	case depth > 0 && n < 4:
		object := map[string]any{}
		for range g.IntN(4) {
			object[g.name()] = g.value(depth - 1)
		}
		return object
	case depth > 0 && n < 6:
		list := []any{}
		for range g.IntN(5) {
			list = append(list, g.value(depth-1))
		}
		return list
	}
	return g.scalar()
}

// root generates a schema with definitions that may refer to each other.
func (g generator) root() map[string]any {
	s, ok := g.schema(3).(map[string]any)
	if !ok || len(s) == 0 {
		s = map[string]any{"properties": map[string]any{"a": g.schema(2)}}
	}
	s["$defs"] = map[string]any{"x": g.schema(2), "y": g.schema(2)}
	if g.IntN(4) == 0 {
		s["$schema"] = g.one("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema")
		dropConst(s)
	}
	return s
}

// dropConst removes const next to $ref. In draft 07, the other validator does not ignore it.
func dropConst(v any) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			dropConst(inner)
		}
	case map[string]any:
		if _, ok := v["$ref"]; ok {
			delete(v, "const")
		}
		for _, inner := range v {
			dropConst(inner)
		}
	}
}

func (g generator) schema(depth int) any {
	if g.IntN(12) == 0 {
		return g.one(true, false, map[string]any{})
	}
	s := map[string]any{}
	for range 1 + g.IntN(4) {
		g.keyword(s, depth)
	}
	return s
}

func (g generator) schemas(depth int) []any {
	list := []any{}
	for range 1 + g.IntN(3) {
		list = append(list, g.schema(depth))
	}
	return list
}

func (g generator) named(depth int) map[string]any {
	m := map[string]any{}
	for range 1 + g.IntN(3) {
		m[g.name()] = g.schema(depth)
	}
	return m
}

func (g generator) keyword(s map[string]any, depth int) {
	if depth > 0 && g.IntN(2) == 0 {
		g.applicator(s, depth-1)
		return
	}
	switch g.IntN(16) {
	case 0, 1:
		s["type"] = g.one("null", "boolean", "integer", "number", "string", "array", "object")
	case 2:
		s["type"] = []any{g.one("integer", "null", "array"), g.one("string", "object", "number")}
	case 3:
		s["enum"] = []any{map[string]any{g.name(): g.scalar()}, g.one(nil, 0, 1.5, true), g.one("a", "b", "kind", int64(9007199254740993))}
	case 4:
		s["const"] = g.value(1)
	case 5:
		s[g.one("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum").(string)] = g.one(0, 1, 1.5, -1, 0.1, 100, 1e300, int64(9007199254740993))
	case 6:
		s["multipleOf"] = g.one(1, 2, 0.5, 0.1, 3, 1e-8)
	case 7:
		s[g.one("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties").(string)] = g.one(0, 1, 2, 3, json.Number("2.0"))
	case 8:
		s["pattern"] = g.one("^a", "b$", "^C-[0-9]+$", "é", "^.{2}$")
	case 9:
		s["format"] = g.one("date", "email", "uuid", "regex", "unknown", "hostname")
	case 10:
		s["uniqueItems"] = g.one(true, false)
	case 11, 12:
		s["required"] = g.one([]any{"a"}, []any{"b", "kind"}, []any{})
	case 13:
		s["dependentRequired"] = map[string]any{g.name(): []any{g.name()}}
	case 14:
		s["default"] = g.value(2)
	case 15:
		s[g.one("minContains", "maxContains").(string)] = g.one(0, 1, 2)
		s["contains"] = g.schema(0)
	}
}

func (g generator) applicator(s map[string]any, depth int) {
	switch g.IntN(20) {
	case 0, 1, 2, 3:
		s["properties"] = g.named(depth)
	case 4, 5:
		s["additionalProperties"] = g.schema(depth)
	case 6:
		s["patternProperties"] = map[string]any{g.one("^a", "b", ".").(string): g.schema(depth)}
	case 7:
		s["propertyNames"] = g.schema(0)
	case 8, 9:
		s["items"] = g.schema(depth)
	case 10:
		s["prefixItems"] = g.schemas(depth)
	case 11:
		s["allOf"] = g.schemas(depth)
	case 12:
		s[g.one("anyOf", "oneOf").(string)] = g.schemas(depth)
	case 13:
		s["not"] = g.schema(depth)
	case 14:
		s["if"], s["then"] = g.schema(depth), g.schema(depth)
	case 15:
		s["if"], s["else"] = g.schema(depth), g.schema(depth)
	case 16:
		s[g.one("dependentSchemas", "dependencies").(string)] = g.named(depth)
	case 17:
		s["$ref"] = g.one("#/$defs/x", "#/$defs/y", "#")
	case 18, 19:
		s[g.one("unevaluatedProperties", "unevaluatedItems").(string)] = g.one(false, g.schema(0))
	}
}
