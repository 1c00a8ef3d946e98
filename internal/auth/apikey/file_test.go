package apikey

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func known() Record { return Record{Name: "ci", Principal: "ci", Created: noon} }

func add(t *testing.T, path string, r Record) Key {
	t.Helper()
	k, err := Add(path, r)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func load(t *testing.T, path string) *KeySet {
	t.Helper()
	ring, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestCheck_principal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	r := known()
	r.Principal, r.Scopes, r.Groups, r.Agent = "ada", []string{"crm:read"}, []string{"leads"}, "bot"
	k := add(t, path, r)
	got, err := load(t, path).Check(k, noon)
	if err != nil {
		t.Fatal(err)
	}
	want := identity.Principal{
		ID: "ada", Kind: identity.KindKey, Scopes: []string{"crm:read"}, Groups: []string{"leads"},
		Claims: map[string]any{"key": k.ID, "name": "ci"}, Agent: "bot",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAdd_storesNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	k := add(t, path, known())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), k.secret) || strings.Contains(string(text), k.secret[:20]) {
		t.Error("the file contains the secret")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

func TestCheck_invalidKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	r := known()
	r.Expires = noon.Add(time.Hour)
	k, other := add(t, path, r), add(t, path, known())
	if _, err := Revoke(path, other.ID, noon); err != nil {
		t.Fatal(err)
	}
	forged := k
	forged.secret = other.secret
	ring := load(t, path)
	for name, row := range map[string]struct {
		key  Key
		at   time.Time
		want error
	}{
		"just before expiry":          {k, r.Expires.Add(-1), nil},
		"at expiry":                   {k, r.Expires, ErrExpired},
		"revoked":                     {other, noon, ErrRevoked},
		"revoked, at an earlier time": {other, noon.Add(-time.Hour), ErrRevoked},
		"unknown":                     {New(), noon, ErrUnknown},
		"secret of another key":       {forged, noon, ErrUnknown},
	} {
		if _, err := ring.Check(row.key, row.at); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
}

func TestRevoke(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	k := add(t, path, known())
	for _, at := range []time.Time{noon, noon.Add(time.Hour)} {
		r, err := Revoke(path, k.ID, at)
		if err != nil || !r.Revoked.Equal(noon) {
			t.Errorf("revoked at %v: %v, %v", at, r.Revoked, err)
		}
	}
	if _, err := Revoke(path, New().ID, noon); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown key: %v", err)
	}
	if _, err := Revoke(filepath.Join(t.TempDir(), "none"), k.ID, noon); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestAdd_concurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := Add(path, known()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(load(t, path).Records()); n != 16 {
		t.Errorf("%d of 16 keys remain", n)
	}
}

func TestLoad_openToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	add(t, path, known())
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want := "read keys: " + path + " is open to other users (-rw-r-----); remove their access with chmod go-rwx"
	if _, err := Load(path); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := Add(path, known()); err == nil {
		t.Error("a key was added to the file")
	}
}

func TestLoad_missingFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, flag := range map[string]string{
		"keys.json": "", "./keys.json": "", "../p/keys.json": " --file ../p/keys.json", "our keys/keys.json": " --file 'our keys/keys.json'",
	} {
		_, err := Load(path)
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "; make one with mcpd key new NAME"+flag) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAdd_invalidRecord(t *testing.T) {
	for name, modify := range map[string]func(*Record){
		"no name":             func(r *Record) { r.Name = "" },
		"line break in name":  func(r *Record) { r.Name = "a\nb" },
		"nobody":              func(r *Record) { r.Principal = "" },
		"anonymous principal": func(r *Record) { r.Principal = "anonymous" },
		"anonymous agent":     func(r *Record) { r.Agent = "anonymous" },
		"space in scope":      func(r *Record) { r.Scopes = []string{"a b"} },
		"empty group":         func(r *Record) { r.Groups = []string{""} },
		"no creation time":    func(r *Record) { r.Created = time.Time{} },
		"too many scopes":     func(r *Record) { r.Scopes = make([]string, maxList+1) },
	} {
		r := known()
		modify(&r)
		path := filepath.Join(t.TempDir(), "keys.json")
		if _, err := Add(path, r); err == nil {
			t.Errorf("%s: a key was created", name)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file was written", name)
		}
	}
}
