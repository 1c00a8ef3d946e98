package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// waiting returns a state with all fields set.
func waiting() State {
	return State{
		Owner: Owner{ID: "ann", Kind: "key", Issuer: "here"}, Definition: [32]byte{1}, Arguments: [32]byte{2},
		Expires: soon, Nonce: Nonce{3}, Root: "root", Leg: 4, Start: soon.Add(5), Used: 6,
		Asks: []Ask{{Seq: 7, Payload: []byte("{}")}, {Seq: 8}}, Journal: []byte("journal"),
	}
}

func TestState_roundTrip(t *testing.T) {
	for _, want := range []State{waiting(), {Expires: time.UnixMilli(0).UTC()}} {
		data, err := want.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got State
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		clear(data)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
	}
}

func TestState_truncatedBytes(t *testing.T) {
	data, err := waiting().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var s State
	for i := range data {
		if err := s.UnmarshalBinary(data[:i]); !errors.Is(err, errMalformed) {
			t.Errorf("first %d bytes of %d: %v", i, len(data), err)
		}
	}
	if err := s.UnmarshalBinary(append(data, 0)); !errors.Is(err, errMalformed) {
		t.Errorf("one byte too many: %v", err)
	}
	data[0]++
	if err := s.UnmarshalBinary(data); !errors.Is(err, errMalformed) {
		t.Errorf("another version: %v", err)
	}
	if diff := cmp.Diff(State{}, s); diff != "" {
		t.Errorf("state after a failure:\n%s", diff)
	}
}

func TestKey_printsRedacted(t *testing.T) {
	k := Key{ID: 7, Secret: [32]byte([]byte("0123456789abcdef0123456789abcdef"))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, k); got != "[sealing key 7]" {
			t.Errorf("%s prints %s", verb, got)
		}
		if got := fmt.Sprintf(verb, []Key{k}); strings.Contains(got, "48") || strings.Contains(got, "30") || strings.Contains(got, "0123") {
			t.Errorf("%s prints %s in a list", verb, got)
		}
	}
	if got, err := json.Marshal(k); err != nil || string(got) != "{}" {
		t.Errorf("JSON is %s, %v", got, err)
	}
}

// FuzzStateBytes decodes bytes as a state. It must not panic or use more memory than
// the input, and the result must survive a round trip.
func FuzzStateBytes(f *testing.F) {
	data, err := waiting().MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Add(append(data[:len(data)-8:len(data)-8], 0xff, 0xff, 0xff, 0xff, 0x07))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read, again State
		if read.UnmarshalBinary(data) != nil {
			return
		}
		if len(read.Asks) > len(data) {
			t.Fatalf("%d asks from %d bytes", len(read.Asks), len(data))
		}
		written, err := read.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalBinary(written); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read, again); diff != "" {
			t.Fatalf("state (-first +second):\n%s", diff)
		}
	})
}

// FuzzTaskBytes does the same for tasks.
func FuzzTaskBytes(f *testing.F) {
	var data encoder
	Task{Owner: someone, Tool: "t", Created: soon, Updated: soon, Status: Failed, Message: "m", TTL: 1, Poll: 2, Result: []byte("{}")}.encode(&data)
	f.Add([]byte(data))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read, again Task
		if read.decode(data) != nil {
			return
		}
		var written encoder
		read.encode(&written)
		if err := again.decode(written); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read, again); diff != "" {
			t.Fatalf("task (-first +second):\n%s", diff)
		}
	})
}

// sameKey is a store with a fixed key, so that another process can open sealed states.
type sameKey struct{ Store }

func (sameKey) SealingKey() (Key, error) { return Key{ID: 1, Secret: [32]byte{1}}, nil }

func (s sameKey) KeyByID(id uint32) (Key, error) {
	if id != 1 {
		return Key{}, ErrTampered
	}
	return s.SealingKey()
}

// FuzzOpen opens text. It must fail with one of the documented errors, unless Seal
// returned the text.
func FuzzOpen(f *testing.F) {
	genuine := waiting()
	want := Want{Owner: genuine.Owner, Definition: genuine.Definition, Arguments: genuine.Arguments}
	store := NewMemory(fixed)
	f.Cleanup(func() { store.Close() })
	sealer := NewSealer(sameKey{store}, fixed.Now)
	text, err := sealer.Seal(genuine)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text + "A")
	f.Add("")
	f.Add(alphabet.EncodeToString([]byte{sealVersion, 0, 0, 0, 1}))
	f.Fuzz(func(t *testing.T, text string) {
		opened, err := sealer.Open(text, want)
		if err != nil {
			if !errors.Is(err, ErrTampered) || !cmp.Equal(opened, State{}) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		sealed, err := alphabet.DecodeString(text)
		if err != nil || alphabet.EncodeToString(sealed) != text {
			t.Fatalf("another text was opened: %q", text)
		}
		opened.Nonce = genuine.Nonce
		if diff := cmp.Diff(genuine, opened); diff != "" {
			t.Fatalf("opened state differs:\n%s", diff)
		}
	})
}

func TestSealer_keyPerOwner(t *testing.T) {
	owners := []Owner{{}, {ID: "a"}, {Kind: "a"}, {Issuer: "a"}, {ID: "a", Kind: "a"}, {ID: "aa"}, {ID: "a", Issuer: "a"}, {ID: "\x01a"}}
	for i, a := range owners {
		for j, b := range owners {
			if same := bytes.Equal([]byte(a.Key()), []byte(b.Key())); same != (i == j) {
				t.Errorf("%+v and %+v: same key %v", a, b, same)
			}
		}
	}
}

var (
	someone = Owner{ID: "someone"}
	soon    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fixed   = Options{Now: func() time.Time { return soon.Add(-time.Minute) }}
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

func TestSweep_removesExpired(t *testing.T) {
	now := soon
	s := NewMemory(Options{Now: func() time.Time { return now }}).(*store)
	t.Cleanup(func() { s.Close() })
	for i := range 3*sweepBatch + 1 {
		err := s.ChangePair("space", strconv.Itoa(i), Room{1 << 20, 1 << 40}, func(Pair, time.Time) (Pair, error) {
			return Pair{Value: []byte("1"), Expires: now.Add(time.Second)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Second)
	if s.spaces.soonest != now.UnixMilli() {
		t.Errorf("first expiry %d", s.spaces.soonest)
	}
	if err := s.Sweep(); err != nil || s.spaces.soonest != never || s.spaces.all != (Usage{}) || len(s.spaces.of) > 0 {
		t.Errorf("remaining: %+v, %v", s.spaces.all, err)
	}
}
