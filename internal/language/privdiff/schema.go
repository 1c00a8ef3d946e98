package privdiff

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// schemaWriter adds the facts of a JSON Schema to a subject.
type schemaWriter struct {
	*subject
	// what is "input" or "output".
	what   string
	origin definition.Origins
}

// schema adds the values that a JSON Schema accepts. A nil schema adds nothing.
func (s *subject) schema(what string, raw json.RawMessage, origin definition.Origins) {
	if raw == nil {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var node any
	if err := decoder.Decode(&node); err != nil {
		s.addOption(grant.Opaque, what+" schema", string(raw))
		return
	}
	(&schemaWriter{s, what, origin}).node(node, "", "")
}

// node adds the keywords of a subschema for the value at path.
func (s *schemaWriter) node(node any, path, pointer string) {
	schema, ok := node.(map[string]any)
	if !ok {
		s.at(path, pointer, grant.Fact{Option: "schema", Direction: grant.Opaque, Value: encode(node)})
		return
	}
	open := schema["additionalProperties"] != false
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		s.keyword(keyword, schema[keyword], path, pointer+"/"+keyword, open)
	}
	if _, listed := schema["enum"]; !listed {
		s.at(path, pointer, grant.Fact{Option: "enum", Value: "*", Pattern: true})
	}
	for _, keyword := range slices.Sorted(maps.Keys(amounts)) {
		if _, written := schema[keyword]; !written {
			s.at(path, pointer, grant.Fact{Option: keyword, Direction: grant.Limit, Value: "no bound", Amount: math.Inf(1)})
		}
	}
}

// amounts are the keywords that bound an amount: 1 for upper limits, -1 for lower limits, where
// less is more privilege.
var amounts = map[string]float64{
	"maximum": 1, "exclusiveMaximum": 1, "maxLength": 1, "maxItems": 1, "maxProperties": 1,
	"minimum": -1, "exclusiveMinimum": -1, "minLength": -1, "minItems": -1, "minProperties": -1,
}

// keyword adds one keyword. open means that the object may have other members than those named.
func (s *schemaWriter) keyword(keyword string, value any, path, pointer string, open bool) {
	fact := grant.Fact{Option: keyword, Value: plain(value)}
	if sign := amounts[keyword]; sign != 0 {
		number, _ := value.(json.Number)
		amount, err := strconv.ParseFloat(string(number), 64)
		if err != nil {
			amount = unknown
		}
		fact.Direction, fact.Amount = grant.Limit, sign*amount
		s.at(path, pointer, fact)
		return
	}
	switch keyword {
	case "properties":
		s.properties(value, path, pointer, open)
	case "items":
		s.at(path+"[]", pointer, grant.Fact{Direction: grant.Restricts})
		s.node(value, path+"[]", pointer)
	case "required":
		s.required(value, path, pointer)
	case "enum":
		s.enum(value, path, pointer)
	case "additionalProperties":
		s.others(value, path, pointer)
	case "pattern", "format", "uniqueItems":
		fact.Direction = grant.Restricts
		s.at(path, pointer, fact)
	case "title", "description", "examples", "default", "$schema", "$comment", "x-mcp-header":
		fact.Direction = grant.Neutral
		s.at(path, pointer, fact)
	default:
		fact.Direction = grant.Opaque
		s.at(path, pointer, fact)
	}
}

// others adds the schema of unnamed members.
func (s *schemaWriter) others(value any, path, pointer string) {
	switch value {
	case true:
	case false:
		s.at(path, pointer, grant.Fact{Option: "rejecting other members", Direction: grant.Restricts})
	default:
		s.at(path, pointer, grant.Fact{Option: "other members", Direction: grant.Opaque, Value: encode(value)})
	}
}

// properties adds the members of an object. If other members are rejected, a new member of an
// output reveals more, and a new member of an input only affects the script. If they are
// accepted, naming a member of an input only constrains it, and naming one of an output describes
// what the tool could return before.
func (s *schemaWriter) properties(value any, path, pointer string, open bool) {
	members, _ := value.(map[string]any)
	direction := grant.Neutral
	switch {
	case open && s.what == "output":
		direction = grant.Describes
	case open:
		direction = grant.Restricts
	case s.what == "output":
		direction = grant.Increases
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		inner := member(path, name)
		at := pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		s.at(inner, at, grant.Fact{Direction: direction})
		s.node(members[name], inner, at)
	}
}

// required marks required members.
func (s *schemaWriter) required(value any, path, pointer string) {
	names, _ := value.([]any)
	for _, name := range names {
		text, _ := name.(string)
		s.at(member(path, text), pointer, grant.Fact{Option: "required", Direction: grant.Restricts})
	}
}

// enum adds the allowed values.
func (s *schemaWriter) enum(value any, path, pointer string) {
	elements, _ := value.([]any)
	for _, element := range elements {
		s.at(path, pointer, grant.Fact{Option: "enum", Value: plain(element)})
	}
}

// member returns the unique path of an object member.
func member(path, name string) string {
	return strings.TrimPrefix(path+"."+inPath.Replace(name), ".")
}

// inPath escapes the special characters of a path.
var inPath = strings.NewReplacer("~", "~0", ".", "~1", "[", "~2", `"`, "~3")

// at adds a fact about the value at a path.
func (s *schemaWriter) at(path, pointer string, f grant.Fact) {
	f.Part = s.what
	if path != "" {
		f.Part += ` "` + path + `"`
	}
	where, ok := s.origin.At(pointer)
	for ; !ok && pointer != ""; where, ok = s.origin.At(pointer) {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	if !ok {
		where = s.where
	}
	s.add(f, where)
}

// plain returns text verbatim and other values as JSON. Text that is valid JSON is also
// encoded, so that results are unique.
func plain(value any) string {
	if text, ok := value.(string); ok && !json.Valid([]byte(text)) {
		return text
	}
	return encode(value)
}
