package state

import "testing"

func BenchmarkSeal(b *testing.B) {
	s := benchSealer(b)
	state := waiting()
	state.Journal = make([]byte, 2<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Seal(state); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s := benchSealer(b)
	state := waiting()
	state.Journal = make([]byte, 2<<10)
	text, err := s.Seal(state)
	if err != nil {
		b.Fatal(err)
	}
	want := Want{Owner: state.Owner, Definition: state.Definition, Arguments: state.Arguments}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Open(text, want); err != nil {
			b.Fatal(err)
		}
	}
}

func benchSealer(b *testing.B) *Sealer {
	store := NewMemory(fixed)
	b.Cleanup(func() { store.Close() })
	return NewSealer(store, fixed.Now)
}
