package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// violationRows are schemas, invalid values, and the expected messages with their paths.
var violationRows = []struct {
	name, schema, value string
	want                []string
}{
	{"types", `{"properties":{"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"},"z":{"type":"null"}}}`,
		`{"s":5,"i":"5","n":"5","b":1,"l":{},"o":[],"z":0.5}`,
		[]string{"/b: must be a boolean, not a number", "/i: must be an integer, not a string", "/l: must be an array, not an object", "/n: must be a number, not a string",
			"/o: must be an object, not an array", "/s: must be a string, not a number", "/z: must be null, not a number"}},
	{"an integer with a fraction", `{"type":"integer"}`, `1.5`, []string{": must be an integer, not a fraction"}},
	{"several types", `{"type":["null","string","integer"]}`, `true`, []string{": must be an integer, a string or null, not a boolean"}},
	{"a null", `{"type":"string"}`, `null`, []string{": must be a string, not null"}},
	{"limits of numbers", `{"items":{"minimum":1,"maximum":100}}`, `[0,1,100,100.5]`, []string{"/0: must be at least 1", "/3: must be at most 100"}},
	{"open limits", `{"items":{"exclusiveMinimum":0,"exclusiveMaximum":0.5}}`, `[0,0.25,0.5]`, []string{"/0: must be greater than 0", "/2: must be less than 0.5"}},
	{"large limits", `{"type":"integer","maximum":1e20,"minimum":-9007199254740993}`, `-9007199254740994`, []string{": must be at least -9007199254740993"}},
	{"multiples", `{"multipleOf":0.01}`, `1.005`, []string{": must be a multiple of 0.01"}},
	{"lengths of text count characters", `{"items":{"minLength":2,"maxLength":3}}`, `["é","éé","ééé","éééé"]`,
		[]string{"/0: must be at least 2 characters long", "/3: must be at most 3 characters long"}},
	{"one character", `{"minLength":1}`, `""`, []string{": must be at least 1 character long"}},
	{"patterns", `{"pattern":"^C-[0-9]+$"}`, `"c-1"`, []string{": must match the pattern ^C-[0-9]+$"}},
	{"formats", `{"format":"date"}`, `"28.7.2026"`, []string{": must be a date, like 2026-07-28"}},
	{"a choice", `{"enum":["a","b",3,null]}`, `"c"`, []string{`: must be one of "a", "b", 3, null`}},
	{"a constant", `{"const":{"a":["<"]}}`, `{}`, []string{`: must be {"a":["<"]}`}},
	{"counts of items", `{"properties":{"few":{"minItems":2},"many":{"maxItems":1}}}`, `{"few":[1],"many":[1,2]}`,
		[]string{"/few: must have at least 2 items", "/many: must have at most 1 item"}},
	{"equal items", `{"uniqueItems":true}`, `["a",{"x":[1,2],"y":1},{"y":1.0,"x":[1,2]}]`, []string{": must not have equal items, as those at 1 and 2 are"}},
	{"contains", `{"contains":{"type":"integer"}}`, `["a"]`, []string{": must have at least 1 item of the kind that the schema requires"}},
	{"counted contains", `{"contains":{"type":"integer"},"minContains":2,"maxContains":3}`, `[1,2,3,4]`, []string{": must have at most 3 items of the kind that the schema requires"}},
	{"required members", `{"required":["a","b/c"]}`, `{}`, []string{"/a: is required", "/b~1c: is required"}},
	{"dependent members", `{"dependentRequired":{"card":["name"]}}`, `{"card":1}`, []string{`/name: is required when "card" is given`}},
	{"unknown members", `{"properties":{"limit":{},"page":{}},"additionalProperties":false}`, `{"limt":1,"zzz":2,"page":3}`,
		[]string{`/limt: unknown member "limt" (did you mean "limit"?)`, `/zzz: unknown member "zzz"`}},
	{"counts of members", `{"minProperties":1}`, `{}`, []string{": must have at least 1 member"}},
	{"names", `{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A":1}`, []string{"/A: is a name that is not allowed: it must match the pattern ^[a-z]+$"}},
	{"false", `{"properties":{"a":false}}`, `{"a":1}`, []string{"/a: is not allowed"}},
	{"not", `{"not":{"type":"string"}}`, `"x"`, []string{": is of a kind that the schema excludes"}},
	{"alternatives by type", `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`, `true`, []string{": must be an integer, a string or null, not a boolean"}},
	{"the one alternative of the right type", `{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]}`, `0`, []string{": must be at least 1"}},
	{"the one alternative that is meant", `{"oneOf":[{"properties":{"op":{"const":"add"},"n":{"type":"integer"}},"required":["op"]},{"properties":{"op":{"const":"del"}},"required":["op","id"]}]}`,
		`{"op":"del"}`, []string{"/id: is required"}},
	{"no alternative is meant", `{"anyOf":[{"properties":{"op":{"const":"add"}}},{"properties":{"op":{"const":"del"}}}]}`, `{"op":"x"}`,
		[]string{`: fits none of the 2 alternatives that the schema offers: /op must be "add"; or /op must be "del"`}},
	{"too many alternatives fit", `{"oneOf":[{"type":"integer"},{"minimum":1}]}`, `5`, []string{": fits more than one of the alternatives that the schema offers; it must fit exactly one"}},
	{"conditions", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{"/b: is required"}},
	{"references", `{"$ref":"#/$defs/x","$defs":{"x":{"minimum":1}}}`, `0`, []string{": must be at least 1"}},
	{"everything at once, in order", `{"allOf":[{"minLength":3},{"pattern":"^a"}],"maxLength":1}`, `"bb"`,
		[]string{": must be at least 3 characters long", ": must be at most 1 character long", ": must match the pattern ^a"}},
}

func TestViolations_messages(t *testing.T) {
	for _, row := range violationRows {
		t.Run(row.name, func(t *testing.T) {
			got := told(mustCompile(t, row.schema).Validate([]byte(row.value)))
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func told(list []Violation) []string {
	var lines []string
	for _, v := range list {
		lines = append(lines, v.Path+": "+v.Message)
	}
	return lines
}

func TestViolations_unevaluatedProperties(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"limit":{"type":"integer","minimum":1}},"unevaluatedProperties":false}`)
	_, found := s.Decode([]byte(`{"limit":0,"limt":1}`), nil)
	want := []string{"/limit: must be at least 1", `/limt: unknown argument "limt" (did you mean "limit"?)`}
	if diff := cmp.Diff(want, told(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestViolations_arguments(t *testing.T) {
	s := mustCompile(t, `{"properties":{"limit":{},"page":{"properties":{"size":{}},"additionalProperties":false}},"additionalProperties":false}`)
	_, found := s.Decode([]byte(`{"limt":1,"page":{"sise":1}}`), nil)
	want := []string{`/limt: unknown argument "limt" (did you mean "limit"?)`, `/page/sise: unknown member "sise" (did you mean "size"?)`}
	if diff := cmp.Diff(want, told(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{`[]`: "must be an object, not an array", `null`: "must be an object, not null", `{"a":1} 2`: "is not valid JSON"} {
		_, found := s.Decode([]byte(text), nil)
		if diff := cmp.Diff([]Violation{{"", want}}, found); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestViolations_integerRange(t *testing.T) {
	s := mustCompile(t, `{"properties":{"ids":{"items":{"type":"integer"}}}}`)
	text := []byte(`{"ids":[9223372036854775807,9223372036854775808,-1e19]}`)
	_, found := s.Decode(text, nil)
	const words = "must be an integer from -9223372036854775808 to 9223372036854775807"
	if diff := cmp.Diff([]Violation{{"/ids/1", words}, {"/ids/2", words}}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := s.Validate(text); found != nil {
		t.Errorf("Value = %v", found)
	}
}

func TestViolations_noValues(t *testing.T) {
	secret := "hunter2" + strings.Repeat("x", 100_000)
	for _, schema := range []string{`{"properties":{"a":{"type":"integer"}}}`, `{"properties":{"a":{"maxLength":1}}}`, `{"properties":{"a":{"enum":["x"]}}}`,
		`{"properties":{"a":{"pattern":"^y"}}}`, `{"properties":{"a":{"format":"date"}}}`, `{"properties":{"a":{"const":1}}}`, `{"properties":{"a":{"not":{"type":"string"}}}}`,
		`{"properties":{"a":{"anyOf":[{"const":1},{"const":2}]}}}`, `{"unevaluatedProperties":{"type":"integer"}}`} {
		found := mustCompile(t, schema).Validate([]byte(`{"a":"` + secret + `"}`))
		if len(found) == 0 || strings.Contains(fmt.Sprint(found), "hunter2") {
			t.Errorf("%s: %.200v", schema, found)
		}
	}
	found := mustCompile(t, `{"additionalProperties":false}`).Validate([]byte(`{"` + strings.Repeat("é", 50_000) + `":1}`))
	if len(found) != 1 || len(found[0].Path) > 200 || len(found[0].Message) > 200 {
		t.Errorf("a long name is not truncated: %.500v", found)
	}
}

func TestViolations_max(t *testing.T) {
	text := []byte("[" + strings.Repeat("0,", 99) + "0]")
	found := mustCompile(t, `{"items":{"minimum":1}}`).Validate(text)
	if len(found) != 50 || found[0].Path != "/0" {
		t.Errorf("%d violations: %v", len(found), found)
	}
}

func TestViolations_longEnum(t *testing.T) {
	var values []string
	for i := range 30 {
		values = append(values, fmt.Sprintf("%q", strings.Repeat(string(rune('a'+i%26)), 5+i/26)))
	}
	found := mustCompile(t, `{"enum":[`+strings.Join(values, ",")+`]}`).Validate([]byte(`"zzzz"`))
	if len(found) != 1 || !strings.HasSuffix(found[0].Message, ` or 10 others (did you mean "zzzzz"?)`) {
		t.Errorf("%v", found)
	}
}

func TestFormats(t *testing.T) {
	for _, row := range []struct{ format, good, bad string }{
		{"date", "2026-07-28 2024-02-29 0000-01-01 2000-02-29", "2026-7-28 2026-13-01 2026-00-10 2026-04-31 2023-02-29 1900-02-29 2026-07-28Z +026-07-28 20260728 2026/07/28"},
		{"time", "14:30:00Z 00:00:00z 23:59:60Z 14:30:00.25+02:00 01:29:60+01:30 22:59:60-01:00", "14:30:00 24:00:00Z 14:60:00Z 14:30:61Z 14:30:60Z 14:30:00.Z 14:30Z +4:30:00Z 14:30:00+24:00 14:30:00+0200 14:30:00+02:60 14.30.00Z"},
		{"date-time", "2026-07-28T14:30:00Z 2026-07-28t14:30:00.123-05:00", "2026-07-28 2026-07-28T14:30:00 2026-07-28_14:30:00Z 2026-02-30T14:30:00Z 2026-07-28T25:00:00Z"},
		{"duration", "P1Y P1Y2M3DT4H5M6S PT36H P2W PT1M P3DT4H", "P PT P1 1Y P1S PT1D P1D2Y P1YT P2W3D PW P1.5D P-1D P1Y2D PT1H2S P１Y"},
		{"email", `name@example.com a+b@x.co "a\"b"@x.co a@[192.0.2.1] a@[IPv6:::1]`, `name @x.co a@ a@b@c .a@x.co a.@x.co a..b@x.co a@-x.co é@x.co a@[1.2.3] "a"b"@x.co "a\"@x.co ` + strings.Repeat("a", 65) + "@x.co"},
		{"idn-email", "é@bücher.example name@example.com", "é @x é@"},
		{"hostname", "example.com a xn--bcher-kva.example 1.2.3.4 a-b", "-a a- a..b .a a. a_b bücher.example " + strings.Repeat("a", 64) + " " + strings.Repeat("a.", 127) + "aa"},
		{"idn-hostname", "bücher.example 例え。テスト example.com", "-bücher bücher- bücher..x"},
		{"ipv4", "192.0.2.1 0.0.0.0 255.255.255.255", "256.0.0.1 1.2.3 1.2.3.4.5 01.2.3.4 +1.2.3.4 1.2.3.x 1.2.3.4/8 ::1"},
		{"ipv6", "::1 2001:db8::1 ::ffff:192.0.2.1 1:2:3:4:5:6:7:8", "1.2.3.4 ::1%eth0 12345:: 1:2:3:4:5:6:7 ::1/64 :::"},
		{"uri", "https://u:p@example.com:8080/a/b;c?d=e&f#g mailto:a@b.c urn:x:y http://[::1]:80/ http://[v1.a]/ file:///x data:text/plain,%20", "/a a.b // http://a[b http://[::1 http://a:b/ http://[1]/ http://a|b 1a:b http://%zz http://%4 http://é/ a\\b: http://x]/ http://[::1]x/"},
		{"uri-reference", "/a?b#c a/b ?x # //host/x https://x ./a:b", "\\a a|b 1:b/c é %x //[v1.a"},
		{"iri", "https://bücher.example/é?ü#ö", "é /é"},
		{"iri-reference", "/é #é bücher", "\\é |é"},
		{"uri-template", "/orders/{id} /{+path,x}{?q*,n:3}{&a.b} {a%20b} x'y é", "{ } {} {a {{a}} {a:0} {a:12345} {a:01} {a..b} {.a.} {a-b} a<b a\\b"},
		{"uuid", "123e4567-e89b-12d3-a456-426614174000 123E4567-E89B-12D3-A456-426614174000", "123e4567e89b12d3a456426614174000 123e4567-e89b-12d3-a456-42661417400g {123e4567-e89b-12d3-a456-426614174000} 123e4567-e89b-12d3-a4564266-14174000"},
		{"regex", "^a+$ [a-z]{2} (?i)x \\d", "( [ a{2,1} (?=x) \\1 *"},
		{"json-pointer", "/a/b /~0~1 / /é", "a /~ /~2 #/a"},
		{"relative-json-pointer", "0 1/a 0# 10/~0", "a -1 01 /a 1~ +1/a 0## 0#a"},
	} {
		f := formats[row.format]
		for _, s := range strings.Fields(row.good) {
			if !f.valid(s) {
				t.Errorf("%s rejects %q", row.format, s)
			}
		}
		for _, s := range strings.Fields(row.bad) {
			if f.valid(s) {
				t.Errorf("%s accepts %q", row.format, s)
			}
		}
	}
}

// Megabytes of text take counted steps, or are not read.
func TestFormats_longTexts(t *testing.T) {
	digits := strings.Repeat("1", 1<<20)
	for _, row := range []struct{ format, text string }{
		{"time", "14:30:00." + digits}, {"date-time", "2026-07-28T14:30:00." + digits}, {"duration", "P" + digits},
		{"uri-template", digits + "{"}, {"json-pointer", digits + "~"}, {"relative-json-pointer", digits + "~"},
	} {
		branches := strings.Repeat(fmt.Sprintf(`{"format":%q},`, row.format), 64)
		s := mustCompile(t, `{"anyOf":[`+strings.TrimSuffix(branches, ",")+`]}`)
		if got := FormatViolations(s.Validate([]byte(`"` + row.text + `"`))); got != tooCostly {
			t.Errorf("64 times %s: got %q, want %q", row.format, got, tooCostly)
		}
	}
	for format, text := range map[string]string{"date": "2026-07-28" + digits, "uri": strings.Repeat("a", 1<<20) + ":"} {
		if n := testing.AllocsPerRun(10, func() { formats[format].valid(text) }); n > 0 {
			t.Errorf("%s: %v allocations", format, n)
		}
	}
}

func TestFormats_emptyString(t *testing.T) {
	for name, f := range formats {
		want := name == "uri-reference" || name == "iri-reference" || name == "uri-template" || name == "json-pointer" || name == "regex"
		if got := f.valid(""); got != want {
			t.Errorf("%s: valid is %t, want %t", name, got, want)
		}
	}
}

// FuzzFormats checks that any text is safe for a format.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{"", "P1Y", "a@[IPv6:::1]", "http://[::1]:80/%20?#", "{+a,b:3}", "23:59:60Z", "\"\\\"@x", "é。x", "%", "[", "0#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, format := range formats {
			if format.valid(s) != format.valid(strings.Clone(s)) {
				t.Errorf("%s has different results for %q", name, s)
			}
		}
		if isDateTime(s) && (!isDate(s[:10]) || !isTime(s[11:])) || isURI(s) && !isURIReference(s) || isEmail(s) && !isIDNEmail(s) || isHostname(s) && !isIDNHostname(s) {
			t.Errorf("the formats of %q contradict each other", s)
		}
	})
}
