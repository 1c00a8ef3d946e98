package statetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

// wide has room for everything.
var wide = state.Room{Keys: 1 << 30, Bytes: 1 << 40}

// put stores a value with a TTL, or without expiry if it is 0.
func put(s state.Store, space, key, value string, room state.Room, ttl time.Duration) error {
	return s.ChangePair(space, key, room, func(_ state.Pair, now time.Time) (state.Pair, error) {
		made := state.Pair{Value: []byte(value)}
		if ttl > 0 {
			made.Expires = now.Add(ttl)
		}
		return made, nil
	})
}

// drop removes a pair.
func drop(s state.Store, space, key string) error {
	return s.ChangePair(space, key, state.Room{}, func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{}, nil })
}

// wantPair checks the value of a key; "" means none.
func wantPair(t testing.TB, s state.Store, space, key, value string) {
	t.Helper()
	got, err := s.Pair(space, key)
	check(t, err)
	if string(got.Value) != value {
		t.Errorf("%.80q has %.80q in %.80q, want %.80q", key, got.Value, space, value)
	}
}

func wantKeys(t testing.TB, s state.Store, space, prefix, after string, most int, want ...string) {
	t.Helper()
	got, err := s.PairKeys(space, prefix, after, most)
	check(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("keys of %q with prefix %q after %q: %q, want %q", space, prefix, after, got, want)
	}
}

func pairsAreKept(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	wantPair(t, s, "a", "k", "")
	value := []byte("1")
	check(t, s.ChangePair("a", "k", wide, func(old state.Pair, now time.Time) (state.Pair, error) {
		if old.Value != nil || !now.Equal(c.Now()) {
			t.Errorf("old value %q at %v, want none", old.Value, now)
		}
		return state.Pair{Value: value}, nil
	}))
	value[0] = 'x'
	wantPair(t, s, "a", "k", "1")
	refused := errors.New("refused")
	if err := s.ChangePair("a", "k", wide, func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{}, refused }); err != refused {
		t.Errorf("failing change: %v", err)
	}
	wantPair(t, s, "a", "k", "1")
	check(t, put(s, "a", "k", "2", wide, time.Minute))
	if got, err := s.Pair("a", "k"); err != nil || !got.Expires.Equal(c.Now().Add(time.Minute)) {
		t.Errorf("pair expires at %v, %v", got.Expires, err)
	}
	check(t, drop(s, "a", "k"))
	check(t, drop(s, "a", "k"))
	wantPair(t, s, "a", "k", "")
	wantKeys(t, s, "a", "", "", 10)
}

func pairsExpire(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	room := state.Room{Keys: 2, Bytes: 1 << 10}
	check(t, put(s, "a", "short", "1", room, time.Second))
	check(t, put(s, "a", "ever", "1", room, 0))
	c.advance(time.Second - time.Millisecond)
	wantPair(t, s, "a", "short", "1")
	c.advance(time.Millisecond)
	wantPair(t, s, "a", "short", "")
	wantKeys(t, s, "a", "", "", 10, "ever")
	check(t, s.ChangePair("a", "short", room, func(old state.Pair, _ time.Time) (state.Pair, error) {
		if old.Value != nil {
			t.Errorf("expired value %q", old.Value)
		}
		return state.Pair{Value: []byte("2")}, nil
	}))
	wantPair(t, s, "a", "short", "2")
	check(t, put(s, "a", "short", "3", room, time.Second))
	c.advance(time.Second)
	// Expired pairs free their capacity before any sweep.
	check(t, put(s, "a", "other", "1", room, 0))
	c.advance(24 * time.Hour)
	check(t, s.Sweep())
	wantKeys(t, s, "a", "", "", 10, "ever", "other")
}

func pairsAreBounded(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Pairs: state.Limits{Count: 4, Bytes: 100}})
	room := state.Room{Keys: 2, Bytes: 20}
	check(t, put(s, "a", "1", strings.Repeat("x", 9), room, time.Minute))
	check(t, put(s, "a", "2", strings.Repeat("x", 9), room, 0))
	for key, value := range map[string]string{"1": strings.Repeat("x", 10), "3": "x"} {
		if err := put(s, "a", key, value, room, 0); !errors.Is(err, state.ErrRoom) {
			t.Errorf("key %s without capacity: %v", key, err)
		}
	}
	wantPair(t, s, "a", "1", strings.Repeat("x", 9))
	check(t, put(s, "a", "2", "x", state.Room{}, 0)) // shrinking always fits
	check(t, put(s, "b", "1", strings.Repeat("x", 79), wide, 0))
	var full *state.FullError
	if err := put(s, "c", "1", strings.Repeat("x", 20), wide, 0); !errors.As(err, &full) {
		t.Errorf("too many bytes in all spaces: %v", err)
	}
	check(t, put(s, "c", "1", "x", wide, 0))
	if err := put(s, "d", "1", "x", wide, 0); !errors.As(err, &full) {
		t.Errorf("too many pairs in all spaces: %v", err)
	}
	c.advance(time.Minute)
	check(t, put(s, "d", "1", "x", wide, 0))
}

func pairsChangeInTurn(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{})
	const together, times = 8, 25
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for range times {
				if err := increase(s, "a", "n"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	wantPair(t, s, "a", "n", strconv.Itoa(together*times))
}

// increase increments the number under a key.
func increase(s state.Store, space, key string) error {
	return s.ChangePair(space, key, wide, func(old state.Pair, _ time.Time) (state.Pair, error) {
		n, _ := strconv.Atoi(string(old.Value)) // 0 without a value
		return state.Pair{Value: strconv.AppendInt(nil, int64(n)+1, 10)}, nil
	})
}

// Every name is used as a space and as a key: no space reaches the values of another.
func spacesAreApart(t *testing.T, suite Suite) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: single goroutine")
	}
	s, _ := suite.fresh(t, state.Options{})
	names := []string{
		"a", "A", "a\x00", "\x00a", "a\x00a", "a/b", "a/../b", "..", "a'; DROP TABLE pairs; --", "%", "_", "*", "é", "e\u0301", "\U0010ffff",
		"a\u200b", "ａ", strings.Repeat("a", 1<<20),
	}
	for i, space := range names {
		for j, key := range names {
			check(t, put(s, space, key, fmt.Sprintf("%d/%d", i, j), wide, 0))
		}
	}
	sorted := slices.Sorted(slices.Values(names))
	for i, space := range names {
		for j, key := range names {
			wantPair(t, s, space, key, fmt.Sprintf("%d/%d", i, j))
		}
		wantKeys(t, s, space, "", "", 100, sorted...)
	}
	check(t, drop(s, "a", "a"))
	wantPair(t, s, "a", "a", "")
	wantPair(t, s, "A", "a", "1/0")
	wantPair(t, s, "a", "A", "0/1")
}

func keysAreListed(t *testing.T, suite Suite) {
	s, _ := suite.fresh(t, state.Options{})
	for _, key := range []string{"a", "a/1", "a/10", "a/2", "a/\U0010ffff", "b", "_", "%"} {
		check(t, put(s, "s", key, "1", wide, 0))
	}
	wantKeys(t, s, "s", "a/", "", 10, "a/1", "a/10", "a/2", "a/\U0010ffff")
	wantKeys(t, s, "s", "a/", "", 2, "a/1", "a/10")
	wantKeys(t, s, "s", "a/", "a/10", 2, "a/2", "a/\U0010ffff")
	wantKeys(t, s, "s", "a/", "a/1", 1, "a/10")
	wantKeys(t, s, "s", "a/", "b", 10)
	wantKeys(t, s, "s", "a/", "a", 1, "a/1")
	wantKeys(t, s, "s", "a/", "A", 1, "a/1")
	wantKeys(t, s, "s", "%", "", 10, "%")
	wantKeys(t, s, "s", "_", "", 10, "_")
	wantKeys(t, s, "s", "", "a/\U0010ffff", 10, "b")
	wantKeys(t, s, "t", "", "", 10)
}

// pairsSurvive checks the pairs after a store is opened again.
func pairsSurvive(t *testing.T, suite Suite, reopen func(testing.TB, state.Store, state.Options) state.Store) {
	s, c := suite.fresh(t, state.Options{})
	room := state.Room{Keys: 3, Bytes: 64 << 10}
	large := string(bytes.Repeat([]byte("v"), 60<<10))
	check(t, put(s, "a", "large", large, room, 0))
	check(t, put(s, "a", "short", "1", room, time.Minute))
	check(t, put(s, "a", "gone", "1", room, 0))
	check(t, drop(s, "a", "gone"))
	check(t, increase(s, "a", "n"))
	check(t, increase(s, "a", "n"))
	s = reopen(t, s, state.Options{Now: c.Now})
	closeAfter(t, s)
	wantPair(t, s, "a", "large", large)
	wantPair(t, s, "a", "short", "1")
	wantPair(t, s, "a", "gone", "")
	check(t, increase(s, "a", "n"))
	wantPair(t, s, "a", "n", "3")
	if err := put(s, "a", "more", "1", room, 0); !errors.Is(err, state.ErrRoom) {
		t.Errorf("the usage was lost: %v", err)
	}
	c.advance(time.Minute)
	check(t, put(s, "a", "more", "1", room, 0))
	wantKeys(t, s, "a", "", "", 10, "large", "more", "n")
}
