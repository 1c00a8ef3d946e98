package schema

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
)

// addKeyword checks one member of a schema and adds the parts within it.
func (d *document) addKeyword(p *part, name string, value any) {
	at := p.at + "/" + escapePointer(name)
	k, known := d.dialect.lookup(name)
	if !known {
		d.unknownKeyword(at, name)
		return
	}
	switch name {
	case "$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems":
		d.contextual = at
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
