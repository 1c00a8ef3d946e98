package toolprompt

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// schemas generates JSON that resembles schemas.
type schemas struct{ *rand.Rand }

var (
	strangeTexts = []string{
		"", "a", "b", "name", "*/", "*/ evil() /*", "\n", "\ndeclare const evil: {", "\"", "\\", "\\\"", "`", "```\n", "${evil}", "//", "a b", "ünder", "\u202e", "\u2028x", "\x00", "😀", "\uFFFD",
		"new", "get", "set", "readonly", "static", "async", "constructor", "__proto__", "in", "keyof", "infer", "is", "asserts", "unique", "type", "this", "accessor", "declare", "1a", "$", "_", "[x]", "x?", "x: y; z", "()", "<T>",
	}
	strangeRefs = []string{"#", "#/$defs/a", "#/$defs/b", "#/$defs/a b", "#/$defs/a%20b", "#/properties/a", "#/anyOf/0", "#/$defs/a/properties/b", "#b", "#/$defs", "https://example.com/", "##", "#/%", "#/" + strings.Repeat("a/", 99)}
	strangeRaw  = []string{"0", "-1", "1", "3", "1e5", "1.5", "-0", "1e999", "99999999999999999999999999", "true", "false", "null", "[]", "{}", "[[[]]]", `{"a":{"b":[1]}}`}
	typeWords   = []string{"string", "number", "integer", "boolean", "null", "object", "array", "evil"}
	keywords    = strings.Fields(`type type type properties properties properties items items prefixItems additionalProperties patternProperties required enum const anyOf oneOf allOf $ref $ref
		$defs definitions $anchor $id description title default examples pattern format minimum maximum exclusiveMinimum minLength maxLength minItems maxItems minProperties uniqueItems deprecated nullable contentEncoding not if additionalItems $dynamicRef unheard`)
)

func pick[T any](s schemas, list []T) T { return list[s.IntN(len(list))] }

func (s schemas) text() string {
	text, _ := json.Marshal(pick(s, strangeTexts))
	return string(text)
}

// value generates JSON that may not be a schema.
func (s schemas) value() string {
	if s.IntN(3) == 0 {
		return s.text()
	}
	return pick(s, strangeRaw)
}

func (s schemas) list(item func() string) string {
	items := make([]string, s.IntN(4))
	for i := range items {
		items[i] = item()
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (s schemas) members(name, item func() string) string {
	items := make([]string, s.IntN(5))
	for i := range items {
		items[i] = name() + ":" + item()
	}
	return "{" + strings.Join(items, ",") + "}"
}

func (s schemas) schema(depth int) string {
	if depth == 0 || s.IntN(9) == 0 {
		return pick(s, []string{"true", "false", "{}", s.value(), `{"type":"` + pick(s, typeWords) + `"}`})
	}
	keywords := make([]string, s.IntN(5))
	for i := range keywords {
		keywords[i] = s.keyword(depth - 1)
	}
	return "{" + strings.Join(keywords, ",") + "}"
}

// keyword generates a keyword, usually with a matching value.
func (s schemas) keyword(depth int) string {
	name := pick(s, keywords)
	inner := func() string { return s.schema(depth) }
	quoted := func(list []string) string { return fmt.Sprintf("%q", pick(s, list)) }
	var value string
	switch name {
	case "properties", "patternProperties", "$defs", "definitions":
		value = s.members(s.text, inner)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		value = s.list(inner)
	case "items", "additionalProperties", "additionalItems", "not", "if":
		value = inner()
	case "enum", "examples":
		value = s.list(s.value)
	case "required":
		value = s.list(s.text)
	case "type":
		value = pick(s, []string{quoted(typeWords), s.list(func() string { return quoted(typeWords) })})
	case "$ref", "$dynamicRef":
		value = quoted(strangeRefs)
	default:
		value = s.value()
	}
	if s.IntN(30) == 0 {
		value = s.value()
	}
	return `"` + name + `":` + value
}

// tool generates a tool with random texts.
func (s schemas) tool() Tool {
	text := func() string { return pick(s, strangeTexts) + pick(s, strangeTexts) }
	input := `{"type":"object","properties":{"a":` + s.schema(5) + `,` + s.text() + `:` + s.schema(4) + `},"$defs":{"a":` + s.schema(3) + `,"b":` + s.schema(3) + `,"a b":` + s.schema(2) + `}}`
	return Tool{Name: text(), Group: pick(s, []string{"", "g", "x.y"}), Member: pick(s, strangeTexts), Title: text(), Description: text() + "\n" + text(), Input: json.RawMessage(input), Output: json.RawMessage(s.schema(6))}
}

// holdDeclaration checks the invariants of a declaration.
func holdDeclaration(t *testing.T, tool Tool, d Detail) {
	t.Helper()
	declared := Declare([]Tool{tool}, d)
	if problem := injected(declared, 1); problem != "" {
		t.Errorf("%s was put in:\n%s", problem, declared)
	}
	if len(declared) > 4*maxDeclaration+8*len(tool.Name+tool.Group+tool.Member) {
		t.Errorf("a declaration has %d bytes", len(declared))
	}
	if problem := mistakes(declared); problem != "" && !tooMuch.MatchString(problem) {
		t.Errorf("%s\n%s", problem, declared)
	}
}

func TestDeclare_randomTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	s := schemas{rand.New(rand.NewPCG(3, 4))}
	for range 1000 {
		tool := s.tool()
		holdDeclaration(t, tool, Full)
		if t.Failed() {
			t.Fatalf("%s", tool.Input)
		}
	}
}
