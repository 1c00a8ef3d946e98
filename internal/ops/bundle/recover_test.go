package bundle

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// storedBundle reads a bundle of a directory.
func storedBundle(t *testing.T, dir string, serial int64) *Bundle {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, fileOf(serial)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFollower_keepsStoredSignatures offers the active manifest with other signatures. A source
// must not take away a signature, as the bundle then might not be trusted at the next start.
func TestFollower_keepsStoredSignatures(t *testing.T) {
	first, firstPublic := newKey(t)
	second, secondPublic := newKey(t)
	later, laterPublic := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	trust := slices.Concat(firstPublic, secondPublic)
	f := follow(t, web.URL, dir, trust, nil)
	take := func(keys ...[]byte) {
		t.Helper()
		web.offer(pack(t, Manifest{Serial: 1}, project("one"), keys...))
		if _, err := f.take(t.Context(), engine.activate); err != nil || engine.activations != 1 {
			t.Fatalf("%v, %d activations", err, engine.activations)
		}
	}
	web.offer(pack(t, Manifest{Serial: 1}, project("one"), first, second))
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	file := func() os.FileInfo {
		info, err := os.Stat(filepath.Join(dir, "1.bundle"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := file()
	take(first)
	take(second)
	if !os.SameFile(before, file()) {
		t.Error("the bundle was written again")
	}
	take(first, later)
	if got := len(storedBundle(t, dir, 1).signatures); got != 3 {
		t.Errorf("%d signatures are stored, want those of all 3 keys", got)
	}
	web.Close()
	for name, key := range map[string][]byte{"first": firstPublic, "second": secondPublic, "later": laterPublic} {
		if err := follow(t, web.URL, dir, key, nil).Start(t.Context(), (&server{}).activate); err != nil {
			t.Errorf("with the %s key alone: %v", name, err)
		}
	}
}

// TestTrust_merge fills a bundle with signatures by unknown keys: one by a trusted key must still
// find room, and must not lose it.
func TestTrust_merge(t *testing.T) {
	key, public := newKey(t)
	other, otherPublic := newKey(t)
	trust, err := ParseTrust(slices.Concat(public, otherPublic))
	if err != nil {
		t.Fatal(err)
	}
	of := func(d *draft) *Bundle {
		b, err := Read(d.bytes())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	draftOf := func(keys ...[]byte) *draft { return newDraft(t, 1, keys...) }
	junk := draftOf()
	for range maxSignatures {
		stranger, _ := newKey(t)
		junk.keys = append(junk.keys, stranger)
	}
	full := of(junk)
	one := trust.merge(full, of(draftOf(key)))
	if err := trust.Verify(one); err != nil || len(one.signatures) != maxSignatures {
		t.Errorf("%v, %d signatures", err, len(one.signatures))
	}
	two := trust.merge(trust.merge(one, full), of(draftOf(other)))
	signers := two.Signers()
	for _, text := range [][]byte{key, other} {
		private, err := parsePrivateKey(text)
		if err != nil {
			t.Fatal(err)
		}
		id, _, err := sign(two.manifest, private, signatureType)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(signers, id) {
			t.Errorf("the signature by %s is lost", id)
		}
	}
	if trust.merge(two, full) != two {
		t.Error("signatures by unknown keys replace others")
	}
}

// TestFollower_triesStoredBundleAgain starts with a stored bundle that does not load for a reason
// that passes. Without its source the server must serve it later.
func TestFollower_triesStoredBundleAgain(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	f := follow(t, web.URL, dir, public, nil)
	web.offer(pack(t, Manifest{Serial: 1}, project("one"), key))
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	web.offer(pack(t, Manifest{Serial: 2}, project("two"), key))
	if _, err := f.take(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	web.Close()

	engine = &server{broken: "two"}
	f = follow(t, web.URL, dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil || engine.text != "# one\n" {
		t.Fatalf("started with %q, %v", engine.text, err)
	}
	loads := engine.loads
	for range 3 {
		_, err := f.take(t.Context(), engine.activate)
		if err == nil || !strings.Contains(err.Error(), "bundle 2 in the directory") || !strings.Contains(err.Error(), "fetch bundle") {
			t.Errorf("the problem is %v", err)
		}
	}
	if engine.loads != loads {
		t.Errorf("the bundle was loaded %d times within an hour", engine.loads-loads)
	}
	f.options.Now = func() time.Time { return today.Add(2 * refusalTime) }
	if _, err := f.take(t.Context(), engine.activate); err == nil || engine.loads != loads+1 {
		t.Errorf("after an hour: %v, loaded %d times", err, engine.loads-loads)
	}
	engine.broken = ""
	if _, err := f.take(t.Context(), engine.activate); err == nil || f.Status().Serial != 1 {
		t.Errorf("tried again within an hour: %v", err)
	}
	f.options.Now = func() time.Time { return today.Add(4 * refusalTime) }
	if _, err := f.take(t.Context(), engine.activate); err == nil || f.Status().Serial != 2 || strings.Contains(err.Error(), "bundle 2") {
		t.Errorf("serving %d: %v", f.Status().Serial, err)
	}
	if got := bundles(t, dir); !slices.Equal(got, []string{"1.bundle", "2.bundle"}) {
		t.Errorf("stored %v", got)
	}
}

// TestFollower_sourcesDifferInQuery requires that a download is not continued, and a tag not used,
// for a URL with another query.
func TestFollower_sourcesDifferInQuery(t *testing.T) {
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	web.offer(pack(t, Manifest{Serial: 1}, project(strings.Repeat("long ", 100_000)), key))
	web.cut = 300_000
	if err := follow(t, web.URL+"/shop?channel=a", dir, public, nil).Start(t.Context(), engine.activate); !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	web.cut = 0
	f := follow(t, web.URL+"/shop?channel=b", dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	if r := web.requests[len(web.requests)-1]; r.Header.Get("Range") != "" {
		t.Error("the download for another query was continued")
	}
	if f.tag() == "" {
		t.Fatal("the bundle has no tag")
	}
	f = follow(t, web.URL+"/shop?channel=c", dir, public, nil)
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	if f.tag() != "" {
		t.Error("the tag for another query is used")
	}
	for _, name := range []string{recordName, partRecord} {
		if text, _ := os.ReadFile(filepath.Join(dir, name)); strings.Contains(string(text), "channel") {
			t.Errorf("%s has the query", name)
		}
	}
}

// TestFollower_newNameInTrustFile recovers an appliance on which a stolen key signed the highest serial
// number: the maker replaces the key and the name in the trust file, and starts again at 1.
func TestFollower_newNameInTrustFile(t *testing.T) {
	stolen, stolenPublic := newKey(t)
	key, public := newKey(t)
	dir, web, engine := t.TempDir(), newSite(t), &server{}
	trust := trustOf(t, 1, "shop", stolenPublic)
	f := follow(t, web.URL, dir, trust, nil)
	f.options.Trust = func() ([]byte, error) { return trust, nil }
	web.offer(pack(t, Manifest{Serial: maxSerial}, project("stolen"), stolen))
	if err := f.Start(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	web.offer(pack(t, Manifest{Name: "shop-2", Serial: 1}, project("one"), key, stolen))
	if _, err := f.take(t.Context(), engine.activate); err == nil {
		t.Fatal("a bundle with another name is active")
	}
	trust = trustOf(t, 1, "shop-2", public)
	if _, err := f.take(t.Context(), engine.activate); err != nil || engine.text != "# one\n" {
		t.Fatalf("serving %q: %v", engine.text, err)
	}
	if got := bundles(t, dir); !slices.Equal(got, []string{"1.bundle"}) {
		t.Errorf("stored %v", got)
	}
	web.offer(pack(t, Manifest{Name: "shop-2", Serial: 2}, project("two"), key))
	if _, err := f.take(t.Context(), engine.activate); err != nil {
		t.Fatal(err)
	}
	web.offer(pack(t, Manifest{Name: "shop-2", Serial: 1}, project("one"), key))
	if _, err := f.take(t.Context(), engine.activate); err == nil || !strings.Contains(err.Error(), "lower than 2") {
		t.Errorf("the serial numbers of the new name are not kept: %v", err)
	}

	// a wrong name for a while, in which nothing comes, changes nothing
	right := trust
	trust = trustOf(t, 1, "shop-3", public)
	if _, err := f.take(t.Context(), engine.activate); err == nil {
		t.Error("a bundle that is no longer trusted is not reported")
	}
	trust = right
	if _, err := f.take(t.Context(), engine.activate); err == nil || !strings.Contains(err.Error(), "lower than 2") {
		t.Errorf("the serial numbers are lost: %v", err)
	}

	// the same after a restart before the new bundle came, with the old one still stored
	dir, engine = t.TempDir(), &server{}
	if err := os.WriteFile(filepath.Join(dir, fileOf(maxSerial)), pack(t, Manifest{Serial: maxSerial}, project("stolen"), stolen), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (folder{realDisk(dir)}).setRecord(record{Name: "shop", Serial: maxSerial}); err != nil {
		t.Fatal(err)
	}
	if err := follow(t, web.URL, dir, trust, nil).Start(t.Context(), engine.activate); err != nil || engine.text != "# one\n" {
		t.Errorf("serving %q: %v", engine.text, err)
	}
	web.Config.Handler = http.NotFoundHandler()
	engine = &server{}
	if err := follow(t, web.URL, dir, trust, nil).Start(t.Context(), engine.activate); err != nil || engine.text != "# one\n" {
		t.Errorf("without the source, serving %q: %v", engine.text, err)
	}
}
