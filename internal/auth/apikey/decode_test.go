package apikey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func line(t testing.TB, modify func(*Record)) string {
	t.Helper()
	r := NewRecord(New(), known())
	modify(&r)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func whole(*Record) {}

func TestDecode_errors(t *testing.T) {
	good := line(t, whole)
	for _, row := range []struct{ name, text, want string }{
		{"no JSON", good + "\n\nsecret-text\n", "line 3: read JSON: the JSON text has an unexpected character where a value should be (at byte 0)"},
		{"truncated line", good[:40], "line 1: read JSON: "},
		{"duplicate key", good + "\n" + good, "line 2: duplicate id; remove one of the two lines"},
		{"misspelled member", strings.Replace(good, `"created"`, `"secret"`, 1), "line 1: a member has an unknown name or the wrong type"},
		{"duplicate member", strings.Replace(good, `{`, `{"name":"x",`, 1), "line 1: read JSON: "},
		{"short hash", line(t, func(r *Record) { r.Hash = r.Hash[1:] }), "line 1: the salt or the hash has the wrong length"},
		{"invalid id characters", line(t, func(r *Record) { r.ID = "secretsecret0189" }), "line 1: the id is not a key id"},
		{"nested", strings.Repeat("[", 100_000), "line 1: read JSON: "},
	} {
		_, err := Decode([]byte(row.text))
		var broken *FileError
		switch {
		case !errors.As(err, &broken):
			t.Errorf("%s: %v", row.name, err)
		case !strings.HasPrefix(err.Error(), row.want):
			t.Errorf("%s: %v, want %s", row.name, err, row.want)
		case strings.Contains(err.Error(), "secret-text"):
			t.Errorf("%s: the error contains the text: %v", row.name, err)
		}
	}
}

func TestDecode_revokedInInvalidFile(t *testing.T) {
	k, other := New(), New()
	ring := newKeySet([]Record{NewRecord(k, known()), NewRecord(other, known())})
	revoked := ring.Records()[0]
	revoked.Revoked = noon
	text, err := encodeAll([]Record{revoked})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Decode(append(text, "half a li"...))
	var broken *FileError
	if !errors.As(err, &broken) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{k.ID}, broken.Revoked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	ring = ring.Without(broken.Revoked, noon)
	if _, err := ring.Check(k, noon); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked key: %v", err)
	}
	if _, err := ring.Check(other, noon); err != nil {
		t.Errorf("other key: %v", err)
	}
}

func TestDecode_sizes(t *testing.T) {
	for size := 1; size <= 10_000; size *= 10 {
		var b strings.Builder
		for range size {
			b.WriteString(line(t, whole) + "\n")
		}
		ring, err := Decode([]byte(b.String()))
		if err != nil || len(ring.Records()) != size {
			t.Errorf("%d lines: %v", size, err)
		}
		if _, err := Decode(bytes.Repeat([]byte("[\n"), size)); err == nil {
			t.Errorf("%d brackets were accepted", size)
		}
	}
}

// FuzzDecode checks that decoding and encoding records round-trip.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(line(f, whole)))
	f.Add([]byte(line(f, func(r *Record) { r.Revoked, r.Agent, r.Scopes = noon, "bot", []string{"a", "b"} })))
	f.Add([]byte(`{"id":"aaaaaaaaaaaaaaaa","revoked":"2026-11-22T12:00:00Z"}`))
	f.Add([]byte("[[[["))
	f.Fuzz(func(t *testing.T, text []byte) {
		ring, err := Decode(text)
		if err != nil {
			return
		}
		written, err := encodeAll(ring.Records())
		if err != nil {
			t.Skip("too long")
		}
		again, err := Decode(written)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(ring.Records(), again.Records(), func(a, b Record) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Error("the encoded records decode differently")
		}
	})
}

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
