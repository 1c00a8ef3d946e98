package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// valueKind is the required form of the value of a keyword.
type valueKind int

const (
	kindAny          valueKind = iota
	kindSchema                 // a schema
	kindSchemas                // an array of schemas, not empty
	kindSchemaMap              // an object of schemas
	kindSchemaOrList           // a schema, or an array of them before draft 2020-12
	kindDependencies           // an object of schemas and lists of names
	kindCount                  // an integer that is not negative
	kindNumber
	kindStep    // a number above zero
	kindLimit   // a number, or in draft 4 a boolean
	kindString  // a string
	kindPattern // a string that is a regular expression
	kindFormat  // a string that names a format
	kindBool    // a boolean
	kindNames   // an array of different strings
	kindNamesMap
	kindType // the name of a type, or an array of them
	aList
)

// keyword is a member of a schema with a meaning.
type keyword struct {
	kind valueKind
	// inPlace means that its schemas apply to the value itself.
	inPlace bool
	// since is the first dialect with the keyword, and until the last; zero means any.
	since, until dialect
}

// keywords are the keywords of all dialects.
var keywords = map[string]keyword{
	"$schema": {kind: kindString}, "$id": {kind: kindString, since: draft6}, "id": {kind: kindString, until: draft4},
	"$ref": {kind: kindString}, "$anchor": {kind: kindString, since: draft2019}, "$comment": {kind: kindString}, "$vocabulary": {},
	"$dynamicRef": {kind: kindString, since: draft2020}, "$dynamicAnchor": {kind: kindString, since: draft2020},
	"$recursiveRef": {kind: kindString, since: draft2019}, "$recursiveAnchor": {kind: kindBool, since: draft2019},
	"$defs": {kind: kindSchemaMap}, "definitions": {kind: kindSchemaMap},

	"allOf": {kind: kindSchemas, inPlace: true}, "anyOf": {kind: kindSchemas, inPlace: true}, "oneOf": {kind: kindSchemas, inPlace: true},
	"not": {kind: kindSchema, inPlace: true}, "if": {kind: kindSchema, inPlace: true, since: draft7},
	"then": {kind: kindSchema, inPlace: true, since: draft7}, "else": {kind: kindSchema, inPlace: true, since: draft7},
	"dependentSchemas": {kind: kindSchemaMap, inPlace: true, since: draft2019}, "dependencies": {kind: kindDependencies, inPlace: true},

	"properties": {kind: kindSchemaMap}, "patternProperties": {kind: kindSchemaMap},
	"additionalProperties": {kind: kindSchema}, "propertyNames": {kind: kindSchema, since: draft6},
	"unevaluatedProperties": {kind: kindSchema, since: draft2019}, "unevaluatedItems": {kind: kindSchema, since: draft2019},
	"items": {kind: kindSchemaOrList}, "prefixItems": {kind: kindSchemas, since: draft2020},
	"additionalItems": {kind: kindSchema, until: draft2019}, "contains": {kind: kindSchema, since: draft6},
	"contentSchema": {kind: kindSchema, since: draft2019},

	"type": {kind: kindType}, "enum": {kind: aList}, "const": {since: draft6},
	"multipleOf": {kind: kindStep}, "minimum": {kind: kindNumber}, "maximum": {kind: kindNumber},
	"exclusiveMinimum": {kind: kindLimit}, "exclusiveMaximum": {kind: kindLimit},
	"minLength": {kind: kindCount}, "maxLength": {kind: kindCount}, "pattern": {kind: kindPattern}, "format": {kind: kindFormat},
	"minItems": {kind: kindCount}, "maxItems": {kind: kindCount}, "uniqueItems": {kind: kindBool},
	"minContains": {kind: kindCount, since: draft2019}, "maxContains": {kind: kindCount, since: draft2019},
	"minProperties": {kind: kindCount}, "maxProperties": {kind: kindCount}, "required": {kind: kindNames},
	"dependentRequired": {kind: kindNamesMap, since: draft2019},

	"title": {kind: kindString}, "description": {kind: kindString}, "default": {}, "examples": {kind: aList}, "deprecated": {kind: kindBool},
	"readOnly": {kind: kindBool}, "writeOnly": {kind: kindBool},
	"contentEncoding": {kind: kindString}, "contentMediaType": {kind: kindString},
}

// lookup returns a keyword of a dialect by name.
func (d dialect) lookup(name string) (keyword, bool) {
	k, ok := keywords[name]
	if !ok || d < k.since || k.until != 0 && d > k.until {
		return keyword{}, false
	}
	return k, true
}

// dialect is a draft of JSON Schema, by number or year.
type dialect int

const (
	draft4    dialect = 4
	draft6    dialect = 6
	draft7    dialect = 7
	draft2019 dialect = 2019
	draft2020 dialect = 2020
)

// dialects maps values of $schema, without scheme and empty fragment, to dialects.
var dialects = map[string]dialect{
	"json-schema.org/schema":               draft2020,
	"json-schema.org/draft/2020-12/schema": draft2020,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-04/schema":      draft4,
}

// dialectOf returns the dialect for a value of $schema.
func dialectOf(uri string) (dialect, bool) {
	uri = strings.TrimSuffix(uri, "#")
	if rest, ok := strings.CutPrefix(uri, "http://"); ok {
		uri = rest
	} else {
		uri = strings.TrimPrefix(uri, "https://")
	}
	d, ok := dialects[uri]
	return d, ok
}

// addKeyword checks one member of a schema and adds its subschemas.
func (c *compiler) addKeyword(sub *subschema, name string, value any) {
	at := sub.pointer + "/" + escapePointer(name)
	k, known := c.dialect.lookup(name)
	if !known {
		c.unknownKeyword(at, name)
		return
	}
	switch name {
	case "$dynamicRef", "$recursiveRef":
		c.scoped = true
	case "unevaluatedProperties", "unevaluatedItems":
		c.unevaluated = true
	}
	switch k.kind {
	case kindSchema:
		c.addChild(sub, name, "", value, at)
	case kindSchemaOrList:
		c.addItems(sub, value, at)
	case kindSchemas:
		if list, ok := value.([]any); ok && len(list) > 0 {
			c.addChildren(sub, name, list)
		} else {
			c.wrong(at, name, "a non-empty array of schemas")
		}
	case kindSchemaMap:
		c.addNamed(sub, name, value, at)
	case kindDependencies:
		c.addDependencies(sub, value, at)
	case kindPattern:
		c.checkPattern(name, value, at)
	case kindFormat:
		c.checkFormat(value, at)
	default:
		if want := k.kind.misses(c.dialect, value); want != "" {
			c.wrong(at, name, want)
		}
	}
}

func (c *compiler) wrong(at, name, want string) {
	c.fail(at, codeBad, fmt.Sprintf("%q must be %s", name, want), "")
}

// unknownKeyword warns of a member that is similar to a keyword. Other members are annotations,
// or keywords of another dialect.
func (c *compiler) unknownKeyword(at, name string) {
	if _, other := keywords[name]; other || c.warnings >= maxWarnings {
		return
	}
	var known []string
	for _, k := range sortedNames(keywords) {
		if _, ok := c.dialect.lookup(k); ok {
			known = append(known, k)
		}
	}
	if like := diag.DidYouMean(name, known); like != "" {
		c.warn(at, codeKeyword, fmt.Sprintf("%q is not a keyword of JSON Schema and has no effect", name), like)
	}
}

func (c *compiler) addItems(sub *subschema, value any, at string) {
	list, ok := value.([]any)
	switch {
	case !ok:
		c.addChild(sub, "items", "", value, at)
	case c.dialect >= draft2020:
		c.fail(at, codeBad, `"items" must be one schema`, `use "prefixItems" for one schema per position`)
	default:
		c.addChildren(sub, "items", list)
	}
}

func (c *compiler) addNamed(sub *subschema, keyword string, value any, at string) {
	object, ok := value.(map[string]any)
	if !ok {
		c.wrong(at, keyword, "an object of schemas")
		return
	}
	for _, name := range sortedNames(object) {
		inner := at + "/" + escapePointer(name)
		if keyword == "patternProperties" {
			c.checkPattern(keyword, name, inner)
		}
		c.addChild(sub, keyword, name, object[name], inner)
	}
}

func (c *compiler) addDependencies(sub *subschema, value any, at string) {
	object, ok := value.(map[string]any)
	if !ok {
		c.wrong(at, "dependencies", "an object of schemas and lists of names")
		return
	}
	for _, name := range sortedNames(object) {
		inner := at + "/" + escapePointer(name)
		if list, ok := object[name].([]any); ok {
			if want := kindNames.misses(c.dialect, list); want != "" {
				c.wrong(inner, "dependencies", want)
			}
			continue
		}
		c.addChild(sub, "dependencies", name, object[name], inner)
	}
}

func (c *compiler) checkPattern(keyword string, value any, at string) {
	text, ok := value.(string)
	if !ok {
		c.wrong(at, keyword, "a string")
		return
	}
	compiled, err := compilePattern(text)
	if c.patterns[text] = compiled; err != nil {
		c.fail(at, codePattern, fmt.Sprintf("the pattern cannot be used: %s", patternWords(err)),
			"patterns are RE2: no look-ahead, look-behind or back-reference; https://github.com/google/re2/wiki/Syntax")
	}
}

func (c *compiler) checkFormat(value any, at string) {
	name, ok := value.(string)
	if !ok {
		c.wrong(at, "format", "a string")
		return
	}
	if formats[name] != nil || annotations[name] {
		return
	}
	detail := diag.DidYouMean(name, formatNames())
	if detail == "" {
		detail = "the formats are " + join(formatNames(), "and")
	}
	c.warn(at, codeFormat, fmt.Sprintf("there is no format %q, so it is not checked", clip(name, maxNameBytes)), detail)
}

// misses returns the required form of the value if value does not have it.
func (k valueKind) misses(d dialect, value any) string {
	switch k {
	case kindCount:
		if i, ok := value.(int64); !ok || i < 0 {
			return "an integer that is not negative"
		}
	case kindNumber, kindStep, kindLimit:
		return k.missesNumber(d, value)
	case kindString:
		if _, ok := value.(string); !ok {
			return "a string"
		}
	case kindBool:
		if _, ok := value.(bool); !ok {
			return "true or false"
		}
	case kindType:
		return missesType(value)
	case aList:
		if _, ok := value.([]any); !ok {
			return "an array"
		}
	case kindNames:
		if list, ok := value.([]any); ok && len(list) == 0 && d == draft4 {
			return "a non-empty array of different names"
		}
		return missesNames(value)
	case kindNamesMap:
		object, ok := value.(map[string]any)
		for _, list := range object {
			ok = ok && missesNames(list) == ""
		}
		if !ok {
			return "an object of lists of names"
		}
	}
	return ""
}

func (k valueKind) missesNumber(d dialect, value any) string {
	_, flag := value.(bool)
	t := typeOf(value)
	switch {
	case k == kindLimit && d == draft4:
		if !flag {
			return "true or false"
		}
	case t&(integerType|numberType) == 0:
		return "a number"
	case k == kindStep && compare(value, int64(0)) <= 0:
		return "a number greater than 0"
	}
	return ""
}

func missesNames(value any) string {
	const want = "an array of different names"
	list, ok := value.([]any)
	if !ok {
		return want
	}
	var names []string
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			return want
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < len(list) {
		return want
	}
	return ""
}

func missesType(value any) string {
	want := "one of " + join(typeNames, "and") + ", or an array of those"
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	seen := types(0)
	for _, v := range list {
		name, _ := v.(string)
		t := typeNamed(name)
		if t == 0 || seen&t != 0 {
			if like := diag.DidYouMean(name, typeNames); like != "" && t == 0 {
				want += "; " + like
			}
			return want
		}
		seen |= t
	}
	if seen == 0 {
		return want
	}
	return ""
}
