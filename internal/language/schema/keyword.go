package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// A shape is what the value of a keyword must look like.
type shape int

const (
	anything     shape = iota
	oneSchema          // a schema
	manySchemas        // an array of schemas, not empty
	namedSchemas       // an object of schemas
	schemaOrList       // a schema, or an array of them before draft 2020-12
	dependencies       // an object of schemas and lists of names
	aCount             // an integer that is not negative
	aNumber
	aStep    // a number above zero
	aLimit   // a number, or in draft 4 a boolean
	aText    // a string
	aPattern // a string that is a regular expression
	aFormat  // a string that names a format
	aFlag    // a boolean
	nameList // an array of different strings
	namedNames
	aType // the name of a type, or an array of them
	aList
)

// A keyword is a member of a schema that means something.
type keyword struct {
	shape shape
	// inPlace says that it holds the value itself against its schemas.
	inPlace bool
	// since is the first dialect that has it, and until the last; zero is any.
	since, until dialect
}

// keywords are those of all dialects.
var keywords = map[string]keyword{
	"$schema": {shape: aText}, "$id": {shape: aText, since: draft6}, "id": {shape: aText, until: draft4},
	"$ref": {shape: aText}, "$anchor": {shape: aText, since: draft2019}, "$comment": {shape: aText}, "$vocabulary": {},
	"$dynamicRef": {shape: aText, since: draft2020}, "$dynamicAnchor": {shape: aText, since: draft2020},
	"$recursiveRef": {shape: aText, since: draft2019}, "$recursiveAnchor": {shape: aFlag, since: draft2019},
	"$defs": {shape: namedSchemas}, "definitions": {shape: namedSchemas},

	"allOf": {shape: manySchemas, inPlace: true}, "anyOf": {shape: manySchemas, inPlace: true}, "oneOf": {shape: manySchemas, inPlace: true},
	"not": {shape: oneSchema, inPlace: true}, "if": {shape: oneSchema, inPlace: true, since: draft7},
	"then": {shape: oneSchema, inPlace: true, since: draft7}, "else": {shape: oneSchema, inPlace: true, since: draft7},
	"dependentSchemas": {shape: namedSchemas, inPlace: true, since: draft2019}, "dependencies": {shape: dependencies, inPlace: true},

	"properties": {shape: namedSchemas}, "patternProperties": {shape: namedSchemas},
	"additionalProperties": {shape: oneSchema}, "propertyNames": {shape: oneSchema, since: draft6},
	"unevaluatedProperties": {shape: oneSchema, since: draft2019}, "unevaluatedItems": {shape: oneSchema, since: draft2019},
	"items": {shape: schemaOrList}, "prefixItems": {shape: manySchemas, since: draft2020},
	"additionalItems": {shape: oneSchema, until: draft2019}, "contains": {shape: oneSchema, since: draft6},
	"contentSchema": {shape: oneSchema, since: draft2019},

	"type": {shape: aType}, "enum": {shape: aList}, "const": {since: draft6},
	"multipleOf": {shape: aStep}, "minimum": {shape: aNumber}, "maximum": {shape: aNumber},
	"exclusiveMinimum": {shape: aLimit}, "exclusiveMaximum": {shape: aLimit},
	"minLength": {shape: aCount}, "maxLength": {shape: aCount}, "pattern": {shape: aPattern}, "format": {shape: aFormat},
	"minItems": {shape: aCount}, "maxItems": {shape: aCount}, "uniqueItems": {shape: aFlag},
	"minContains": {shape: aCount, since: draft2019}, "maxContains": {shape: aCount, since: draft2019},
	"minProperties": {shape: aCount}, "maxProperties": {shape: aCount}, "required": {shape: nameList},
	"dependentRequired": {shape: namedNames, since: draft2019},

	"title": {shape: aText}, "description": {shape: aText}, "default": {}, "examples": {shape: aList}, "deprecated": {shape: aFlag},
	"readOnly": {shape: aFlag}, "writeOnly": {shape: aFlag},
	"contentEncoding": {shape: aText}, "contentMediaType": {shape: aText},
}

// lookup returns the keyword of the given name in a dialect.
func (d dialect) lookup(name string) (keyword, bool) {
	k, ok := keywords[name]
	if !ok || d < k.since || k.until != 0 && d > k.until {
		return keyword{}, false
	}
	return k, true
}

// A dialect is a draft of JSON Schema, by its number or year.
type dialect int

const (
	draft4    dialect = 4
	draft6    dialect = 6
	draft7    dialect = 7
	draft2019 dialect = 2019
	draft2020 dialect = 2020
)

// dialects are the values of $schema, without scheme and empty fragment.
var dialects = map[string]dialect{
	"json-schema.org/schema":               draft2020,
	"json-schema.org/draft/2020-12/schema": draft2020,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-04/schema":      draft4,
}

// dialectOf returns the dialect that a value of $schema names.
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

// addKeyword checks one member of a schema and adds the parts within it.
func (d *document) addKeyword(p *part, name string, value any) {
	at := p.at + "/" + escapePointer(name)
	k, known := d.dialect.lookup(name)
	if !known {
		d.unknownKeyword(at, name)
		return
	}
	switch name {
	case "$dynamicRef", "$recursiveRef":
		d.scoped = true
	case "unevaluatedProperties", "unevaluatedItems":
		d.unevaluated = true
	}
	switch k.shape {
	case oneSchema:
		d.addSub(p, name, "", value, at)
	case schemaOrList:
		d.addItems(p, value, at)
	case manySchemas:
		if list, ok := value.([]any); ok && len(list) > 0 {
			d.addSubs(p, name, list)
		} else {
			d.wrong(at, name, "an array of schemas, and not an empty one")
		}
	case namedSchemas:
		d.addNamed(p, name, value, at)
	case dependencies:
		d.addDependencies(p, value, at)
	case aPattern:
		d.checkPattern(name, value, at)
	case aFormat:
		d.checkFormat(value, at)
	default:
		if want := k.shape.misses(d.dialect, value); want != "" {
			d.wrong(at, name, want)
		}
	}
}

func (d *document) wrong(at, name, want string) {
	d.fail(at, codeBad, fmt.Sprintf("%q must be %s", name, want), "")
}

// unknownKeyword warns of a member that is near to a keyword. Others are
// annotations, which everyone may add, or keywords of another dialect.
func (d *document) unknownKeyword(at, name string) {
	if _, other := keywords[name]; other || d.warnings >= mostWarnings {
		return
	}
	var known []string
	for _, k := range sortedNames(keywords) {
		if _, ok := d.dialect.lookup(k); ok {
			known = append(known, k)
		}
	}
	if like := diag.DidYouMean(name, known); like != "" {
		d.warn(at, codeKeyword, fmt.Sprintf("%q is no keyword of JSON Schema and has no effect", name), like)
	}
}

func (d *document) addItems(p *part, value any, at string) {
	list, ok := value.([]any)
	switch {
	case !ok:
		d.addSub(p, "items", "", value, at)
	case d.dialect >= draft2020:
		d.fail(at, codeBad, `"items" must be one schema`, `write "prefixItems" for a schema for each place`)
	default:
		d.addSubs(p, "items", list)
	}
}

func (d *document) addNamed(p *part, keyword string, value any, at string) {
	object, ok := value.(map[string]any)
	if !ok {
		d.wrong(at, keyword, "an object of schemas")
		return
	}
	for _, name := range sortedNames(object) {
		inner := at + "/" + escapePointer(name)
		if keyword == "patternProperties" {
			d.checkPattern(keyword, name, inner)
		}
		d.addSub(p, keyword, name, object[name], inner)
	}
}

func (d *document) addDependencies(p *part, value any, at string) {
	object, ok := value.(map[string]any)
	if !ok {
		d.wrong(at, "dependencies", "an object of schemas and lists of names")
		return
	}
	for _, name := range sortedNames(object) {
		inner := at + "/" + escapePointer(name)
		if list, ok := object[name].([]any); ok {
			if want := nameList.misses(d.dialect, list); want != "" {
				d.wrong(inner, "dependencies", want)
			}
			continue
		}
		d.addSub(p, "dependencies", name, object[name], inner)
	}
}

func (d *document) checkPattern(keyword string, value any, at string) {
	text, ok := value.(string)
	if !ok {
		d.wrong(at, keyword, "a string")
		return
	}
	compiled, err := compilePattern(text)
	if d.patterns[text] = compiled; err != nil {
		d.fail(at, codePattern, fmt.Sprintf("the pattern cannot be used: %s", patternWords(err)),
			"patterns are RE2: no look-ahead, look-behind or back-reference; https://github.com/google/re2/wiki/Syntax")
	}
}

func (d *document) checkFormat(value any, at string) {
	name, ok := value.(string)
	if !ok {
		d.wrong(at, "format", "a string")
		return
	}
	if formats[name] != nil || annotations[name] {
		return
	}
	detail := diag.DidYouMean(name, formatNames())
	if detail == "" {
		detail = "the formats are " + join(formatNames(), "and")
	}
	d.warn(at, codeFormat, fmt.Sprintf("there is no format %q, so nothing is checked", clip(name, longestName)), detail)
}

// misses returns what a value must be, when it is not.
func (s shape) misses(d dialect, value any) string {
	switch s {
	case aCount:
		if i, ok := value.(int64); !ok || i < 0 {
			return "an integer that is not negative"
		}
	case aNumber, aStep, aLimit:
		return s.missesNumber(d, value)
	case aText:
		if _, ok := value.(string); !ok {
			return "a string"
		}
	case aFlag:
		if _, ok := value.(bool); !ok {
			return "true or false"
		}
	case aType:
		return missesType(value)
	case aList:
		if _, ok := value.([]any); !ok {
			return "an array"
		}
	case nameList:
		if list, ok := value.([]any); ok && len(list) == 0 && d == draft4 {
			return "an array of different names, and not an empty one"
		}
		return missesNames(value)
	case namedNames:
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

func (s shape) missesNumber(d dialect, value any) string {
	_, flag := value.(bool)
	t := typeOf(value)
	switch {
	case s == aLimit && d == draft4:
		if !flag {
			return "true or false"
		}
	case t&(integerType|numberType) == 0:
		return "a number"
	case s == aStep && compare(value, int64(0)) <= 0:
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
