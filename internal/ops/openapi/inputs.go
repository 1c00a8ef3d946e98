package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/yaml"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// writeInputs writes input blocks, or an input_schema if blocks cannot express a schema.
func (r *request) writeInputs(b *strings.Builder) {
	var blocks strings.Builder
	expressible := true
	for _, in := range r.inputs {
		expressible = expressible && writeBlock(&blocks, "input", in.name, in.schema, in.required, 2)
	}
	if expressible {
		b.WriteString(blocks.String())
		return
	}
	whole := typed("object")
	properties, required := &yaml.Map{}, []any{}
	for _, in := range r.inputs {
		set(properties, in.name, in.schema)
		if in.required {
			required = append(required, in.name)
		}
	}
	set(whole, "properties", properties)
	if len(required) > 0 {
		set(whole, "required", required)
	}
	set(whole, "additionalProperties", false)
	fmt.Fprintf(b, "\n  input_schema = <<JSON\n%s\nJSON\n", pretty(whole))
}

// hclNames are the arguments of an input for keywords of JSON Schema.
var hclNames = map[string]string{
	"format": "format", "pattern": "pattern", "minimum": "min", "maximum": "max", "minLength": "min_length", "maxLength": "max_length",
	"minItems": "min_items", "maxItems": "max_items", "uniqueItems": "unique", "enum": "enum",
}

// keywordsOf are the keywords that each type takes.
var keywordsOf = map[string][]string{
	"string":  {"format", "pattern", "minLength", "maxLength", "enum"},
	"integer": {"minimum", "maximum", "enum"},
	"number":  {"minimum", "maximum", "enum"},
	"boolean": {},
	"array":   {"minItems", "maxItems", "uniqueItems"},
	"object":  {},
}

// writeBlock writes an input or field block. It returns false if a block cannot express the schema.
func writeBlock(b *strings.Builder, kind, name string, s *yaml.Map, required bool, level int) bool {
	if level > 8 {
		return false
	}
	margin := strings.Repeat(" ", level)
	if kind == "input" {
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "%s%s %s {\n", margin, kind, tooltest.QuoteHCL(name))
	t, _ := spec.Member(s, "type").(string)
	switch {
	case t == "" && !slices.ContainsFunc(s.Names, func(name string) bool { return name != "description" }):
		fmt.Fprintf(b, "%s  type = any\n", margin)
	case t == "object" && has(s, "properties"):
	case t == "object" && !has(s, "required") && spec.Member(s, "additionalProperties") == nil:
		fmt.Fprintf(b, "%s  type = map(any)\n", margin)
	case t == "array":
		items, _ := spec.Member(s, "items").(*yaml.Map)
		of := "any"
		if items != nil && len(items.Names) > 0 {
			if !scalar(items) || slices.ContainsFunc(items.Names, func(name string) bool { return name != "type" && name != "description" }) {
				return false
			}
			of = hclType(spec.Text(items, "type"))
		}
		fmt.Fprintf(b, "%s  type = list(%s)\n", margin, of)
	case scalar(s):
		fmt.Fprintf(b, "%s  type = %s\n", margin, hclType(t))
	default:
		return false
	}
	fields := &yaml.Map{}
	for i, keyword := range s.Names {
		switch {
		case keyword == "type", keyword == "required" && t == "object", keyword == "additionalProperties" && s.Values[i] == false && t == "object", keyword == "items" && t == "array":
		case keyword == "description":
			text, _ := s.Values[i].(string)
			fmt.Fprintf(b, "%s  description = %s\n", margin, tooltest.QuoteHCL(text))
		case keyword == "properties" && t == "object":
			fields, _ = s.Values[i].(*yaml.Map)
		case slices.Contains(keywordsOf[t], keyword):
			fmt.Fprintf(b, "%s  %s = %s\n", margin, hclNames[keyword], tooltest.ValueHCL(appendJSON(nil, s.Values[i])))
		default:
			return false
		}
	}
	if !required {
		fmt.Fprintf(b, "%s  required = false\n", margin)
	}
	for i, name := range fields.Names {
		if !word.MatchString(name) || len(name) > maxIdentifier {
			return false
		}
		inner, _ := fields.Values[i].(*yaml.Map)
		if !writeBlock(b, "field", name, inner, slices.Contains(spec.List(s, "required"), any(name)), level+2) {
			return false
		}
	}
	for _, name := range spec.List(s, "required") {
		if text, _ := name.(string); t == "object" && !has(fields, text) {
			return false
		}
	}
	fmt.Fprintf(b, "%s}\n", margin)
	return true
}

// hclType returns the name of a type of JSON Schema in HCL.
func hclType(t string) string {
	if t == "boolean" {
		return "bool"
	}
	return t
}
