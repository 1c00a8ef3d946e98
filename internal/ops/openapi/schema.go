package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/language/schema"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// Bounds of the schemas of one tool. A larger schema loses its deepest levels.
const (
	maxRequest      = 24 << 10 // bytes
	maxResponse     = 8 << 10  // bytes
	maxSchemaNodes  = 1_000
	maxEnum         = 200
	maxNote         = 500       // bytes of the description of a value
	maxPattern      = 1_000     // bytes
	maxWork         = 1_000_000 // subschemas that are read for all tools of a document
	maxLevels       = 12
	maxSafeInteger  = 1<<53 - 1
	maxNameOfMember = 200
)

// formats are the formats that mcpd validates.
var formats = strings.Fields("date date-time time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference uri-template iri iri-reference uuid json-pointer relative-json-pointer regex")

// schemas converts the schemas of a document to JSON Schema 2020-12.
type schemas struct {
	document *spec.Document
	work     int // subschemas that were read
	maxWork  int
	// compiled are the compiled results of convert for the current tool.
	compiled map[*yaml.Map]*schema.Schema
	// response drops what a server may not observe: enums, formats and bounds.
	response bool
	depth    int      // levels that are left
	nodes    int      // subschemas of the current schema
	within   []string // references that the current subschema is part of
}

// convert returns the JSON Schema of a request or a response. A schema that is too large, or that
// mcpd does not compile, loses detail.
func (c *schemas) convert(v any, response bool) any {
	limit := maxRequest
	if response {
		limit = maxResponse
	}
	for levels := maxLevels; levels > 0; levels -= 2 {
		c.response, c.depth, c.nodes, c.within = response, levels, 0, nil
		converted := c.schema(v)
		if c.work > c.maxWork {
			break // the import ends
		}
		raw := appendJSON(nil, converted)
		if len(raw) > limit || c.nodes > maxSchemaNodes {
			continue
		}
		if compiled, _ := schema.Compile(raw, diag.Range{}, nil); compiled != nil {
			c.compiled[converted] = compiled
			return converted
		}
	}
	return &yaml.Map{}
}

func anything() *yaml.Map { return &yaml.Map{} }

// set adds or replaces a member.
func set(m *yaml.Map, name string, value any) {
	if i := slices.Index(m.Names, name); i >= 0 {
		m.Values[i] = value
		return
	}
	m.Names, m.Values = append(m.Names, name), append(m.Values, value)
}

// drop removes a member.
func drop(m *yaml.Map, name string) {
	if i := slices.Index(m.Names, name); i >= 0 {
		m.Names, m.Values = slices.Delete(m.Names, i, i+1), slices.Delete(m.Values, i, i+1)
	}
}

func (c *schemas) schema(v any) *yaml.Map {
	c.nodes++
	c.work++
	if c.depth == 0 || c.nodes > maxSchemaNodes || c.work > c.maxWork {
		return anything()
	}
	c.depth--
	defer func() { c.depth++ }()
	if m, ok := v.(*yaml.Map); ok && len(m.Names) > spec.MaxMembers {
		return anything()
	}
	note := ""
	if reference := spec.Text(v, "$ref"); reference != "" {
		if slices.Contains(c.within, reference) {
			return anything()
		}
		c.within = append(c.within, reference)
		defer func() { c.within = c.within[:len(c.within)-1] }()
		note = spec.Text(v, "description")
		target, err := c.document.Resolve(v)
		if err != nil {
			return anything()
		}
		v = target
	}
	from, _ := v.(*yaml.Map)
	if from == nil || len(from.Names) > spec.MaxMembers {
		return anything()
	}
	to := anything()
	c.types(from, to)
	if note == "" {
		note = spec.Text(from, "description")
	}
	if value := spec.Member(from, "default"); value != nil && !c.response && isSmall(value) {
		if text := appendJSON(nil, value); len(text) <= 100 {
			note = strings.TrimSpace(note + " Default: " + string(text))
		}
	}
	if note = words(note, maxNote); note != "" {
		set(to, "description", note)
	}
	if !c.response {
		c.bounds(from, to)
	}
	c.members(from, to)
	c.combined(from, to)
	return to
}

// types writes the types, and the values of an enum.
func (c *schemas) types(from, to *yaml.Map) {
	var types []any
	known := []any{"string", "number", "integer", "boolean", "object", "array", "null"}
	named := spec.List(from, "type")
	if named == nil {
		named = []any{spec.Member(from, "type")}
	}
	for _, t := range named[:min(len(named), len(known))] {
		if slices.Contains(known, t) && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if types == nil && len(spec.Object(from, "properties").Names) > 0 {
		types = []any{"object"}
	}
	if types == nil && spec.Member(from, "items") != nil {
		types = []any{"array"}
	}
	nullable := spec.Flag(from, "nullable") && types != nil
	if nullable && !slices.Contains(types, any("null")) {
		types = append(types, "null")
	}
	switch len(types) {
	case 0:
	case 1:
		set(to, "type", types[0])
	default:
		set(to, "type", types)
	}
	if c.response {
		return
	}
	list := spec.List(from, "enum")
	if v := spec.Member(from, "const"); v != nil {
		list = []any{v}
	}
	c.work += min(len(list), maxEnum)
	if len(list) == 0 || len(list) > maxEnum || !slices.ContainsFunc(list, func(v any) bool { return v != nil }) {
		return
	}
	var unique []any
	for _, v := range list {
		if _, isList := v.([]any); isList {
			return
		}
		if _, isObject := v.(*yaml.Map); isObject || !isSmall(v) {
			return
		}
		if len(types) > 0 && !slices.Contains(types, any(typeOf(v))) && !(typeOf(v) == "integer" && slices.Contains(types, any("number"))) {
			return // YAML reads words such as no as another type
		}
		if !slices.Contains(unique, v) {
			unique = append(unique, v)
		}
	}
	if nullable && !slices.Contains(unique, nil) {
		unique = append(unique, nil)
	}
	set(to, "enum", unique)
}

// typeOf returns the JSON type of a value.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// bounds copies the limits of numbers, strings and lists.
func (c *schemas) bounds(from, to *yaml.Map) {
	if has(to, "enum") {
		return
	}
	for _, name := range []string{"minimum", "maximum"} {
		exclusive := "exclusive" + strings.ToUpper(name[:1]) + name[1:]
		limit, ok := safeNumber(spec.Member(from, name))
		if ok && spec.Flag(from, exclusive) {
			set(to, exclusive, limit)
		} else if ok {
			set(to, name, limit)
		}
		if limit, ok := safeNumber(spec.Member(from, exclusive)); ok {
			set(to, exclusive, limit)
		}
	}
	for _, name := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		if n, ok := spec.Member(from, name).(float64); ok && n >= 0 && n <= math.MaxInt32 && n == math.Trunc(n) {
			set(to, name, n)
		}
	}
	for _, pair := range [][2]string{{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"}} {
		low, _ := spec.Member(to, pair[0]).(float64)
		if high, ok := spec.Member(to, pair[1]).(float64); ok && has(to, pair[0]) && low > high { // no value fits
			drop(to, pair[0])
			drop(to, pair[1])
		}
	}
	if spec.Flag(from, "uniqueItems") {
		set(to, "uniqueItems", true)
	}
	if format := spec.Text(from, "format"); slices.Contains(formats, format) && spec.Text(from, "type") == "string" {
		set(to, "format", format)
	}
	if pattern := spec.Text(from, "pattern"); pattern != "" && len(pattern) <= maxPattern {
		cost := patternCost(pattern)
		c.work += cost // rejecting a pattern takes as long
		if cost <= maxPatternCost {
			set(to, "pattern", pattern)
		}
	}
}

func safeNumber(v any) (float64, bool) {
	n, ok := v.(float64)
	return n, ok && math.Abs(n) <= maxSafeInteger
}

func has(m *yaml.Map, name string) bool { return slices.Contains(m.Names, name) }

// members writes the schemas of members and items.
func (c *schemas) members(from, to *yaml.Map) {
	if items := spec.Member(from, "items"); items != nil {
		set(to, "items", c.schema(items))
	}
	properties := spec.Object(from, "properties")
	if len(properties.Names) > maxSchemaNodes {
		c.nodes = maxSchemaNodes + 1
		return
	}
	kept := &yaml.Map{}
	hidden := map[string]bool{}
	for i, name := range properties.Names {
		p, err := c.document.Resolve(properties.Values[i])
		if err != nil || len(name) > maxNameOfMember {
			continue
		}
		if !c.response && spec.Flag(p, "readOnly") || c.response && spec.Flag(p, "writeOnly") {
			hidden[name] = true
			continue
		}
		kept.Names, kept.Values = append(kept.Names, name), append(kept.Values, c.schema(properties.Values[i]))
	}
	if len(kept.Names) > 0 {
		set(to, "properties", kept)
	}
	var required []any
	list, seen := spec.List(from, "required"), map[string]bool{}
	c.work += len(list)
	for _, name := range list {
		if text, ok := name.(string); ok && !hidden[text] && !seen[text] && len(text) <= maxNameOfMember && len(required) < maxSchemaNodes {
			required, seen[text] = append(required, name), true
		}
	}
	if len(required) > 0 {
		set(to, "required", required)
	}
	switch additional := spec.Member(from, "additionalProperties").(type) {
	case bool:
		if !additional && !c.response && !has(from, "patternProperties") && !has(from, "allOf") {
			set(to, "additionalProperties", false)
		}
	case *yaml.Map:
		if len(additional.Names) > 0 && !has(from, "patternProperties") {
			set(to, "additionalProperties", c.schema(additional))
		}
	}
}

// combined writes allOf, merged if possible, and the alternatives. Alternatives may overlap,
// because they have lost detail.
func (c *schemas) combined(from, to *yaml.Map) {
	parts := spec.List(from, "allOf")
	for _, part := range parts[:min(len(parts), maxEnum)] {
		p := c.schema(part)
		if spec.Member(p, "additionalProperties") == false {
			drop(p, "additionalProperties")
		}
		if !merge(to, p) {
			all, _ := spec.Member(to, "allOf").([]any)
			set(to, "allOf", append(all, p))
		}
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		list := spec.List(from, name)
		if len(list) == 0 || len(list) > maxEnum {
			continue
		}
		var parts []any
		for _, part := range list {
			parts = append(parts, c.schema(part))
		}
		if spec.Flag(from, "nullable") && !has(to, "type") {
			null := anything()
			set(null, "type", "null")
			parts = append(parts, null)
		}
		if has(to, "anyOf") {
			one := anything()
			set(one, "anyOf", parts)
			all, _ := spec.Member(to, "allOf").([]any)
			set(to, "allOf", append(all, one))
			continue
		}
		set(to, "anyOf", parts)
	}
}

// merge adds the members of an object schema to another one. It returns false if that would change
// the meaning.
func merge(to, part *yaml.Map) bool {
	for i, name := range part.Names {
		switch name {
		case "description":
		case "properties":
			own := spec.Object(to, "properties")
			for j, property := range spec.Object(part, "properties").Names {
				if k := slices.Index(own.Names, property); k >= 0 && string(appendJSON(nil, own.Values[k])) != string(appendJSON(nil, spec.Object(part, "properties").Values[j])) {
					return false
				}
			}
		case "required":
		default:
			if has(to, name) && string(appendJSON(nil, spec.Member(to, name))) != string(appendJSON(nil, part.Values[i])) {
				return false
			}
			if name == "anyOf" || name == "allOf" {
				return false
			}
		}
	}
	for i, name := range part.Names {
		switch value := part.Values[i]; name {
		case "properties":
			own := &yaml.Map{Names: slices.Clone(spec.Object(to, name).Names), Values: slices.Clone(spec.Object(to, name).Values)}
			for j, property := range value.(*yaml.Map).Names {
				set(own, property, value.(*yaml.Map).Values[j])
			}
			set(to, name, own)
		case "required":
			all := slices.Clone(spec.List(to, name))
			for _, one := range value.([]any) {
				if !slices.Contains(all, one) {
					all = append(all, one)
				}
			}
			set(to, name, all)
		default:
			if !has(to, name) {
				set(to, name, value)
			}
		}
	}
	return true
}

// words returns text of the document for models and people: no invisible characters, and at most
// limit bytes.
func words(text string, limit int) string {
	if len(text) > 8*limit {
		text = strings.ToValidUTF8(text[:8*limit], "")
	}
	return safetext.Prompt("", strings.ToValidUTF8(text, "\ufffd"), limit)
}

// appendJSON appends the JSON of a value of the document. No $ is followed by a brace, so that the
// JSON can be the text of a heredoc, and invisible characters are escaped.
func appendJSON(out []byte, v any) []byte { return appendValue(out, v, appendHeredoc) }

// appendValue appends the JSON of a value, with strings as text appends them.
func appendValue(out []byte, v any, text func(out []byte, s string) []byte) []byte {
	switch v := v.(type) {
	case *yaml.Map:
		out = append(out, '{')
		for i, name := range v.Names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(text(out, name), ':')
			out = appendValue(out, v.Values[i], text)
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, item, text)
		}
		return append(out, ']')
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e21 {
			return strconv.AppendFloat(out, v, 'f', -1, 64)
		}
		return strconv.AppendFloat(out, v, 'g', -1, 64)
	case string:
		return text(out, v)
	}
	plain, _ := json.Marshal(v) // nil or a boolean
	return append(out, plain...)
}

func appendHeredoc(out []byte, s string) []byte {
	return append(out, escapeTemplates.Replace(quote(s))...)
}

var escapeTemplates = strings.NewReplacer("${", `\u0024{`, "%{", `\u0025{`)

// quote returns a string literal of JavaScript and JSON on one line. The reader of a file sees all
// characters: those that are invisible or change the direction of text are escaped.
func quote(s string) string {
	quoted, _ := json.Marshal(s) // a string always encodes
	if !bytes.ContainsFunc(quoted, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return string(quoted)
	}
	var b strings.Builder
	for _, r := range string(quoted) {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// stringify returns the JSON of a value as JSON.stringify of JavaScript writes it.
func stringify(v any) string {
	return string(appendValue(nil, v, func(out []byte, s string) []byte {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(s) // a string always encodes
		return append(out, lineSeparators.Replace(strings.TrimSuffix(b.String(), "\n"))...)
	}))
}

// lineSeparators are escapes that only Go writes. A backslash before them is part of the text.
var lineSeparators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")
