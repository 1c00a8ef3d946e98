// Package keytest creates API keys for tests.
package keytest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// Revoked returns a revoked key of the principal "ci", and the path of its key
// file.
func Revoked(t testing.TB) (key, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.json")
	k, err := apikey.Add(path, apikey.Record{Name: "ci", Principal: "ci", Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = apikey.Revoke(path, k.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	return k.Plaintext(), path
}

// Unknown returns a valid key that is in no file.
func Unknown() string { return apikey.New().Plaintext() }

// Valid returns a key of each principal, and the path of their key file.
func Valid(t testing.TB, principals ...string) (keys map[string]string, path string) {
	t.Helper()
	path, keys = filepath.Join(t.TempDir(), "keys.json"), map[string]string{}
	for _, p := range principals {
		k, err := apikey.Add(path, apikey.Record{Name: p, Principal: p, Created: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		keys[p] = k.Plaintext()
	}
	return keys, path
}
