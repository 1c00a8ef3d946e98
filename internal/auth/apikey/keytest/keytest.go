// Package keytest makes API keys for tests, which prove nothing.
package keytest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// Revoked returns a key of the principal "ci" that was revoked, and the path of the file
// of keys that says so.
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

// Unknown returns a key that is well formed and in no file.
func Unknown() string { return apikey.New().Plaintext() }

// Valid returns a key of each principal, and the path of the file of keys that says so.
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
