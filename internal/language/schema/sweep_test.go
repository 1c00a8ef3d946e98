package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// manyWords returns n different words separated by spaces.
func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("w" + strconv.Itoa(i) + " ")
	}
	return b.String()
}

// joined joins the results of piece for 0 to n-1 with commas.
func joined(n int, piece func(i int) string) string {
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = piece(i)
	}
	return strings.Join(pieces, ",")
}

func repeated(n int, open, inner, shut string) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
}

// largestSweep is the maximum number of repetitions in sweeps. Larger sizes show the same
// limits, and take minutes with the race detector.
func largestSweep() int {
	if os.Getenv("MCPD_LONG") != "" {
		return 1_000_000
	}
	return 10_000
}

// Constructs of schemas are nested and repeated 10 times or more. Compile accepts schemas that
// it can validate with, and reports why it rejects others.
func TestCompile_sizes(t *testing.T) {
	for _, row := range []struct {
		name   string
		schema func(n int) string
		// refused is part of the error for sizes of at least from.
		from    int
		refused string
	}{
		{"open brackets", func(n int) string { return strings.Repeat("[", n) }, 1, "the schema is"},
		{"nested not", func(n int) string { return repeated(n, `{"not":`, `{}`, `}`) }, 100, "the schema is"},
		{"nested items", func(n int) string { return repeated(n, `{"items":`, `{}`, `}`) }, 100, "the schema is"},
		{"nested properties", func(n int) string { return repeated(n, `{"properties":{"a":`, `{}`, `}}`) }, 100, "the schema is"},
		{"nested allOf", func(n int) string { return repeated(n, `{"allOf":[`, `{}`, `]}`) }, 100, "the schema is"},
		{"nested values", func(n int) string { return `{"enum":[` + repeated(n, `[`, ``, `]`) + `]}` }, 1000, "the schema is"},
		{"properties", func(n int) string {
			return `{"properties":{` + joined(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`
		}, 10_000, "the schema contains|the schema is longer"},
		{"alternatives", func(n int) string {
			return `{"anyOf":[` + joined(n, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, i) }) + `]}`
		}, 10_000, "the schema contains|the schema is longer"},
		{"a chain of references", func(n int) string {
			return `{"$ref":"#/$defs/d0","$defs":{` + joined(n, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) }) +
				fmt.Sprintf(`,"d%d":{}}}`, n)
		}, 10_000, "the schema contains|the schema is longer"},
		{"a circle of references", func(n int) string {
			return `{"$defs":{` + joined(n, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, (i+1)%n) }) + `}}`
		}, 1, "the schema"},
		{"dynamic references and anchors", func(n int) string {
			return `{"$defs":{` + joined(n, func(i int) string {
				return fmt.Sprintf(`"r%d":{"$dynamicRef":"u0#x"},"a%d":{"$id":"u%d","$dynamicAnchor":"x"}`, i, i, i)
			}) + `}}`
		}, 1000, "the schema is|dynamic references"},
		{"alternatives that double", func(n int) string {
			return `{"$ref":"#/$defs/d0","$defs":{` + joined(n, func(i int) string {
				return fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
			}) + fmt.Sprintf(`,"d%d":{"type":"string"}}}`, n)
		}, 10, ""},
		{"a choice", func(n int) string { return `{"enum":[` + joined(n, strconv.Itoa) + `]}` }, 100_000, "the schema is longer"},
		{"required members", func(n int) string {
			return `{"required":[` + joined(n, func(i int) string { return fmt.Sprintf(`"r%d"`, i) }) + `]}`
		}, 100_000, "the schema is longer"},
		{"unknown keywords", func(n int) string {
			return `{` + joined(n, func(i int) string { return fmt.Sprintf(`"typ%d":1`, i) }) + `}`
		}, 100_000, "the schema is longer"},
		{"mistakes", func(n int) string {
			return `{"properties":{` + joined(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":1}`, i) }) + `}}`
		}, 10, ""},
		{"a long pattern", func(n int) string { return `{"pattern":"` + strings.Repeat("a", n) + `"}` }, 10_000, ""},
		{"a nested pattern", func(n int) string { return `{"pattern":"` + repeated(n, "(", "", ")") + `"}` }, 1000, ""},
		{"a long number", func(n int) string { return `{"minimum":0.` + strings.Repeat("1", n) + `}` }, 1_000_000, ""},
		{"a long pointer", func(n int) string { return `{"$ref":"#` + strings.Repeat("/a", n) + `"}` }, 1, "the schema"},
		{"defaults in defaults", func(n int) string {
			return `{"properties":{"a":{"$ref":"#/$defs/d0","default":{}}},"$defs":{` + joined(n, func(i int) string {
				return fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d","default":{}},"b":{"$ref":"#/$defs/d%d","default":{}}}}`, i, i+1, i+1)
			}) + fmt.Sprintf(`,"d%d":{}}}`, n)
		}, 100, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			for n := 10; n <= largestSweep(); n *= 10 {
				s, list := Compile(json.RawMessage(row.schema(n)), diag.Range{}, nil)
				if (s == nil) != list.HasErrors() || len(list) > maxDiagnostics {
					t.Fatalf("%d times: schema %t with %d problems", n, s != nil, len(list))
				}
				if refused := n >= row.from; refused != (s == nil) {
					t.Errorf("%d times: rejected is %t: %.300v", n, s == nil, list)
				}
				if s == nil && !slices.ContainsFunc(strings.Split(row.refused, "|"), func(words string) bool { return strings.Contains(list[0].Summary, words) }) {
					t.Errorf("%d times: %.300v", n, list)
				}
			}
		})
	}
}

// gateSize is about the maximum size of client input, in bytes.
const gateSize = 4<<20 + 64

// Expensive values of the maximum input size, but with more tokens and levels, are validated
// with expensive schemas.
func TestValidate_sizes(t *testing.T) {
	// clause is a logical formula, as in tools with queries.
	const clause = `{"$ref":"#/$defs/f","$defs":{"f":{"oneOf":[
		{"type":"object","properties":{"op":{"const":"and"},"of":{"type":"array","items":{"$ref":"#/$defs/f"}}},"required":["op","of"],"additionalProperties":false},
		{"type":"object","properties":{"op":{"const":"or"},"of":{"type":"array","items":{"$ref":"#/$defs/f"}}},"required":["op","of"],"additionalProperties":false},
		{"type":"object","properties":{"op":{"const":"not"},"of":{"type":"array","items":{"$ref":"#/$defs/f"}}},"required":["op","of"],"additionalProperties":false},
		{"type":"object","properties":{"op":{"const":"is"},"field":{"type":"string"}},"required":["op","field"],"additionalProperties":false}]}}}`
	// doubling is such a formula without discriminators.
	const doubling = `{"$ref":"#/$defs/f","$defs":{"f":{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#/$defs/f"}}},
		{"type":"object","properties":{"a":{"$ref":"#/$defs/f"}}},{"type":"integer"}]}}}`
	for _, row := range []struct {
		name, schema string
		value        func(n int) string
		// words are the prefixes of the first message at each size from 10; the last one
		// applies to all larger sizes. "" means a valid value.
		words []string
	}{
		{"open brackets", `{}`, func(n int) string { return strings.Repeat("[", n) }, []string{"is not valid JSON", "is not valid JSON", "is nested"}},
		{"nested arrays", `{"items":{"$ref":"#"}}`, func(n int) string { return repeated(n, "[", "", "]") }, []string{"", "", "is nested"}},
		{"nested objects", `{"additionalProperties":{"$ref":"#"}}`, func(n int) string { return repeated(n, `{"a":`, "1", "}") }, []string{"", "", "is nested"}},
		{"different items", `{"uniqueItems":true}`, func(n int) string { return "[" + joined(n, strconv.Itoa) + "]" }, []string{""}},
		{"different objects", `{"uniqueItems":true}`, func(n int) string {
			return "[" + joined(n, func(i int) string { return fmt.Sprintf(`{"a":%d}`, i) }) + "]"
		}, []string{""}},
		{"equal items at the end", `{"uniqueItems":true}`, func(n int) string { return "[" + joined(n, strconv.Itoa) + `,0]` }, []string{"must not have equal items"}},
		{"wrong items", `{"items":{"type":"string"}}`, func(n int) string { return "[" + joined(n, strconv.Itoa) + "]" }, []string{"must be a string"}},
		{"items that contain nothing", `{"contains":{"type":"string","minLength":1}}`, func(n int) string { return "[" + joined(n, strconv.Itoa) + "]" },
			[]string{"must have at least 1 item"}},
		{"unknown members", `{"properties":{"name1":{}},"additionalProperties":false}`, func(n int) string {
			return "{" + joined(n, func(i int) string { return fmt.Sprintf(`"nam%d":1`, i) }) + "}"
		}, []string{"unknown member"}},
		{"members that match patterns", `{"patternProperties":{"^n[0-9]+$":{"type":"integer"},"9$":{"type":"integer"},"x":{}}}`, func(n int) string {
			return "{" + joined(n, func(i int) string { return fmt.Sprintf(`"n%d":1`, i) }) + "}"
		}, []string{"", "", "", "", "takes too long"}},
		{"text for a pattern", `{"pattern":"^C-[0-9]+$"}`, func(n int) string { return `"C-` + strings.Repeat("1", n) + `"` }, []string{""}},
		{"text for a large pattern", `{"pattern":"([a-z]{1,500}x)+y"}`, func(n int) string { return `"` + strings.Repeat("a", n) + `"` },
			[]string{"must match", "must match", "must match", "takes too long"}},
		{"text for a pattern beside unevaluatedItems", `{"unevaluatedItems":false,"pattern":"[a-z]{1,500}x"}`, func(n int) string { return `"` + strings.Repeat("a", n) + `"` },
			[]string{"must match", "must match", "must match", "takes too long"}},
		{"numbers for a small step beside unevaluatedItems", `{"unevaluatedItems":false,"items":{"multipleOf":1e-300}}`, func(n int) string {
			return "[" + joined(n, func(int) string { return "1.5e300" }) + "]"
		}, []string{"", "", "", "takes too long"}},
		{"nested objects with unevaluated members", `{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"b":{"$ref":"#"}}}],"unevaluatedProperties":false}`,
			func(n int) string { return repeated(n, `{"a":`, "{}", "}") }, []string{"", "", "is nested"}},
		{"nested alternatives that do not fit", `{"unevaluatedItems":false,"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
			func(n int) string { return repeated(n, `{"a":`, "[1]", "}") }, []string{"fits none", "fits none", "is nested"}},
		{"nested alternatives by dynamic references", `{"$dynamicAnchor":"n","anyOf":[{"properties":{"a":{"$dynamicRef":"#n"}}},{"properties":{"a":{"$dynamicRef":"#n"}}}],"unevaluatedItems":false}`,
			func(n int) string { return repeated(n, `{"a":`, "[1]", "}") }, []string{"fits none", "takes too long", "is nested"}},
		{"items for alternatives beside unevaluatedItems", `{"unevaluatedItems":false,"items":{"anyOf":[{"properties":{"a":true}},{"properties":{"b":true}}]}}`, func(n int) string {
			return "[" + joined(n, func(int) string { return "{}" }) + "]"
		}, []string{""}},
		{"text for a format", `{"format":"uri"}`, func(n int) string { return `"http://` + strings.Repeat("a", n) + `"` }, []string{""}},
		{"text for a regular expression", `{"format":"regex"}`, func(n int) string { return `"` + repeated(n, "(", "", ")") + `"` }, []string{"", "", "must be a regular", "must be a regular", "takes too long"}},
		{"a long text", `{"maxLength":3}`, func(n int) string { return `"` + strings.Repeat("é", n) + `"` }, []string{"must be at most 3"}},
		{"digits", `{"type":"integer"}`, func(n int) string { return "1" + strings.Repeat("0", n) }, []string{"", "", "is not valid JSON"}},
		{"digits of a multiple", `{"multipleOf":0.01}`, func(n int) string { return "1." + strings.Repeat("0", n) }, []string{""}},
		{"numbers for a small step", `{"items":{"multipleOf":1e-300}}`, func(n int) string { return "[" + joined(n, func(int) string { return "1.5e300" }) + "]" },
			[]string{"", "", "", "takes too long"}},
		{"a formula", clause, func(n int) string { return repeated(n, `{"op":"not","of":[`, `{"op":"is","field":"x"}`, `]}`) }, []string{"", "", "is nested"}},
		{"a formula that is wrong inside", clause, func(n int) string { return repeated(n, `{"op":"not","of":[`, `{"op":"is"}`, `]}`) },
			[]string{"is required", "is required", "is nested"}},
		{"a wide formula", clause, func(n int) string {
			return `{"op":"and","of":[` + joined(n, func(int) string { return `{"op":"is","field":"x"}` }) + `]}`
		},
			[]string{""}},
		{"alternatives that recurse", doubling, func(n int) string { return repeated(n, `{"a":`, `"x"`, `}`) }, []string{"fits none", "takes too long", "is nested"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := mustCompile(t, row.schema)
			for i, n := 0, 10; n <= largestSweep(); i, n = i+1, n*10 {
				text := []byte(row.value(n))
				if len(text) > gateSize {
					continue
				}
				want := row.words[min(i, len(row.words)-1)]
				found := s.Validate(text)
				if got := first(found); (want == "") != (got == "") || !strings.HasPrefix(got, want) {
					t.Errorf("%d times: %.200q, want %q", n, got, want)
				}
				if _, found := s.Decode(text, nil); len(found) > maxViolations || slices.ContainsFunc(found, func(v Violation) bool { return len(v.Message) > 2000 }) {
					t.Errorf("%d times: %d violations: %.500v", n, len(found), found)
				}
			}
		})
	}
}

// A dynamic reference must cost steps if thousands of resources are entered.
func TestValidate_manyResources(t *testing.T) {
	const n = 1500
	s := mustCompile(t, `{"$id":"http://h/","$ref":"u0","$defs":{`+joined(n, func(i int) string {
		return fmt.Sprintf(`"a%d":{"$id":"u%d","$ref":"u%d"}`, i, i, i+1)
	})+fmt.Sprintf(`,"l":{"$id":"u%d","items":{"$ref":"z"}}`, n)+`,"z":{"$id":"z","$dynamicRef":"#x","$defs":{"y":{"$dynamicAnchor":"x","type":"integer"}}}}}`)
	if found := s.Validate([]byte("[" + joined(10, strconv.Itoa) + "]")); len(found) > 0 {
		t.Errorf("10 items: %v", found)
	}
	if got := first(s.Validate([]byte("[" + joined(10_000, strconv.Itoa) + "]"))); !strings.HasPrefix(got, "takes too long") {
		t.Errorf("10,000 items: %q", got)
	}
}

// Names for messages must not make Compile quadratic.
func TestCompile_unevaluatedChain(t *testing.T) {
	const n = 1500
	raw := `{"$ref":"#/$defs/d0","$defs":{` + joined(n, func(i int) string {
		return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d","unevaluatedProperties":false}`, i, i+1)
	}) + fmt.Sprintf(`,"d%d":{"properties":{"name":{}}}}}`, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := mustCompile(t, raw)
	runtime.ReadMemStats(&after)
	if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 100 {
		t.Errorf("Compile allocates %d MiB for a schema of %d bytes", taken, len(raw))
	}
	if got := first(s.Validate([]byte(`{"nam":1}`))); !strings.HasPrefix(got, "unknown member") {
		t.Errorf("unknown member: %q", got)
	}
}

func first(list []Violation) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Message
}

const twoArguments = `{"type":"object","properties":{"customer_id":{"type":"string","description":"Customer id, like C-1042","pattern":"^C-[0-9]+$"},
"limit":{"type":"integer","default":10,"minimum":1,"maximum":100}},"required":["customer_id"],"additionalProperties":false}`

const fiveFields = `{"type":"object","properties":{"customer_id":{"type":"string","description":"Customer id, like C-1042","pattern":"^C-[0-9]+$"},
"limit":{"type":"integer","default":10,"minimum":1,"maximum":100},"since":{"type":"string","format":"date"},
"status":{"type":"string","enum":["active","suspended"]},"tags":{"type":"array","items":{"type":"string","maxLength":40},"maxItems":20}},
"required":["customer_id"],"additionalProperties":false}`

func mustCompile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, problems := Compile(json.RawMessage(raw), diag.Range{}, nil)
	if len(problems) > 0 {
		t.Fatalf("%.300s: %v", raw, problems)
	}
	return s
}

func BenchmarkCompile(b *testing.B) {
	for _, row := range []struct{ name, raw string }{{"two arguments", twoArguments}, {"five fields", fiveFields}} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustCompile(b, row.raw)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, row := range []struct{ name, raw, text string }{
		{"two arguments", twoArguments, `{"customer_id":"C-1042","limit":25}`},
		{"one of two by default", twoArguments, `{"customer_id":"C-1042"}`},
		{"five fields", fiveFields, `{"customer_id":"C-1042","limit":25,"since":"2026-07-28","status":"active","tags":["a","b","c"]}`},
		{"a wrong one", twoArguments, `{"customer_id":"1042","limt":25}`},
		{"10,000 items", `{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}`,
			`{"tags":["` + strings.Join(strings.Fields(manyWords(10_000)), `","`) + `"]}`},
	} {
		b.Run(row.name, func(b *testing.B) {
			s, text := mustCompile(b, row.raw), []byte(row.text)
			b.ReportAllocs()
			for b.Loop() {
				s.Decode(text, nil)
			}
		})
	}
}
