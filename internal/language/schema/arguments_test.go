package schema

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestDecode_valueAndText(t *testing.T) {
	const nested = `{"type":"object","properties":{
		"filters":{"type":"object","properties":{"status":{"type":"string","default":"active"},"deep":{"type":"object","properties":{"n":{"type":"integer","default":1}}}}},
		"rows":{"type":"array","items":{"type":"object","properties":{"qty":{"type":"integer","default":1}}}},
		"by_name":{"type":"object","additionalProperties":{"type":"object","properties":{"on":{"type":"boolean","default":true}}}}}}`
	for _, row := range []struct {
		name, schema, text string
		value              map[string]any
		out                string
	}{
		{"no text is an empty object", `{}`, ``, map[string]any{}, `{}`},
		{"white space is an empty object", `{}`, " \n", map[string]any{}, `{}`},
		{"nothing to add returns the same text", twoArguments, ` {"customer_id" : "C-1", "limit":5 } `,
			map[string]any{"customer_id": "C-1", "limit": int64(5)}, ` {"customer_id" : "C-1", "limit":5 } `},
		{"a default is written after what is there", twoArguments, `{"customer_id":"C-1"}`,
			map[string]any{"customer_id": "C-1", "limit": int64(10)}, `{"customer_id":"C-1","limit":10}`},
		{"a default is written into an empty object", `{"properties":{"b":{"default":"<&>"},"a":{"default":null}}}`, "{ }\n",
			map[string]any{"a": nil, "b": "<&>"}, "{ \"a\":null,\"b\":\"<&>\"}\n"},
		{"null is not absent", `{"properties":{"a":{"type":["string","null"],"default":"x"}}}`, `{"a":null}`, map[string]any{"a": nil}, `{"a":null}`},
		{"objects inside objects are completed", nested, `{"filters":{"deep":{}}}`,
			map[string]any{"filters": map[string]any{"status": "active", "deep": map[string]any{"n": int64(1)}}}, `{"filters":{"deep":{"n":1},"status":"active"}}`},
		{"an absent object is not made up", nested, `{}`, map[string]any{}, `{}`},
		{"objects in arrays are completed", nested, `{"rows":[{},{"qty":3}, {} ]}`,
			map[string]any{"rows": []any{map[string]any{"qty": int64(1)}, map[string]any{"qty": int64(3)}, map[string]any{"qty": int64(1)}}},
			`{"rows":[{"qty":1},{"qty":3}, {"qty":1} ]}`},
		{"values of a map are completed", nested, `{"by_name":{"x":{}}}`,
			map[string]any{"by_name": map[string]any{"x": map[string]any{"on": true}}}, `{"by_name":{"x":{"on":true}}}`},
		{"a default that is an object is completed", `{"properties":{"f":{"default":{"a":1},"properties":{"a":{"type":"integer"},"b":{"default":[]}}}}}`, `{}`,
			map[string]any{"f": map[string]any{"a": int64(1), "b": []any{}}}, `{"f":{"a":1,"b":[]}}`},
		{"references are followed", `{"properties":{"p":{"$ref":"#/$defs/page"}},"$defs":{"page":{"properties":{"size":{"type":"integer","default":20}},"default":{}}}}`, `{}`,
			map[string]any{"p": map[string]any{"size": int64(20)}}, `{"p":{"size":20}}`},
		{"allOf is followed", `{"allOf":[{"properties":{"a":{"default":1}}},{"properties":{"b":{"type":"integer","default":2}}}]}`, `{}`,
			map[string]any{"a": 1.0, "b": int64(2)}, `{"a":1,"b":2}`},
		{"what stands beside null is followed", `{"properties":{"o":{"anyOf":[{"type":"null"},{"type":"object","properties":{"n":{"type":"integer","default":4}}}]}}}`, `{"o":{}}`,
			map[string]any{"o": map[string]any{"n": int64(4)}}, `{"o":{"n":4}}`},
		{"alternatives are not completed", `{"anyOf":[{"properties":{"a":{"default":1}}},{"properties":{"b":{"default":2}}}]}`, `{}`, map[string]any{}, `{}`},
		{"recursion is completed as deep as the value goes", `{"properties":{"name":{"default":"?"},"child":{"$ref":"#"}}}`, `{"child":{"child":{"name":"z"}}}`,
			map[string]any{"name": "?", "child": map[string]any{"name": "?", "child": map[string]any{"name": "z"}}},
			`{"child":{"child":{"name":"z"},"name":"?"},"name":"?"}`},
		{"numbers are integers where the schema says so", `{"properties":{"i":{"type":"integer"},"n":{"type":"number"},"both":{"type":["integer","number"]},"or_null":{"type":["integer","null"]},"tuple":{"prefixItems":[{"type":"integer"}],"items":{"type":"number"}}}}`,
			`{"i":2,"n":2,"both":2,"or_null":2,"free":2,"tuple":[2,2]}`,
			map[string]any{"i": int64(2), "n": 2.0, "both": 2.0, "or_null": int64(2), "free": 2.0, "tuple": []any{int64(2), 2.0}},
			`{"i":2,"n":2,"both":2,"or_null":2,"free":2,"tuple":[2,2]}`},
		{"integers are exact", `{"additionalProperties":{"type":"integer"}}`,
			`{"a":9007199254740993,"b":-9223372036854775808,"c":5.0,"d":1e2,"e":9.007199254740993e15,"f":-0.0,"g":120E-1}`,
			map[string]any{"a": int64(9007199254740993), "b": int64(math.MinInt64), "c": int64(5), "d": int64(100), "e": int64(9007199254740993), "f": int64(0), "g": int64(12)},
			`{"a":9007199254740993,"b":-9223372036854775808,"c":5,"d":100,"e":9007199254740993,"f":0,"g":12}`},
		{"escapes in names and values", `{"properties":{"é":{"type":"integer"}}}`, `{"\u00e9":1,"x":"\ud83d\ude00\"\\\/\b\f\n\r\t"}`,
			map[string]any{"é": int64(1), "x": "😀\"\\/\b\f\n\r\t"}, `{"\u00e9":1,"x":"\ud83d\ude00\"\\\/\b\f\n\r\t"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, found := mustCompile(t, row.schema).Decode([]byte(row.text), nil)
			if diff := cmp.Diff(row.value, got.Value); diff != "" || len(found) > 0 {
				t.Errorf("value (-want +got):\n%s%v", diff, found)
			}
			if string(got.Text) != row.out {
				t.Errorf("text %s, want %s", got.Text, row.out)
			}
		})
	}
}

func TestDecode_extra(t *testing.T) {
	s := mustCompile(t, twoArguments)
	got, found := s.Decode([]byte(`{"customer_id":"C-1"}`), map[string]any{"tenant": "a<b", "scopes": []any{"x"}, "age": int64(3), "ratio": 0.5, "none": nil, "on": true})
	want := map[string]any{"customer_id": "C-1", "limit": int64(10), "tenant": "a<b", "scopes": []any{"x"}, "age": int64(3), "ratio": 0.5, "none": nil, "on": true}
	if diff := cmp.Diff(want, got.Value); diff != "" || len(found) > 0 {
		t.Errorf("value (-want +got):\n%s%v", diff, found)
	}
	if want := `{"customer_id":"C-1","limit":10,"age":3,"none":null,"on":true,"ratio":0.5,"scopes":["x"],"tenant":"a<b"}`; string(got.Text) != want {
		t.Errorf("text %s, want %s", got.Text, want)
	}
	if got, _ := mustCompile(t, `{}`).Decode(nil, map[string]any{"tenant": "a"}); string(got.Text) != `{"tenant":"a"}` {
		t.Errorf("text %s", got.Text)
	}
}

func TestDecode_extraFromCaller(t *testing.T) {
	for _, schema := range []string{`{"type":"object"}`, `{"type":"object","additionalProperties":false}`, `{"patternProperties":{"^t":{"type":"string"}}}`} {
		_, found := mustCompile(t, schema).Decode([]byte(`{"tenant":"mine"}`), map[string]any{"tenant": "theirs"})
		if diff := cmp.Diff([]Violation{{"/tenant", `unknown argument "tenant"`}}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", schema, diff)
		}
	}
}

func TestDecode_extraWithoutJSON(t *testing.T) {
	_, found := mustCompile(t, `{}`).Decode(nil, map[string]any{"bad": math.NaN(), "worse": func() {}})
	want := []Violation{{"/bad", "cannot be written as JSON"}, {"/worse", "cannot be written as JSON"}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecode_maxDefaults(t *testing.T) {
	s := mustCompile(t, `{"properties":{"l":{"items":{"properties":{"d":{"default":"`+strings.Repeat("x", 100_000)+`"}}}}}}`)
	if got, found := s.Decode([]byte(`{"l":[{},{}]}`), nil); len(found) > 0 || len(got.Text) < 200_000 {
		t.Errorf("%d bytes, %v", len(got.Text), found)
	}
	_, found := s.Decode([]byte(`{"l":[`+strings.Repeat("{},", 50)+`{}]}`), nil)
	if diff := cmp.Diff([]Violation{{"", "is too long once the defaults are filled in"}}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecode_defaultsAreCopies(t *testing.T) {
	s := mustCompile(t, `{"properties":{"list":{"default":[{"a":1}]}}}`)
	first, _ := s.Decode(nil, nil)
	first.Value["list"].([]any)[0].(map[string]any)["a"] = "changed"
	second, _ := s.Decode(nil, nil)
	if diff := cmp.Diff(map[string]any{"list": []any{map[string]any{"a": 1.0}}}, second.Value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecode_uncheckedText(t *testing.T) {
	s := mustCompile(t, twoArguments)
	for _, text := range []string{`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `[1`, `[1,`, `"a`, `"\`, `"\u12`, `"\ud800\u`, `"\x"`, `tru`, `nul`, `-`, `+1`, `.5`, `1e999`, `{} {}`, `{}x`, "\x00", "{}\x00", `{"a":1,"a":2}`, `,`} {
		if _, found := s.Decode([]byte(text), nil); len(found) != 1 || found[0].Path != "" {
			t.Errorf("Decode(%q) = %v", text, found)
		}
		if found := s.Validate([]byte(text)); len(found) == 0 {
			t.Errorf("Validate(%q) returns no violations", text)
		}
	}
}

func TestRaw(t *testing.T) {
	if raw := mustCompile(t, twoArguments).Raw(); string(raw) != twoArguments {
		t.Errorf("Raw() = %s", raw)
	}
}

func TestDecode_allocations(t *testing.T) {
	for _, row := range []struct {
		name, schema, text string
		budget             float64
	}{
		{"two arguments", twoArguments, `{"customer_id":"C-1042","limit":25}`, 6},
		{"one by default", twoArguments, `{"customer_id":"C-1042"}`, 8},
		{"five fields", fiveFields, `{"customer_id":"C-1042","limit":25,"since":"2026-07-28","status":"active","tags":["a","b","c"]}`, 17},
	} {
		s, text := mustCompile(t, row.schema), []byte(row.text)
		if n := testing.AllocsPerRun(100, func() {
			if _, found := s.Decode(text, nil); found != nil {
				t.Fatal(found)
			}
		}); n > row.budget {
			t.Errorf("%s: %v allocations, want at most %v", row.name, n, row.budget)
		}
	}
}

// FuzzDecode compares decoding with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"i":1,"o":{"i":2.0},"l":[1,"x",{"i":1e3}]}`, `{"\u0069":-0,"s":"\ud83d\ude00\n"}`, `{}`, `[]`, `{"i":99999999999999999999}`, ``, `{"a":1}x`} {
		f.Add([]byte(text))
	}
	const schema = `{"properties":{"i":{"type":"integer"},"d":{"default":[1,{}]},"o":{"$ref":"#"},"l":{"items":{"$ref":"#"}}}}`
	f.Fuzz(func(t *testing.T, text []byte) {
		s := mustCompile(t, schema)
		var want any
		valid := json.Unmarshal(text, &want) == nil
		args, found := s.Decode(text, nil)
		if len(found) > 0 {
			checkViolations(t, found)
			return
		}
		if !valid || !utf8.Valid(text) {
			return // only a limits check rejects it, such as a control character in a string
		}
		var got any
		if err := json.Unmarshal(args.Text, &got); err != nil {
			t.Fatalf("Decode(%s) gives %s: %v", text, args.Text, err)
		}
		if diff := cmp.Diff(got, plain(args.Value)); diff != "" {
			t.Fatalf("Decode(%s) gives %s and (-text +value):\n%s", text, args.Text, diff)
		}
		checkDecode(t, s, text)
	})
}

// plain returns a value as encoding/json decodes it.
func plain(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = plain(v[name])
		}
		return object
	}
	return v
}
