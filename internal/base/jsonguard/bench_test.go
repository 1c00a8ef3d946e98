package jsonguard

import (
	"strings"
	"testing"
)

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

func TestCheckAllocatesNothingForASmallRequest(t *testing.T) {
	text := []byte(smallRequest)
	if n := testing.AllocsPerRun(100, func() {
		if err := Check(text, Client()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
