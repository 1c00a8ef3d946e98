package bundle

import (
	"bytes"
	"crypto/elliptic"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestPack_isReproducible(t *testing.T) {
	about := Manifest{Serial: 7, Expires: today.Add(time.Hour), MinVersion: "1.2.0"}
	first, second := pack(t, about, project("x")), pack(t, about, project("x"))
	if !bytes.Equal(first, second) {
		t.Fatal("equal files give different bundles")
	}
	b, err := Read(first)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(b.Manifest.Files); got != 3 {
		t.Errorf("the bundle has %d files, want mcpd.hcl and two below tools.d", got)
	}
	text, err := fs.ReadFile(b.Files(), "tools.d/lib/b.js")
	if err != nil || string(text) != "export const b = 1;\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestPack_refuses(t *testing.T) {
	linked := project("x")
	linked["tools.d/link.hcl"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("a.hcl")}
	named := project("x")
	named["tools.d/größe.hcl"] = &fstest.MapFile{}
	bare := project("x")
	delete(bare, "mcpd.hcl")
	for name, row := range map[string]struct {
		about Manifest
		files fs.FS
	}{
		"link": {Manifest{Name: "a", Serial: 1}, linked}, "path": {Manifest{Name: "a", Serial: 1}, named},
		"config": {Manifest{Name: "a", Serial: 1}, bare}, "serial": {Manifest{Name: "a"}, project("x")},
		"name": {Manifest{Name: "A b", Serial: 1}, project("x")}, "version": {Manifest{Name: "a", Serial: 1, MinVersion: "new"}, project("x")},
	} {
		if _, err := Pack(row.files, row.about); err == nil {
			t.Errorf("%s: packed", name)
		}
	}
}

func TestSign_keysOfEachKind(t *testing.T) {
	for name, curve := range map[string]elliptic.Curve{"Ed25519": nil, "P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()} {
		private, public := newKey(t)
		if curve != nil {
			private, public = newECKey(t, curve)
		}
		data := pack(t, Manifest{Serial: 1}, project("x"), private, private) // the second replaces the first
		b, err := Read(data)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b.Signers()); n != 1 {
			t.Errorf("%s: %d signatures, want 1", name, n)
		}
		for form, text := range map[string][]byte{"PEM": public, "JWK": trustOf(t, 1, "", public)} {
			trust, err := ParseTrust(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := trust.Verify(b); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
	}
}

func TestTrust_thresholdAndRotation(t *testing.T) {
	oldKey, oldPublic := newKey(t)
	newKey1, newPublic := newECKey(t, elliptic.P256())
	_, third := newKey(t)
	read := func(data []byte) *Bundle {
		b, err := Read(data)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	both := read(pack(t, Manifest{Serial: 1}, project("x"), oldKey, newKey1))
	one := read(pack(t, Manifest{Serial: 1}, project("x"), oldKey))
	for name, row := range map[string]struct {
		trust []byte
		b     *Bundle
		ok    bool
	}{
		"old key of two signatures": {oldPublic, both, true},
		"new key of two signatures": {newPublic, both, true},
		"2 of 3":                    {trustOf(t, 2, "shop", oldPublic, newPublic, third), both, true},
		"1 of 2":                    {trustOf(t, 2, "", oldPublic, newPublic), one, false},
		"3 of 3":                    {trustOf(t, 3, "", oldPublic, newPublic, third), both, false},
		"only a new key":            {newPublic, one, false},
		"other name":                {trustOf(t, 1, "depot", oldPublic), one, false},
	} {
		trust, err := ParseTrust(row.trust)
		if err != nil {
			t.Fatal(err)
		}
		if err := trust.Verify(row.b); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseTrust_refuses(t *testing.T) {
	private, public := newKey(t)
	set := string(trustOf(t, 1, "shop", public))
	for name, text := range map[string]string{
		"empty": "", "text": "no key", "private key": string(private), "no keys": `{"keys":[]}`,
		"twice":            string(public) + string(public),
		"threshold 0":      strings.Replace(set, `"threshold":1`, `"threshold":0`, 1),
		"threshold 2 of 1": strings.Replace(set, `"threshold":1`, `"threshold":2`, 1),
		"misspelled":       strings.Replace(set, `"threshold":1`, `"treshold":1`, 1),
		"twice a member":   strings.Replace(set, `"threshold":1`, `"threshold":1,"threshold":1`, 1),
		"symmetric":        `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`,
		"encryption":       strings.Replace(set, `"kty"`, `"use":"enc","kty"`, 1),
		"name":             strings.Replace(set, `"shop"`, `"a b"`, 1),
	} {
		if _, err := ParseTrust([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: the error has the key: %v", name, err)
		}
	}
}

func TestUsable_versionsAndExpiry(t *testing.T) {
	for _, row := range []struct {
		need, have string
		ok         bool
	}{
		{"", "unknown", true}, {"1.2.3", "1.2.3", true}, {"1.2.3", "v1.10.0", true}, {"1.2.3", "1.2.3-rc.1", true}, {"1.2.3", "1.2.2", false},
		{"2.0.0", "1.9.9", false}, {"1.0.0", "unknown", false},
	} {
		m := Manifest{MinVersion: row.need}
		if err := m.Usable(row.have, today); (err == nil) != row.ok {
			t.Errorf("mcpd %s for %q: %v", row.have, row.need, err)
		}
	}
	m := Manifest{Expires: today}
	if m.Usable("1.0.0", today.Add(-time.Second)) != nil || m.Usable("1.0.0", today) == nil {
		t.Error("a bundle is usable until it expires")
	}
}

// TestRead_bundleOfAnEarlierBuild reads a bundle that was built once and stored: another tar or JSON
// encoder must not make mcpd refuse the bundles that appliances have.
func TestRead_bundleOfAnEarlierBuild(t *testing.T) {
	data, err := os.ReadFile("testdata/stored.bundle")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/stored.pub")
	if err != nil {
		t.Fatal(err)
	}
	trust, err := ParseTrust(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := trust.Verify(b); err != nil {
		t.Error(err)
	}
	if b.Digest != "d50c99eabbca5c02c99441fd03442ab5693bebbc562a95cae38c7cd03488bc23" {
		t.Errorf("the digest is %s", b.Digest)
	}
}

// FuzzRead requires that whatever Read accepts encodes to the same bytes.
func FuzzRead(f *testing.F) {
	key, _ := newKey(f)
	good := pack(f, Manifest{Serial: 1}, project("x"), key)
	f.Add(good)
	f.Add(good[:len(good)-1024])
	f.Add(append(bytes.Clone(good), good...))
	f.Add(newDraft(f, 2, key).bytes())
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Read(data)
		if err != nil {
			return
		}
		again, err := b.encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("the bundle does not encode to itself: %v", err)
		}
	})
}

// FuzzParseTrust requires that no trust file ends the process.
func FuzzParseTrust(f *testing.F) {
	_, public := newKey(f)
	f.Add(public)
	f.Add(trustOf(f, 1, "shop", public))
	f.Fuzz(func(t *testing.T, text []byte) {
		if trust, err := ParseTrust(text); err == nil && (trust.threshold < 1 || len(trust.keys) < trust.threshold) {
			t.Fatal("a trust file without enough keys is accepted")
		}
	})
}
