package state

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

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

// BenchmarkClaim wins and finishes one claim after the other.
func BenchmarkClaim(b *testing.B) {
	ever := Limits{1 << 30, 1 << 60, 1 << 30, 1 << 60}
	b.Run("memory", func(b *testing.B) { benchClaim(b, NewMemory(Options{Claims: ever})) })
	b.Run("file", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), Options{Claims: ever})
		if err != nil {
			b.Fatal(err)
		}
		benchClaim(b, s)
	})
}

func benchClaim(b *testing.B, s Store) {
	b.Cleanup(func() { s.Close() })
	expires := time.Now().Add(time.Minute)
	answer := make([]byte, 200)
	var nonce Nonce
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		binary.BigEndian.PutUint64(nonce[:], n)
		if c, err := s.Claim(b.Context(), someone, nonce, expires); err != nil || !c.Won {
			b.Fatal(c.Won, err)
		}
		if err := s.Finish(nonce, answer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPair writes pairs, one after the other.
func BenchmarkPair(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchPair(b, NewMemory(Options{})) })
	b.Run("file", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		benchPair(b, s)
	})
}

func benchPair(b *testing.B, s Store) {
	b.Cleanup(func() { s.Close() })
	value := make([]byte, 200)
	room := Room{Keys: 1000, Bytes: 10 << 20}
	change := func(Pair, time.Time) (Pair, error) { return Pair{Value: value}, nil }
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if err := s.ChangePair("space", strconv.Itoa(n%1000), room, change); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTask reads a task in a file, as a client that polls does.
func BenchmarkTask(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	task, err := s.CreateTask(Task{Owner: someone, TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Task(someone, task.ID); err != nil {
			b.Fatal(err)
		}
	}
}
