package jsonguard

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
)

// unbounded returns limits that no text of the sweeps reaches, to test the scanner
// itself.
func unbounded() Limits { return Limits{Bytes: 1 << 30, Depth: 1 << 30, Tokens: 1 << 30} }

func quotedName(i int) string { return `"name` + strconv.Itoa(i) + `"` }

// objectOf returns an object of n distinct names.
func objectOf(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quotedName(i) + ":0")
	}
	b.WriteByte('}')
	return b.String()
}

// wideThenNarrow returns an object whose n members are objects of 20 names each.
func wideThenNarrow(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quotedName(i) + ":" + objectOf(20))
	}
	b.WriteByte('}')
	return b.String()
}

// Repeats and nests each construct of JSON 10 to 1,000,000 times. Each text has one
// known result with the limits for clients and one without limits. No text may crash
// the process or take more than linear time.
func TestCheck_sizes(t *testing.T) {
	constructs := []struct {
		name string
		text func(n int) string
		// client is the result for clients from size `from` on; free is the result
		// without limits at every size.
		client Kind
		from   int
		free   Kind
	}{
		{"open brackets", func(n int) string { return strings.Repeat("[", n) }, TooDeep, 100, Syntax},
		{"open objects", func(n int) string { return strings.Repeat(`{"a":`, n) }, TooDeep, 100, Syntax},
		{"nested arrays", func(n int) string { return nested(n, "[", "]") }, TooDeep, 100, 0},
		{"nested objects", func(n int) string { return nested(n, `{"a":[`, `]}`) }, TooDeep, 100, 0},
		{"closing brackets", func(n int) string { return "[" + strings.Repeat("]", n) }, Trailing, 10, Trailing},
		{"white space", func(n int) string { return strings.Repeat(" \n", n) + "1" }, 0, 0, 0},
		{"white space alone", func(n int) string { return strings.Repeat("\t\r", n) }, Syntax, 10, Syntax},
		{"elements", func(n int) string { return "[" + strings.Repeat("1,", n) + "1]" }, TooMany, 100_000, 0},
		{"empty arrays", func(n int) string { return "[" + strings.Repeat("[],", n) + "1]" }, TooMany, 100_000, 0},
		{"commas", func(n int) string { return "[" + strings.Repeat(",", n) }, Syntax, 10, Syntax},
		{"colons", func(n int) string { return `{"a"` + strings.Repeat(":", n) }, Syntax, 10, Syntax},
		{"distinct names", objectOf, TooMany, 100_000, 0},
		{"duplicate names", func(n int) string { return `{` + strings.Repeat(`"a":1,`, n) + `"b":1}` }, DuplicateKey, 10, DuplicateKey},
		{"objects in an object", func(n int) string { return wideThenNarrow(n / 100) }, TooMany, 1_000_000, 0},
		{"one long string", func(n int) string { return `"` + strings.Repeat("x", n) + `"` }, 0, 0, 0},
		{"one long string of any script", func(n int) string { return `"` + strings.Repeat("€", n) + `"` }, 0, 0, 0},
		{"unterminated string", func(n int) string { return `"` + strings.Repeat("x", n) }, Syntax, 10, Syntax},
		{"escapes", func(n int) string { return `"` + strings.Repeat(`\n`, n) + `"` }, 0, 0, 0},
		{"backslashes", func(n int) string { return `"` + strings.Repeat(`\\`, n) + `\` }, Syntax, 10, Syntax},
		{"unicode escapes", func(n int) string { return `"` + strings.Repeat(`\u00e9`, n) + `"` }, 0, 0, 0},
		{"one long name", func(n int) string { return `{"` + strings.Repeat("x", n) + `":1}` }, 0, 0, 0},
		{"16 long names", longNames, 0, 0, 0},
		{"one long escaped name", func(n int) string { return `{"` + strings.Repeat(`\t`, n) + `":1}` }, 0, 0, 0},
		{"digits", func(n int) string { return strings.Repeat("9", n) }, BadNumber, 1000, BadNumber},
		{"digits after the point", func(n int) string { return "0." + strings.Repeat("9", n) }, 0, 0, 0},
		{"zeros after the point", func(n int) string { return "0." + strings.Repeat("0", n) + "1" }, 0, 0, 0},
		{"leading zeros", func(n int) string { return strings.Repeat("0", n) }, Syntax, 10, Syntax},
		{"minus signs", func(n int) string { return strings.Repeat("-", n) }, Syntax, 10, Syntax},
		{"zeros of an exponent", func(n int) string { return "1e" + strings.Repeat("0", n) + "1" }, 0, 0, 0},
		{"digits of an exponent", func(n int) string { return "0e" + strings.Repeat("9", n) }, BadNumber, 10, BadNumber},
		{"invalid UTF-8", func(n int) string { return `"` + strings.Repeat("\xff", n) + `"` }, BadUTF8, 10, BadUTF8},
		{"NUL bytes", func(n int) string { return strings.Repeat("\x00", n) }, Syntax, 10, Syntax},
		{"values in a row", func(n int) string { return strings.Repeat("{} ", n) }, Trailing, 10, Trailing},
	}
	largest := 1_000_000
	if testing.Short() {
		largest = 10_000
	}
	for _, c := range constructs {
		t.Run(c.name, func(t *testing.T) {
			for n := 10; n <= largest; n *= 10 {
				text := []byte(c.text(n))
				if c.from == 0 || n >= c.from {
					want := c.client
					if len(text) > Client().Bytes {
						want = TooLarge
					}
					if kind := kindOf(Check(text, Client())); kind != want {
						t.Errorf("%d times, for clients: kind %d, want %d", n, kind, want)
					}
				}
				want := c.free
				if want == BadNumber && c.client == BadNumber && n < c.from {
					want = 0
				}
				if kind := kindOf(Check(text, unbounded())); kind != want {
					t.Errorf("%d times, without limits: kind %d, want %d", n, kind, want)
				}
			}
		})
	}
}

// longNames returns an object of 16 names of n/2 bytes that differ only in the last
// one.
func longNames(n int) string {
	var b strings.Builder
	stem := strings.Repeat("x", n/2)
	for i := range 16 {
		b.WriteString(`,"` + stem + string(rune('a'+i)) + `":1`)
	}
	return "{" + b.String()[1:] + "}"
}

func TestCheck_prefixes(t *testing.T) {
	text := []byte(`{"a":[1.5e+3,true,null,"\ud83d\ude00é"],"\u0062":{"c":-0}}`)
	if err := Check(text, Client()); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		if err := Check(bytes.Clone(text[:i]), Client()); err == nil {
			t.Errorf("Check(%s) accepts a prefix", text[:i])
		}
	}
}

const smallRequest = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"get_customer","arguments":{"customer_id":"C-1042","limit":10},"_meta":{"progressToken":17,"io.modelcontextprotocol/x":"2026-07-28"}}}`

func BenchmarkCheck(b *testing.B) {
	for _, row := range []struct{ name, text string }{
		{"small request", smallRequest},
		{"plain string of 1 MB", `"` + strings.Repeat("x", 1<<20) + `"`},
		{"prose of 1 MB", `["` + strings.Repeat(`The quick brown fox said \"no\".\n`, 1<<15) + `"]`},
		{"prose of 1 MB in Greek", `"` + strings.Repeat(`Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. `, 1<<14) + `"`},
		{"12,000 numbers", "[" + strings.Repeat("1234.5,", 12_000) + "0]"},
		{"12,000 names", objectOf(12_000)},
		{"objects of 20 names", wideThenNarrow(500)},
	} {
		b.Run(row.name, func(b *testing.B) {
			text := []byte(row.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(text, Client()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestCheck_allocations(t *testing.T) {
	text := []byte(smallRequest)
	if n := testing.AllocsPerRun(100, func() {
		if err := Check(text, Client()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
