package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

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

func BenchmarkArgs(b *testing.B) {
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
				s.Args(text, nil)
			}
		})
	}
}
