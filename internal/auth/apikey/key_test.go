package apikey

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParse_roundTrip(t *testing.T) {
	k := New()
	got, err := Parse(k.Plaintext())
	if err != nil || got != k {
		t.Errorf("Parse(%v) = %v, %v", k, got, err)
	}
	if len(k.Plaintext()) != keyLen {
		t.Errorf("key has %d characters, want %d", len(k.Plaintext()), keyLen)
	}
}

func TestKey_printsNoSecret(t *testing.T) {
	k := New()
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), fmt.Sprintf("%q", k)} {
		if strings.Contains(shown, k.secret) {
			t.Errorf("%s contains the secret", shown)
		}
	}
}

// TestParse_checksum: the checksum detects every change of one character.
func TestParse_checksum(t *testing.T) {
	text := New().Plaintext()
	for i := range len(text) {
		for _, c := range []byte("ab2_M\n\x00") {
			changed := text[:i] + string(c) + text[i+1:]
			if _, err := Parse(changed); changed != text && !errors.Is(err, ErrMalformed) {
				t.Fatalf("a key with character %d changed to %q was accepted: %v", i, c, err)
			}
		}
	}
}

func TestParse_invalid(t *testing.T) {
	text := New().Plaintext()
	for _, bad := range []string{
		"", "mcpd_", "mcpd__", text[1:], text + "a", text[:len(text)-1], " " + text, strings.ToUpper(text),
		strings.Replace(text, "_", "-", 1), text + "\n", strings.Repeat("a", len(text)), strings.Repeat("_", len(text)),
	} {
		if _, err := Parse(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("Parse of %d characters: %v", len(bad), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(New().Plaintext())
	f.Add("mcpd_aaaaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := Parse(text); err == nil && k.Plaintext() != text {
			t.Errorf("a key has two encodings")
		}
	})
}
