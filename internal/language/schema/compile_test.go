package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

// lines returns the diagnostics, with the severity of warnings.
func lines(list diag.List) []string {
	var lines []string
	for _, d := range list {
		line := d.Summary
		if d.Detail != "" {
			line += "; " + d.Detail
		}
		if d.Severity == diag.Warning {
			line = "warning: " + line
		}
		lines = append(lines, line)
	}
	return lines
}

func TestCompile_diagnostics(t *testing.T) {
	for _, row := range []struct {
		name, schema string
		want         []string
	}{
		{"no JSON", `{`, []string{"the schema is not valid JSON"}},
		{"no schema", `"x"`, []string{"a schema must be an object, true or false"}},
		{"a part that is no schema", `{"properties":{"a":"string"}}`, []string{"a schema must be an object, true or false (at /properties/a of the schema)"}},
		{"members of the wrong shape", `{"minLength":"3","maximum":"x","title":1,"uniqueItems":1,"required":true,"enum":1,"anyOf":[],"properties":[],"multipleOf":0,"dependentRequired":{"a":1},"pattern":1,"format":2}`, []string{
			`"anyOf" must be a non-empty array of schemas (at /anyOf of the schema)`,
			`"dependentRequired" must be an object of lists of names (at /dependentRequired of the schema)`,
			`"enum" must be an array (at /enum of the schema)`,
			`"format" must be a string (at /format of the schema)`,
			`"maximum" must be a number (at /maximum of the schema)`,
			`"minLength" must be an integer that is not negative (at /minLength of the schema)`,
			`"multipleOf" must be a number greater than 0 (at /multipleOf of the schema)`,
			`"pattern" must be a string (at /pattern of the schema)`,
			`"properties" must be an object of schemas (at /properties of the schema)`,
			`"required" must be an array of different names (at /required of the schema)`,
			`"title" must be a string (at /title of the schema)`,
			`"uniqueItems" must be true or false (at /uniqueItems of the schema)`,
		}},
		{"counts", `{"minItems":-1,"maxItems":1.5,"minProperties":1e30,"maxLength":2.0}`, []string{
			`"maxItems" must be an integer that is not negative (at /maxItems of the schema)`,
			`"minItems" must be an integer that is not negative (at /minItems of the schema)`,
			`"minProperties" must be an integer that is not negative (at /minProperties of the schema)`,
		}},
		{"an unknown type", `{"type":"strng"}`, []string{`"type" must be one of null, boolean, integer, number, string, array and object, or an array of those; did you mean "string"? (at /type of the schema)`}},
		{"a type twice", `{"type":["string","string"]}`, []string{`"type" must be one of null, boolean, integer, number, string, array and object, or an array of those (at /type of the schema)`}},
		{"names twice", `{"required":["a","a"]}`, []string{`"required" must be an array of different names (at /required of the schema)`}},
		{"a misspelled keyword", `{"minLenght":3,"x-note":1,"propertis":{}}`, []string{
			`warning: "minLenght" is not a keyword of JSON Schema and has no effect (at /minLenght of the schema); did you mean "minLength"?`,
			`warning: "propertis" is not a keyword of JSON Schema and has no effect (at /propertis of the schema); did you mean "properties"?`,
		}},
		{"an unknown format", `{"format":"datetime"}`, []string{`warning: there is no format "datetime", so it is not checked (at /format of the schema); did you mean "date-time"?`}},
		{"a format of others", `{"format":"int64"}`, nil},
		{"a pattern that RE2 does not have", `{"pattern":"^(?!x)","patternProperties":{"(":true}}`, []string{
			"the pattern cannot be used: invalid or unsupported Perl syntax: (?! (at /pattern of the schema); patterns are RE2: no look-ahead, look-behind or back-reference; https://github.com/google/re2/wiki/Syntax",
			"the pattern cannot be used: missing closing ): ( (at /patternProperties/( of the schema); patterns are RE2: no look-ahead, look-behind or back-reference; https://github.com/google/re2/wiki/Syntax",
		}},
		{"a pattern that is too large", `{"pattern":"a{1000}b{1000}c{1000}d{1000}"}`, []string{
			"the pattern cannot be used: it is too large: use smaller counts than x{1000} (at /pattern of the schema); patterns are RE2: no look-ahead, look-behind or back-reference; https://github.com/google/re2/wiki/Syntax",
		}},
		{"an unknown dialect", `{"$schema":"https://example.com/meta"}`, []string{
			`the dialect "https://example.com/meta" of JSON Schema is not supported (at /$schema of the schema); remove "$schema", or write "https://json-schema.org/draft/2020-12/schema"`,
		}},
		{"a reference to elsewhere", `{"$ref":"https://example.com/x.json"}`, []string{
			`the schema refers to another document, which is not supported (at /$ref of the schema); copy the schema to "$defs", and write "#/$defs/name"`,
		}},
		{"a reference to a file", `{"$ref":"file:///etc/passwd"}`, []string{
			`the schema refers to another document, which is not supported (at /$ref of the schema); copy the schema to "$defs", and write "#/$defs/name"`,
		}},
		{"a reference to nothing", `{"$ref":"#/$defs/x","items":{"$ref":"#x"}}`, []string{
			`there is no anchor "x" (at /items/$ref of the schema); add the "$anchor", or write a path such as "#/$defs/name"`, `there is nothing at "/$defs/x" in the schema (at /$ref of the schema); write the path of an existing subschema, such as "#/$defs/name"`,
		}},
		{"a reference to itself", `{"$ref":"#"}`, []string{"the schema refers to itself endlessly; refer to it only from a property or an item"}},
		{"a circle", `{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"if":{"$ref":"#/$defs/a"},"then":true}}}`, []string{
			"the schema refers to itself endlessly (at /$defs/a of the schema); refer to it only from a property or an item",
		}},
		{"recursion through members", `{"properties":{"next":{"$ref":"#"}}}`, nil},
		{"two schemas of one name", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"},"c":{"$id":"y"},"d":{"$id":"y"}}}`, []string{
			"two subschemas have the same URI (at /$defs/d/$id of the schema); change one of them",
			"two subschemas have the same anchor (at /$defs/b/$anchor of the schema); change one of them",
		}},
		{"names that are no URIs", `{"$defs":{"a":{"$id":"http://a b/%"},"b":{"$id":"x#y"},"c":{"$ref":"%"}}}`, []string{
			`"$id" must be a URI (at /$defs/a/$id of the schema)`,
			`"$id" must have no fragment (at /$defs/b/$id of the schema); write an "$anchor"`,
			`"$ref" must be a URI reference (at /$defs/c/$ref of the schema); write "#/$defs/name"`,
		}},
		{"references into lists and scalars", `{"allOf":[{"$ref":"#/anyOf/1"},{"$ref":"#/anyOf/2"},{"$ref":"#/title/x"},{"$ref":"#/minimum"}],"anyOf":[true,true],"title":"t","minimum":1}`, []string{
			"a schema must be an object, true or false (at /minimum of the schema)",
			`there is nothing at "/anyOf/2" in the schema (at /allOf/1/$ref of the schema); write the path of an existing subschema, such as "#/$defs/name"`,
			`there is nothing at "/title/x" in the schema (at /allOf/2/$ref of the schema); write the path of an existing subschema, such as "#/$defs/name"`,
		}},
		{"dependencies of the wrong shape", `{"dependencies":{"a":[1],"b":1}}`, []string{
			`"dependencies" must be an array of different names (at /dependencies/a of the schema)`,
			"a schema must be an object, true or false (at /dependencies/b of the schema)",
		}},
		{"dependencies as a list", `{"dependencies":[]}`, []string{`"dependencies" must be an object of schemas and lists of names (at /dependencies of the schema)`}},
		{"a type that is an empty list", `{"type":[]}`, []string{`"type" must be one of null, boolean, integer, number, string, array and object, or an array of those (at /type of the schema)`}},
		{"items as a list", `{"items":[{}]}`, []string{`"items" must be one schema (at /items of the schema); use "prefixItems" for one schema per position`}},
		{"items as a list before 2020-12", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":false,"dependencies":{"a":["b"],"c":{}}}`, nil},
		{"a default that does not fit", `{"properties":{"limit":{"type":"integer","default":"10"},"o":{"default":{"a":1},"properties":{"a":{"minimum":2}}}}}`, []string{
			"the default does not fit its schema: /a must be at least 2 (at /properties/o/default of the schema); correct the default or its schema",
			"the default does not fit its schema: it must be an integer, not a string (at /properties/limit/default of the schema); correct the default or its schema",
		}},
		{"a default null for none", `{"properties":{"limit":{"type":"integer","default":null}}}`, []string{
			`warning: the default null does not fit the schema of "limit" and has no effect (at /properties/limit/default of the schema); remove it, or add "null" to the type`,
		}},
		{"defaults without end", `{"properties":{"next":{"$ref":"#","default":{}}}}`, []string{
			`the default of "next" contains itself (at /properties/next of the schema); remove one of the defaults, or give the inner one a value`,
		}},
		{"all at once", `{"type":"strng","properties":{"a":{"minimum":"1"},"b":{"pattern":"("}}}`, []string{
			`"minimum" must be a number (at /properties/a/minimum of the schema)`,
			`"type" must be one of null, boolean, integer, number, string, array and object, or an array of those; did you mean "string"? (at /type of the schema)`,
			"the pattern cannot be used: missing closing ): ( (at /properties/b/pattern of the schema); patterns are RE2: no look-ahead, look-behind or back-reference; https://github.com/google/re2/wiki/Syntax",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, list := Compile(json.RawMessage(row.schema), diag.Range{File: "a.hcl"}, nil)
			if diff := cmp.Diff(row.want, lines(list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (s == nil) != list.HasErrors() {
				t.Errorf("schema %v with %v", s, list)
			}
		})
	}
}

func TestCompile_ranges(t *testing.T) {
	at := func(line int) diag.Range {
		return diag.Range{File: "tools.d/a.hcl", Start: diag.Pos{Line: line, Column: 3}, End: diag.Pos{Line: line, Column: 9}}
	}
	origin := map[string]diag.Range{"/properties/a": at(2), "/properties/a/pattern": at(3), "/properties/b": at(5)}
	raw := json.RawMessage(`{"type":"strng","properties":{"a":{"type":"string","pattern":"("},"b":{"items":{"minimum":"x"}}}}`)
	_, list := Compile(raw, at(1), func(pointer string) (diag.Range, bool) {
		where, ok := origin[pointer]
		return where, ok
	})
	type place struct {
		Line    int
		Summary string
	}
	var got []place
	for _, d := range list {
		got = append(got, place{d.Range.Start.Line, d.Summary})
	}
	want := []place{
		{1, `"type" must be one of null, boolean, integer, number, string, array and object, or an array of those; did you mean "string"? (at /type of the schema)`},
		{3, "the pattern cannot be used: missing closing ): ("},
		{5, `"minimum" must be a number (at /properties/b/items/minimum of the schema)`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompile_drafts(t *testing.T) {
	const draft07 = `"$schema":"http://json-schema.org/draft-07/schema#"`
	for _, row := range []struct {
		schema, value string
		valid         bool
	}{
		{`{` + draft07 + `,"items":[{"type":"integer"}],"additionalItems":{"type":"string"}}`, `[1,"a"]`, true},
		{`{` + draft07 + `,"items":[{"type":"integer"}],"additionalItems":{"type":"string"}}`, `[1,2]`, false},
		{`{` + draft07 + `,"$ref":"#/definitions/a","minimum":5,"definitions":{"a":{"type":"integer"}}}`, `1`, true},
		{`{` + draft07 + `,"$ref":"#/definitions/a","not":{},"definitions":{"a":{"type":"integer"}}}`, `1`, true},
		{`{` + draft07 + `,"dependencies":{"a":["b"]}}`, `{"a":1}`, false},
		{`{` + draft07 + `,"prefixItems":[false],"dependentRequired":{"a":["b"]}}`, `[1]`, true},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$ref":"#/$defs/a","minimum":5,"$defs":{"a":{"type":"integer"}}}`, `1`, false},
		{`{` + draft07 + `,"items":{"$ref":"#x"},"definitions":{"a":{"$id":"#x","type":"integer"}}}`, `["x"]`, false},
		{`{` + draft07 + `,"items":{"$ref":"b#x"},"definitions":{"b":{"$id":"b","definitions":{"a":{"$id":"#x","type":"integer"}}}}}`, `["x"]`, false},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"items":{"$recursiveRef":"#"},"type":["array","integer"]}`, `[[1,"x"]]`, false},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, `1`, false},
		{`{"$schema":"http://json-schema.org/draft-06/schema","const":1}`, `2`, false},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[false]}`, `[1]`, false},
		{`{"$id":"https://example.com/a","items":{"$ref":"/a#/$defs/x"},"$defs":{"x":{"type":"integer"}}}`, `["x"]`, false},
		{`{"$id":"https://example.com/a","items":{"$ref":"b"},"$defs":{"x":{"$id":"/b","$ref":"#y","$defs":{"y":{"$anchor":"y","minimum":1}}}}}`, `[0]`, false},
		{`{"properties":{"a":{"$ref":"#/properties/b/x-shape"},"b":{"x-shape":{"type":"integer"}}}}`, `{"a":"x"}`, false},
	} {
		if valid := len(mustCompile(t, row.schema).Validate([]byte(row.value))) == 0; valid != row.valid {
			t.Errorf("%s: %s is valid: %t, want %t", row.schema, row.value, valid, row.valid)
		}
	}
}

func TestCompile_errorsNextToRareKeywords(t *testing.T) {
	for _, row := range []struct{ schema, want string }{
		{`{"unevaluatedProperties":1}`, "a schema must be an object, true or false"},
		{`{"unevaluatedProperties":false,"pattern":"(?=x)"}`, "the pattern cannot be used"},
		{`{"unevaluatedProperties":false,"$ref":"other.json"}`, "another document"},
		{`{"$dynamicRef":"#none"}`, `there is no anchor "none"`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":2}`, `"exclusiveMinimum" must be true or false`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","required":[]}`, `"required" must be a non-empty array of different names`},
	} {
		s, list := Compile(json.RawMessage(row.schema), diag.Range{}, nil)
		if s != nil || !list.HasErrors() || !strings.Contains(list[0].Summary, row.want) {
			t.Errorf("%s: %v, want %q", row.schema, list, row.want)
		}
	}
}

// FuzzCompile checks that any text is safe as a schema and as a value.
func FuzzCompile(f *testing.F) {
	for _, row := range violationRows {
		f.Add([]byte(row.schema), []byte(row.value))
	}
	f.Add([]byte(`{"$dynamicRef":"#a","$dynamicAnchor":"a","unevaluatedItems":false}`), []byte(`[1]`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-04/schema#","id":"#a","$ref":"#a"}`), []byte(`1`))
	f.Add([]byte(`{"$id":"urn:x","$ref":"urn:x#/$defs/~0~1%25","$defs":{"~/%":{}}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, raw, text []byte) {
		s, list := Compile(raw, diag.Range{}, nil)
		if (s == nil) != list.HasErrors() {
			t.Fatalf("schema %v with %v", s, list)
		}
		if s == nil {
			return
		}
		checkViolations(t, s.Validate(text))
		_, found := s.Decode(text, nil)
		checkViolations(t, found)
	})
}
