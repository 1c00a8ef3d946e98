package mcp

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeHeader(t *testing.T) {
	for _, test := range []struct {
		name, value, want string
		ok                bool
	}{
		{"plain text", "us-west1", "us-west1", true},
		{"spaces and tabs inside", "a b\tc", "a b\tc", true},
		{"base64", "=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界", true},
		{"base64 twice", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?=", true},
		{"empty base64", "=?base64??=", "", true},
		{"prefix only", "=?base64?SGVsbG8=", "=?base64?SGVsbG8=", true},
		{"suffix only", "SGVsbG8=?=", "SGVsbG8=?=", true},
		{"upper-case marker", "=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", true},
		{"missing padding", "=?base64?SGVsbG8?=", "", false},
		{"invalid base64 character", "=?base64?SGVs!!!bG8=?=", "", false},
		{"line break", "=?base64?SGVs\r\nbG8=?=", "", false},
		{"trailing bits", "=?base64?SGVsbG9=?=", "", false},
		{"not ASCII", "caf\xc3\xa9", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := decodeHeader(test.value)
			if ok != test.ok || ok && got != test.want {
				t.Errorf("decodeHeader = %q, %v; want %q, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

func TestSameValue(t *testing.T) {
	for _, test := range []struct {
		name, header, body string
		want               bool
	}{
		{"same text", "eu", `"eu"`, true},
		{"escaped text", "eu", `"\u0065u"`, true},
		{"other case", "EU", `"eu"`, false},
		{"same integer", "42", `42`, true},
		{"integer with fraction", "42.0", `42`, true},
		{"integer with exponent", "42", `4.2e1`, true},
		{"other integer", "43", `42`, false},
		{"integer as text", "42", `"42"`, true},
		{"text for a number", "four", `4`, false},
		{"NaN", "NaN", `0`, false},
		{"hexadecimal", "0x10", `16`, false},
		{"unsafe integer", "9007199254740993", `9007199254740992`, false},
		{"boolean", "true", `true`, true},
		{"capitalized boolean", "True", `true`, false},
		{"other boolean", "false", `true`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := sameValue(test.header, []byte(test.body)); got != test.want {
				t.Errorf("sameValue(%q, %s) = %v", test.header, test.body, got)
			}
		})
	}
}

func TestMirror_check(t *testing.T) {
	mirrors, err := findMirrors([]byte(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"deep":{"type":"object","properties":{"level":{"type":"integer","x-mcp-header":"LEVEL"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, arguments string
		header          http.Header
		want            bool
	}{
		{"both match", `{"region":"eu","deep":{"level":1}}`, http.Header{"Mcp-Param-Region": {"eu"}, "Mcp-Param-Level": {"1"}}, true},
		{"no argument, no header", `{}`, http.Header{}, true},
		{"no arguments", ``, http.Header{}, true},
		{"null argument", `{"region":null}`, http.Header{}, true},
		{"missing", `{"region":"eu"}`, http.Header{}, false},
		{"missing nested header", `{"deep":{"level":1}}`, http.Header{}, false},
		{"superfluous", `{}`, http.Header{"Mcp-Param-Region": {"eu"}}, false},
		{"twice", `{"region":"eu"}`, http.Header{"Mcp-Param-Region": {"eu", "eu"}}, false},
		{"unrelated header", `{}`, http.Header{"Mcp-Param-Other": {"eu"}}, true},
		{"object argument", `{"region":{}}`, http.Header{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var fault *fault
			for i := range mirrors {
				if f := mirrors[i].check(test.header, []byte(test.arguments)); f != nil {
					fault = f
				}
			}
			if (fault == nil) != test.want {
				t.Errorf("fault = %v", fault)
			}
			if fault != nil && (fault.Code != codeHeaderMismatch || fault.refusal != Malformed) {
				t.Errorf("fault = %+v", fault)
			}
		})
	}
}

func TestFindMirrors_invalid(t *testing.T) {
	property := func(schema string) string { return `{"type":"object","properties":{"p":` + schema + `}}` }
	for _, test := range []struct{ name, schema, want string }{
		{"empty", property(`{"type":"string","x-mcp-header":""}`), "rest of a header's name"},
		{"not a string", property(`{"type":"string","x-mcp-header":1}`), "rest of a header's name"},
		{"not a token", property(`{"type":"string","x-mcp-header":"a b"}`), "rest of a header's name"},
		{"line break", property(`{"type":"string","x-mcp-header":"a\r\nb"}`), "rest of a header's name"},
		{"number property", property(`{"type":"number","x-mcp-header":"A"}`), "a string, an integer or a boolean"},
		{"property without type", property(`{"x-mcp-header":"A"}`), "a string, an integer or a boolean"},
		{"at the root", `{"type":"object","x-mcp-header":"A"}`, "only \"properties\" lead to"},
		{"in items", property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), "only \"properties\" lead to"},
		{"in a branch", property(`{"anyOf":[{"type":"string","x-mcp-header":"A"}]}`), "only \"properties\" lead to"},
		{"in a definition", `{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`, "only \"properties\" lead to"},
		{"below a branch", property(`{"if":{"properties":{"q":{"type":"string","x-mcp-header":"A"}}}}`), "only \"properties\" lead to"},
		{"duplicate header", `{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"A"},"q":{"type":"string","x-mcp-header":"a"}}}`, "two properties"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := findMirrors([]byte(test.schema))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestFindMirrors_ignoresValues(t *testing.T) {
	mirrors, err := findMirrors([]byte(`{"type":"object",
		"properties":{"x-mcp-header":{"type":"string","x-mcp-header":"Real"}},
		"enum":[{"x-mcp-header":""}],"default":{"x-mcp-header":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []mirror{{header: "Mcp-Param-Real", path: []string{"x-mcp-header"}}}
	if diff := cmp.Diff(want, mirrors, cmp.AllowUnexported(mirror{})); diff != "" {
		t.Error(diff)
	}
}
