package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpd/mcpd/diag"
)

// today is the time of all tests.
var today = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)

// newKey returns an Ed25519 key as openssl writes it, and its public key.
func newKey(t testing.TB) (private, public []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keyFiles(t, key, key.Public())
}

func keyFiles(t testing.TB, private, public any) ([]byte, []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	open, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})
}

func newECKey(t testing.TB, curve elliptic.Curve) (private, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keyFiles(t, key, key.Public())
}

// trustOf returns a trust file with several keys.
func trustOf(t testing.TB, threshold int, name string, public ...[]byte) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, text := range public {
		block, _ := pem.Decode(text)
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key})
	}
	text, err := json.Marshal(map[string]any{"keys": set.Keys, "threshold": threshold, "name": name})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// project returns the files of a server with a text that makes it differ from others.
func project(text string) fstest.MapFS {
	return fstest.MapFS{
		"mcpd.hcl":          {Data: []byte("server { name = \"shop\" }\n")},
		"tools.d/a.hcl":     {Data: []byte("# " + text + "\n")},
		"tools.d/lib/b.js":  {Data: []byte("export const b = 1;\n")},
		"tools.d/.git/HEAD": {Data: []byte("ignored")},
		"README.md":         {Data: []byte("ignored")},
	}
}

// pack returns a bundle of a project, signed by keys.
func pack(t testing.TB, about Manifest, files fs.FS, keys ...[]byte) []byte {
	t.Helper()
	if about.Name == "" {
		about.Name = "shop"
	}
	if about.Created.IsZero() {
		about.Created = today.Add(-time.Hour)
	}
	data, err := Pack(files, about)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if data, err = Sign(data, key); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// draft is a bundle that need not be valid.
type draft struct {
	t        testing.TB
	manifest map[string]any
	text     []byte // of the manifest; nil encodes manifest
	signed   []byte // what the keys sign; nil for the manifest
	keys     [][]byte
	list     []string // signatures; nil signs with keys
	entries  []entry
}

// entry is an entry of a tar file.
type entry struct {
	head tar.Header
	body []byte
}

func file(name string, body string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(body)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}, []byte(body)}
}

// newDraft returns a valid bundle, which differ changes.
func newDraft(t testing.TB, serial int64, keys ...[]byte) *draft {
	d := &draft{t: t, keys: keys, entries: []entry{file("mcpd.hcl", "server {}\n"), file("tools.d/a.hcl", "# a\n")}}
	d.manifest = map[string]any{"format": format, "name": "shop", "serial": serial, "created": today.Add(-time.Hour)}
	d.list = nil
	return d
}

// bytes encodes the draft.
func (d *draft) bytes() []byte {
	d.t.Helper()
	if _, ok := d.manifest["files"]; !ok {
		files := []File{}
		for _, e := range d.entries {
			sum := sha256.Sum256(e.body)
			files = append(files, File{e.head.Name, int64(len(e.body)), hex.EncodeToString(sum[:])})
		}
		d.manifest["files"] = files
	}
	text := d.text
	if text == nil {
		text = d.encoded()
	}
	list := d.list
	if list == nil {
		list = []string{}
		for _, keyFile := range d.keys {
			list = append(list, d.sign(keyFile, text, signatureType))
		}
	}
	signatures, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		d.t.Fatal(err)
	}
	return tarOf(d.t, append([]entry{file(manifestEntry, string(text)), file(signaturesEntry, string(signatures))}, d.entries...)...)
}

// encoded returns the manifest. Its members have the order of [Manifest].
func (d *draft) encoded() []byte {
	d.t.Helper()
	var out bytes.Buffer
	out.WriteString("{")
	names := []string{"format", "name", "serial", "min_version", "created", "expires", "rollout", "files"}
	for _, extra := range slices.Sorted(maps.Keys(d.manifest)) {
		if !slices.Contains(names, extra) {
			names = append(names, extra)
		}
	}
	for _, name := range names {
		value, ok := d.manifest[name]
		if !ok {
			continue
		}
		one, err := json.Marshal(value)
		if err != nil {
			d.t.Fatal(err)
		}
		if out.Len() > 1 {
			out.WriteString(",")
		}
		out.WriteString(`"` + name + `":` + string(one))
	}
	out.WriteString("}")
	var indented bytes.Buffer
	if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil {
		d.t.Fatal(err)
	}
	return indented.Bytes()
}

func (d *draft) sign(keyFile, text []byte, kind jose.ContentType) string {
	d.t.Helper()
	key, err := parsePrivateKey(keyFile)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.signed != nil {
		text = d.signed
	}
	_, signature, err := sign(text, key, kind)
	if err != nil {
		d.t.Fatal(err)
	}
	return signature
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&e.head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// site is a web server with one bundle.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	data     []byte
	tag      string
	cut      int // ends each response after so many bytes; 0 sends everything
	requests []*http.Request
}

func newSite(t testing.TB) *site {
	s := &site{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) offer(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(data)
	s.data, s.tag = data, `"`+hex.EncodeToString(sum[:8])+`"`
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, tag, cut := s.data, s.tag, s.cut
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	w.Header().Set("ETag", tag)
	if cut > 0 {
		w = &cutWriter{w, cut}
	}
	http.ServeContent(w, r, "shop.bundle", time.Time{}, bytes.NewReader(data))
}

// cutWriter ends the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p[:min(len(p), w.left)])
	if w.left -= n; err == nil && n < len(p) {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// server stands for an engine: it counts loads and activations, and refuses files with the text
// broken, or with that in the field.
type server struct {
	loads, activations int
	text, broken       string
}

func (s *server) activate(_ context.Context, files fs.FS) error {
	text, err := fs.ReadFile(files, "tools.d/a.hcl")
	if err != nil {
		return err
	}
	s.loads++
	if bytes.Contains(text, []byte("broken")) || s.broken != "" && bytes.Contains(text, []byte(s.broken)) {
		return diag.List{{Code: "test-failed", Summary: "a test fails"}}
	}
	if bytes.Contains(text, []byte("busy")) {
		return errors.New("the address is in use")
	}
	s.activations++
	s.text = string(text)
	return nil
}

// follow returns a follower of a source.
func follow(t testing.TB, source, dir string, trust []byte, d disk) *Follower {
	t.Helper()
	if d == nil {
		d = realDisk(dir)
	}
	f, err := newFollower(Options{
		Source: source, Dir: dir, Trust: func() ([]byte, error) { return trust, nil }, Version: "1.2.3", Poll: time.Minute, Wait: time.Second,
		Now: func() time.Time { return today }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
