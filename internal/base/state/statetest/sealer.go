package statetest

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

// sample returns a state of ann and the matching Want.
func sample() (state.State, state.Want) {
	s := state.State{
		Owner: ann, Definition: [32]byte{1}, Arguments: [32]byte{2},
		Root: "root", Leg: 3, Start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Used: 7 * time.Second,
		Asks: []state.Ask{{Seq: 0, Payload: []byte(`{"requests":[]}`)}, {Seq: 4}}, Journal: []byte("journal"),
	}
	return s, state.Want{Owner: s.Owner, Definition: s.Definition, Arguments: s.Arguments}
}

// sealed returns a store with a sealer and a sealed state.
func sealed(t testing.TB, suite Suite, s state.State) (state.Store, *clock, *state.Sealer, string) {
	t.Helper()
	store, c := suite.fresh(t, state.Options{})
	sealer := state.NewSealer(store, c.Now)
	text, err := sealer.Seal(s)
	check(t, err)
	return store, c, sealer, text
}

func wantOpen(t testing.TB, sealer *state.Sealer, text string, want state.Want, err error) {
	t.Helper()
	if opened, got := sealer.Open(text, want); !errors.Is(got, err) || got != nil && !reflect.DeepEqual(opened, state.State{}) {
		t.Errorf("opened with %v, want %v", got, err)
	}
}

func seals(t *testing.T, suite Suite) {
	s, want := sample()
	_, c, sealer, text := sealed(t, suite, s)
	opened, err := sealer.Open(text, want)
	check(t, err)
	if opened.Nonce == (state.Nonce{}) {
		t.Error("no nonce")
	}
	s.Nonce, s.Expires = opened.Nonce, c.Now().Add(state.MaxLife)
	if !reflect.DeepEqual(s, opened) {
		t.Errorf("(-sealed +opened): got %+v, want %+v", opened, s)
	}
	again, err := sealer.Seal(s)
	check(t, err)
	if other, err := sealer.Open(again, want); err != nil || other.Nonce == opened.Nonce {
		t.Errorf("same nonce for two seals, or %v", err)
	}
	foreign := want
	foreign.Owner, foreign.Definition = bob, [32]byte{9}
	wantOpen(t, sealer, text, foreign, state.ErrForeign)
	edited := want
	edited.Definition[31] = 1
	wantOpen(t, sealer, text, edited, state.ErrChanged)
	other := want
	other.Arguments[31] = 1
	wantOpen(t, sealer, text, other, state.ErrArguments)
	elsewhere, _, _, _ := sealed(t, suite, s)
	wantOpen(t, state.NewSealer(elsewhere, c.Now), text, want, state.ErrTampered)
}

func sealsExpire(t *testing.T, suite Suite) {
	s, want := sample()
	store, c, sealer, text := sealed(t, suite, s)
	s.Expires = c.Now().Add(time.Hour)
	capped, err := sealer.Seal(s)
	check(t, err)
	s.Expires = c.Now().Add(time.Minute)
	short, err := sealer.Seal(s)
	check(t, err)
	c.advance(time.Minute)
	wantOpen(t, sealer, short, want, state.ErrExpired)
	c.advance(state.MaxLife - time.Minute - time.Second)
	wantOpen(t, sealer, text, want, nil)
	wantOpen(t, sealer, capped, want, nil)
	c.advance(time.Second)
	wantOpen(t, sealer, text, want, state.ErrExpired)
	wantOpen(t, sealer, capped, want, state.ErrExpired)
	c.advance(48 * time.Hour)
	for range 2 {
		_, err := store.SealingKey()
		check(t, err)
		c.advance(state.MaxLife + time.Second)
		check(t, store.Sweep())
	}
	wantOpen(t, sealer, text, want, state.ErrTampered)
}

func largeJournals(t *testing.T, suite Suite) {
	s, want := sample()
	s.Journal = []byte(strings.Repeat("j", 1<<20))
	store, c, sealer, text := sealed(t, suite, s)
	if len(text) > 1<<10 {
		t.Errorf("sealed state with a large journal: %d bytes", len(text))
	}
	opened, err := sealer.Open(text, want)
	check(t, err)
	if string(opened.Journal) != string(s.Journal) || !reflect.DeepEqual(opened.Asks, s.Asks) {
		t.Error("journal or asks differ")
	}
	opened.Journal[0] = 'J'
	if again, err := sealer.Open(text, want); err != nil || string(again.Journal) != string(s.Journal) {
		t.Errorf("an opened state shares memory with the store: %v", err)
	}
	kept, err := store.Journal(opened.Nonce)
	check(t, err)
	check(t, store.PutJournal(ann, opened.Nonce, opened.Expires, append(kept[:len(kept)-1:len(kept)-1], 'J')))
	wantOpen(t, sealer, text, want, state.ErrTampered)
	s.Journal = []byte(strings.Repeat("j", 7<<10))
	inline, err := sealer.Seal(s)
	check(t, err)
	if opened, err = sealer.Open(inline, want); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Journal(opened.Nonce); !errors.Is(err, state.ErrLost) {
		t.Errorf("small journal in the store: %v", err)
	}
	s.Journal = make([]byte, 64<<20)
	_, err = sealer.Seal(s)
	wantFull(t, err, state.MaxLife)
	s.Journal, s.Root = nil, strings.Repeat("r", 64<<10)
	if _, err := sealer.Seal(s); err == nil {
		t.Error("an invalid state was sealed")
	}
	c.advance(state.MaxLife)
	check(t, store.Sweep())
}

// tampering changes every byte, adds and removes some, and swaps parts, of texts with
// every base64 ending.
func tampering(t *testing.T, suite Suite) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: single goroutine")
	}
	s, want := sample()
	_, _, sealer, _ := sealed(t, suite, s)
	for range 3 {
		s.Root += "r"
		text, err := sealer.Seal(s)
		check(t, err)
		other, err := sealer.Seal(s)
		check(t, err)
		wantOpen(t, sealer, text, want, nil)
		for i := range len(text) {
			for _, b := range []byte("A_ =\n") {
				if b != text[i] {
					wantOpen(t, sealer, text[:i]+string(b)+text[i+1:], want, state.ErrTampered)
				}
				wantOpen(t, sealer, text[:i]+string(b)+text[i:], want, state.ErrTampered)
			}
			wantOpen(t, sealer, text[:i], want, state.ErrTampered)
			wantOpen(t, sealer, text[:i]+text[i+1:], want, state.ErrTampered)
			if text[:i] != other[:i] && text[i:] != other[i:] {
				wantOpen(t, sealer, text[:i]+other[i:], want, state.ErrTampered)
			}
		}
		changeLast(t, sealer, text, want)
		for _, b := range []string{"A", "=", "\n", "\r", " ", text} {
			wantOpen(t, sealer, text+b, want, state.ErrTampered)
		}
	}
	wantOpen(t, sealer, strings.Repeat("A", 1<<20), want, state.ErrTampered)
}

// changeLast replaces the last letter, some bits of which may be unused, by every other
// letter.
func changeLast(t testing.TB, sealer *state.Sealer, text string, want state.Want) {
	t.Helper()
	last := len(text) - 1
	for _, b := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if byte(b) != text[last] {
			wantOpen(t, sealer, text[:last]+string(b), want, state.ErrTampered)
		}
	}
}
