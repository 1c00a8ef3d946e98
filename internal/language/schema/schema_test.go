package schema

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchema_concurrentUse(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"a":{"default":[{}],"items":{"properties":{"n":{"type":"integer","default":1}}}},"b":{"pattern":"^x"}},"additionalProperties":false}`,
		`{"properties":{"a":{"default":[{}],"items":{"properties":{"n":{"type":"integer","default":1}}}},"b":{"pattern":"^x"}},"unevaluatedProperties":false}`,
	} {
		s := mustCompile(t, schema)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range 50 {
					got, found := s.Decode([]byte(`{"b":"x"}`), nil)
					want := map[string]any{"a": []any{map[string]any{"n": int64(1)}}, "b": "x"}
					if diff := cmp.Diff(want, got.Value); diff != "" || found != nil {
						t.Errorf("%v (-want +got):\n%s", found, diff)
					}
					if _, found := s.Decode([]byte(`{"b":"y","c":1}`), nil); len(found) != 2 {
						t.Errorf("%v", found)
					}
				}
			})
		}
		wait.Wait()
	}
}

// Each asserted keyword of 2020-12 has a valid and an invalid value. The schemas declare no
// dialect.
func TestValidate_everyKeyword(t *testing.T) {
	for _, row := range []struct{ schema, fits, not string }{
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, `"x"`, `1`},
		{`{"$ref":"#here","$defs":{"a":{"$anchor":"here","type":"string"}}}`, `"x"`, `1`},
		{`{"$ref":"b","$id":"https://example.com/a","$defs":{"b":{"$id":"b","type":"string"}}}`, `"x"`, `1`},
		{`{"$dynamicRef":"#n","$defs":{"a":{"$dynamicAnchor":"n","type":"string"}}}`, `"x"`, `1`},
		{`{"allOf":[{"minimum":1},{"maximum":2}]}`, `1`, `3`},
		{`{"anyOf":[{"maximum":1},{"minimum":3}]}`, `3`, `2`},
		{`{"oneOf":[{"maximum":2},{"minimum":2}]}`, `3`, `2`},
		{`{"not":{"type":"string"}}`, `1`, `"x"`},
		{`{"if":{"minimum":5},"then":{"multipleOf":5}}`, `10`, `6`},
		{`{"if":{"minimum":5},"else":{"multipleOf":2}}`, `2`, `3`},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1,"b":1}`, `{"a":1}`},
		{`{"prefixItems":[{"type":"string"}]}`, `["x",1]`, `[1]`},
		{`{"prefixItems":[true],"items":{"type":"string"}}`, `[1,"x"]`, `[1,2]`},
		{`{"contains":{"type":"string"}}`, `[1,"x"]`, `[1]`},
		{`{"contains":{"type":"string"},"minContains":2}`, `["x","y"]`, `["x",1]`},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["x",1]`, `["x","y"]`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":"x","b":1}`, `{"a":1}`},
		{`{"patternProperties":{"^a":{"type":"string"}}}`, `{"ab":"x","b":1}`, `{"ab":1}`},
		{`{"properties":{"a":true},"additionalProperties":{"type":"string"}}`, `{"a":1,"b":"x"}`, `{"b":1}`},
		{`{"propertyNames":{"maxLength":1}}`, `{"a":1}`, `{"ab":1}`},
		{`{"allOf":[{"prefixItems":[true]}],"unevaluatedItems":false}`, `[1]`, `[1,2]`},
		{`{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1}`, `{"a":1,"b":1}`},
		{`{"type":["string","null"]}`, `null`, `1`},
		{`{"enum":[1,"x"]}`, `1.0`, `2`},
		{`{"const":{"a":1}}`, `{"a":1}`, `{"a":2}`},
		{`{"multipleOf":0.1}`, `0.3`, `0.35`},
		{`{"maximum":2}`, `2`, `3`},
		{`{"exclusiveMaximum":2}`, `1`, `2`},
		{`{"minimum":2}`, `2`, `1`},
		{`{"exclusiveMinimum":2}`, `3`, `2`},
		{`{"maxLength":1}`, `"é"`, `"éé"`},
		{`{"minLength":2}`, `"éé"`, `"é"`},
		{`{"pattern":"b"}`, `"abc"`, `"ac"`},
		{`{"maxItems":1}`, `[1]`, `[1,2]`},
		{`{"minItems":1}`, `[1]`, `[]`},
		{`{"uniqueItems":true}`, `[1,2]`, `[1,1.0]`},
		{`{"maxProperties":1}`, `{"a":1}`, `{"a":1,"b":1}`},
		{`{"minProperties":1}`, `{"a":1}`, `{}`},
		{`{"required":["a"]}`, `{"a":null}`, `{"b":1}`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1,"b":1}`, `{"a":1}`},
	} {
		s := mustCompile(t, row.schema)
		if wrong := s.Validate([]byte(row.fits)); len(wrong) > 0 {
			t.Errorf("%s: %s is invalid: %v", row.schema, row.fits, wrong)
		}
		if len(s.Validate([]byte(row.not))) == 0 {
			t.Errorf("%s: %s is valid", row.schema, row.not)
		}
	}
}
