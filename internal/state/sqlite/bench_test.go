package sqlite

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/state"
)

// BenchmarkClaim wins and finishes one claim after the other.
func BenchmarkClaim(b *testing.B) {
	ever := state.Limits{Count: 1 << 30, Bytes: 1 << 60, OwnerCount: 1 << 30, OwnerBytes: 1 << 60}
	b.Run("memory", func(b *testing.B) { benchClaim(b, state.NewMemory(state.Options{Claims: ever})) })
	b.Run("file", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), state.Options{Claims: ever}, 0)
		if err != nil {
			b.Fatal(err)
		}
		benchClaim(b, s)
	})
}

func benchClaim(b *testing.B, s state.Store) {
	b.Cleanup(func() { s.Close() })
	expires := time.Now().Add(time.Minute)
	answer := make([]byte, 200)
	var nonce state.Nonce
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
	b.Run("memory", func(b *testing.B) { benchPair(b, state.NewMemory(state.Options{})) })
	b.Run("file", func(b *testing.B) {
		s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), state.Options{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		benchPair(b, s)
	})
}

func benchPair(b *testing.B, s state.Store) {
	b.Cleanup(func() { s.Close() })
	value := make([]byte, 200)
	room := state.Room{Keys: 1000, Bytes: 10 << 20}
	change := func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{Value: value}, nil }
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
	s, err := Open(filepath.Join(b.TempDir(), "state", "state.db"), state.Options{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	task, err := s.CreateTask(state.Task{Owner: someone, TTL: time.Hour})
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
