package apikey

import "testing"

func BenchmarkCheck(b *testing.B) {
	k := New()
	ring := newKeySet([]Record{NewRecord(k, known())})
	text := k.Plaintext()
	b.ReportAllocs()
	for b.Loop() {
		parsed, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ring.Check(parsed, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheck_allocations(t *testing.T) {
	k, unknown := New(), New()
	ring := newKeySet([]Record{NewRecord(k, known())})
	for _, text := range []string{k.Plaintext(), unknown.Plaintext()} {
		if n := testing.AllocsPerRun(100, func() {
			parsed, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = ring.Check(parsed, noon)
		}); n != 0 {
			t.Errorf("%v allocations, want 0", n)
		}
	}
}
