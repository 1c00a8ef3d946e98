package oci_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/internal/ops/bundle/oci"
)

// release signs bundles.
type release struct{ private, public []byte }

func newRelease(t *testing.T) release {
	t.Helper()
	open, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(open)
	if err != nil {
		t.Fatal(err)
	}
	return release{pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})}
}

func (r release) bundle(t *testing.T, serial int64) ([]byte, bundle.Manifest) {
	t.Helper()
	data, err := bundle.Pack(fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "# %d\n", serial)}}, bundle.Manifest{Name: "shop", Serial: serial, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = bundle.Sign(data, r.private); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return data, b.Manifest
}

// site is a registry whose answers a test replaces.
type site struct {
	*httptest.Server
	intercept atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (answered bool)]

	mu       sync.Mutex
	requests []string
}

func newSite(t *testing.T) *site {
	s, real := &site{}, registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if intercept := s.intercept.Load(); intercept == nil || !(*intercept)(w, r) {
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) reference(tag string) string {
	return oci.Scheme + strings.TrimPrefix(s.URL, "http://") + "/acme/shop" + tag
}

// seen returns the requests since the last call.
func (s *site) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.requests
	s.requests = nil
	return seen
}

func open(t *testing.T, reference, authFile string) *oci.Repository {
	t.Helper()
	r, err := oci.Open(reference, authFile, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func push(t *testing.T, r *oci.Repository, data []byte, about bundle.Manifest) string {
	t.Helper()
	digest, err := r.Push(t.Context(), data, about)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestRepository_pushAndFetch(t *testing.T) {
	site, key := newSite(t), newRelease(t)
	r := open(t, site.reference(":stable"), "")
	one, about := key.bundle(t, 1)
	digest := push(t, r, one, about)
	if again := push(t, r, one, about); again != digest {
		t.Errorf("the digest changed from %s to %s", digest, again)
	}
	got, err := r.Fetch(t.Context(), "")
	if err != nil || string(got.Data) != string(one) || got.Tag != digest || !got.Exact || got.Unchanged {
		t.Fatalf("fetched %d bytes, tag %s: %v", len(got.Data), got.Tag, err)
	}
	site.seen()
	if got, err := r.Fetch(t.Context(), digest); err != nil || !got.Unchanged || len(got.Data) > 0 || got.Tag != digest {
		t.Errorf("the same again: %+v, %v", got, err)
	}
	if seen := site.seen(); len(seen) != 1 || !strings.HasPrefix(seen[0], "HEAD /v2/acme/shop/manifests/") {
		t.Errorf("the requests are %v", seen)
	}
	pinned := open(t, site.reference("@"+digest), "")
	two, about := key.bundle(t, 2)
	if next := push(t, r, two, about); next == digest {
		t.Error("two bundles have the same digest")
	}
	if got, err := r.Fetch(t.Context(), digest); err != nil || string(got.Data) != string(two) {
		t.Errorf("the next bundle: %v", err)
	}
	if got, err := pinned.Fetch(t.Context(), ""); err != nil || string(got.Data) != string(one) {
		t.Errorf("by its digest: %v", err)
	}
	site.seen()
	if got, err := pinned.Fetch(t.Context(), digest); err != nil || !got.Unchanged || len(site.seen()) > 0 {
		t.Errorf("by its digest again: %+v, %v", got, err)
	}
	if _, err := pinned.Push(t.Context(), two, about); err == nil {
		t.Error("a bundle was pushed to a digest")
	}
	if _, err := open(t, site.reference(":none"), "").Fetch(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a missing tag: %v", err)
	}
}

// TestFollower_registry follows a tag from one bundle to the next, over bundles that it must refuse.
func TestFollower_registry(t *testing.T) {
	site, key, stranger := newSite(t), newRelease(t), newRelease(t)
	r := open(t, site.reference(":stable"), "")
	data, about := key.bundle(t, 1)
	push(t, r, data, about)
	f, err := bundle.New(bundle.Options{
		Remote: r, Dir: t.TempDir(), Trust: func() ([]byte, error) { return key.public, nil }, Version: "1.2.3", Poll: 10 * time.Millisecond, Wait: time.Second,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	active := make(chan string, 10)
	activate := func(_ context.Context, files fs.FS) error {
		text, err := fs.ReadFile(files, "mcpd.hcl")
		active <- string(text)
		return err
	}
	if err := f.Start(t.Context(), activate); err != nil {
		t.Fatal(err)
	}
	data, about = stranger.bundle(t, 7)
	push(t, r, data, about)
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { f.Run(ctx, activate) })
	data, about = key.bundle(t, 2)
	push(t, r, data, about)
	for _, want := range []string{"# 1\n", "# 2\n"} {
		if got := <-active; got != want {
			t.Errorf("active is %q, want %q", got, want)
		}
	}
	stop()
	running.Wait()
	if s := f.Status(); s.Serial != 2 || s.Source != site.reference(":stable") {
		t.Errorf("the status is %+v", s)
	}
}

// TestRepository_credentials asks for a password, and for a token that a password buys.
func TestRepository_credentials(t *testing.T) {
	site, key := newSite(t), newRelease(t)
	var scheme atomic.Value
	intercept := func(w http.ResponseWriter, r *http.Request) bool {
		name, password, basic := r.BasicAuth()
		known := basic && name == "ada" && password == "swordfish"
		switch {
		case r.URL.Path == "/token":
			// oras sends a password as a form
			if known = known || r.FormValue("password") == "swordfish"; !known {
				http.Error(w, `{"errors": [{"code": "DENIED", "message": "not `+r.FormValue("password")+`"}]}`, http.StatusUnauthorized)
				return true
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"token": "bought", "access_token": "bought"})
			return true
		case scheme.Load() == "basic" && known, scheme.Load() == "bearer" && r.Header.Get("Authorization") == "Bearer bought":
			return false
		case scheme.Load() == "basic":
			w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+site.URL+`/token",service="shop"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	site.intercept.Store(&intercept)
	configure := func(password string) string {
		file := filepath.Join(t.TempDir(), "config.json")
		text := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, strings.TrimPrefix(site.URL, "http://"), base64.StdEncoding.EncodeToString([]byte("ada:"+password)))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	data, about := key.bundle(t, 1)
	for _, name := range []string{"basic", "bearer"} {
		scheme.Store(name)
		file := configure("perch")
		r := open(t, site.reference(":stable"), file)
		if _, err := r.Push(t.Context(), data, about); err == nil {
			t.Errorf("%s: a wrong password is accepted", name)
		}
		right, err := os.ReadFile(configure("swordfish"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, right, 0o600); err != nil { // which needs no restart
			t.Fatal(err)
		}
		push(t, r, data, about)
		if got, err := r.Fetch(t.Context(), ""); err != nil || string(got.Data) != string(data) {
			t.Errorf("%s: %v", name, err)
		}
		for _, file := range []string{"", filepath.Join(t.TempDir(), "missing"), configure("perch")} {
			_, err := open(t, site.reference(":stable"), file).Fetch(t.Context(), "")
			if err == nil || strings.Contains(err.Error(), "perch") {
				t.Errorf("%s with %q: %v", name, file, err)
			}
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestRepository_credentialHelper takes the password from a program.
func TestRepository_credentialHelper(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	site, key, dir := newSite(t), newRelease(t), t.TempDir()
	intercept := func(w http.ResponseWriter, r *http.Request) bool {
		_, password, _ := r.BasicAuth()
		if password == "swordfish" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	site.intercept.Store(&intercept)
	helper := "#!/bin/sh\ncat >/dev/null\necho '{\"Username\": \"ada\", \"Secret\": \"swordfish\"}'\n"
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-mcpdtest"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, []byte(`{"credsStore": "mcpdtest"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	data, about := key.bundle(t, 1)
	push(t, open(t, site.reference(":stable"), config), data, about)
}

// TestOpen_form lists references that are not accepted. No error repeats a password.
func TestOpen_form(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for reference, ok := range map[string]bool{
		"oci://ghcr.io/acme/shop:stable": true, "oci://ghcr.io/acme/shop" + digest: true, "oci://localhost:5000/shop:1": true, "oci://[::1]:5000/shop:1": true,
		"oci://ghcr.io/acme/shop": false, "oci://ghcr.io": false, "oci://": false, "ghcr.io/acme/shop:stable": false, "https://ghcr.io/acme/shop:stable": false,
		"oci://ada:swordfish@ghcr.io/acme/shop:stable": false, "oci://ghcr.io/acme/../shop:stable": false, "oci://ghcr.io/Acme/shop:stable": false,
		"oci://ghcr.io/acme/shop:a b": false, "oci://ghcr.io/acme/shop@sha256:00": false, "oci://ghcr.io/acme/shop?x=1:stable": false,
	} {
		if _, err := oci.Open(reference, "", ""); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %v", reference, err)
		}
	}
}

// answers are the answers of a registry that is not what it should be. Each field is nil for a
// correct answer.
type answers struct{ head, manifest, blob http.HandlerFunc }

// TestRepository_hostileRegistry requires an error for each of many wrong answers, and that no more
// than the limits is read.
func TestRepository_hostileRegistry(t *testing.T) {
	site, key := newSite(t), newRelease(t)
	data, about := key.bundle(t, 1)
	r := open(t, site.reference(":stable"), "")
	push(t, r, data, about)
	sum := func(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

	var sent atomic.Int64
	endless := func(w http.ResponseWriter) {
		chunk := make([]byte, 64<<10)
		for {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}
	head := func(mediaType, digest string, size int64) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			if digest != "" {
				w.Header().Set("Docker-Content-Digest", digest)
			}
		}
	}
	const imageType = "application/vnd.oci.image.manifest.v1+json"
	// manifest answers with a manifest, which has its digest.
	manifest := func(text string) answers {
		body := func(w http.ResponseWriter, r *http.Request) {
			head(imageType, sum([]byte(text)), int64(len(text)))(w, r)
			_, _ = io.WriteString(w, text)
		}
		return answers{head: head(imageType, sum([]byte(text)), int64(len(text))), manifest: body}
	}
	layer := func(mediaType, digest string, size int64) string {
		return fmt.Sprintf(`{"mediaType": %q, "digest": %q, "size": %d}`, mediaType, digest, size)
	}
	image := func(layers ...string) answers {
		return manifest(`{"schemaVersion": 2, "layers": [` + strings.Join(layers, ",") + `]}`)
	}
	good := layer(oci.LayerType, sum(data), int64(len(data)))
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
	}
	challenge := func(realm string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="shop"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	with := func(a answers, blob http.HandlerFunc) answers {
		a.blob = blob
		return a
	}
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, a := range map[string]answers{
		"huge manifest":     {head: head(imageType, sum(nil), 1<<40)},
		"negative size":     {head: head(imageType, sum(nil), -5)},
		"index":             {head: head("application/vnd.oci.image.index.v1+json", sum(nil), 10)},
		"web page":          {head: head("text/html", sum(nil), 10)},
		"no media type":     {head: head("", sum(nil), 10)},
		"no digest":         {head: head(imageType, "", 10)},
		"bad digest":        {head: head(imageType, "sha256:../../x", 10)},
		"unknown algorithm": {head: head(imageType, "md5:"+strings.Repeat("0", 32), 10)},
		"other manifest":    {manifest: manifest(`{}`).manifest},
		"endless manifest":  {head: head(imageType, sum(nil), 1000), manifest: func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", imageType); endless(w) }},
		"changed manifest": {head: head(imageType, sum(nil), 2), manifest: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", imageType)
			_, _ = io.WriteString(w, "{}")
		}},
		"redirect to plain HTTP":  {head: redirect("http://registry.example.com/v2/acme/shop/manifests/stable")},
		"redirect to a file":      {head: redirect("file:///etc/passwd")},
		"redirect without an end": {head: redirect("/v2/acme/shop/manifests/stable")},
		"server error": {manifest: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(w)
		}},
		"token over plain HTTP":     {head: challenge("http://auth.example.com/token")},
		"token from a file":         {head: challenge("file:///etc/passwd")},
		"token from metadata":       {head: challenge("http://169.254.169.254/latest")},
		"endless token":             {head: challenge(site.URL + "/endless")},
		"empty manifest":            manifest(``),
		"no JSON":                   manifest(`schemaVersion: 2`),
		"nested manifest":           manifest(strings.Repeat("[", 60_000)),
		"other types":               manifest(`{"layers": "one"}`),
		"no layer":                  image(),
		"two layers":                image(good, good),
		"other media type":          image(layer("application/octet-stream", sum(data), int64(len(data)))),
		"empty layer":               image(layer(oci.LayerType, sum(nil), 0)),
		"negative layer":            image(layer(oci.LayerType, sum(data), -1)),
		"large layer":               image(layer(oci.LayerType, sum(data), bundle.MaxSize+1)),
		"layer without digest":      image(layer(oci.LayerType, "", 10)),
		"layer with a path":         image(layer(oci.LayerType, "sha256:../../../../token", 10)),
		"layer with SHA-512":        image(layer(oci.LayerType, "sha512:"+strings.Repeat("0", 128), 10)),
		"missing layer":             image(layer(oci.LayerType, sum([]byte("none")), 10)),
		"longer layer":              with(image(good), body(string(data)+"x")),
		"shorter layer":             with(image(good), body(string(data[:len(data)-1]))),
		"other layer":               with(image(good), body(strings.Repeat("x", len(data)))),
		"endless layer":             with(image(good), func(w http.ResponseWriter, _ *http.Request) { endless(w) }),
		"layer over plain HTTP":     with(image(good), redirect("http://blobs.example.com/?signature=swordfish")),
		"layer at a server in vain": with(image(good), redirect("https://127.0.0.1:1/?signature=swordfish")),
	} {
		t.Run(name, func(t *testing.T) {
			intercept := func(w http.ResponseWriter, r *http.Request) bool {
				of := func(h http.HandlerFunc) bool {
					if h != nil {
						h(w, r)
					}
					return h != nil
				}
				switch {
				case r.URL.Path == "/endless":
					_, _ = io.WriteString(w, `{"token": "`)
					endless(w)
					return true
				case strings.Contains(r.URL.Path, "/blobs/"):
					return of(a.blob)
				case r.Method == http.MethodHead:
					return of(a.head)
				}
				return of(a.manifest)
			}
			site.intercept.Store(&intercept)
			sent.Store(0)
			before := sent.Load()
			_, err := open(t, site.reference(":stable"), "").Fetch(t.Context(), "")
			if err == nil || strings.Contains(err.Error(), "swordfish") || len(err.Error()) > 4<<10 {
				t.Errorf("the error is %v", err)
			}
			t.Log(err)
			if n := sent.Load() - before; n > 16<<20 { // buffers of the connection
				t.Errorf("%d bytes were read", n)
			}
		})
	}
	site.intercept.Store(nil)
	if got, err := r.Fetch(t.Context(), ""); err != nil || !slices.Equal(got.Data, data) {
		t.Errorf("after that: %v", err)
	}
}

// TestRepository_pushRefused pushes to a registry that fails at each step.
func TestRepository_pushRefused(t *testing.T) {
	site, key := newSite(t), newRelease(t)
	data, about := key.bundle(t, 1)
	for _, step := range []string{"HEAD ", "POST ", "PUT /v2/acme/shop/blobs", "PUT /v2/acme/shop/manifests"} {
		intercept := func(w http.ResponseWriter, r *http.Request) bool {
			fails := strings.HasPrefix(r.Method+" "+r.URL.Path, step)
			if fails {
				http.Error(w, `{"errors": [{"code": "DENIED", "message": "swordfish"}]}`, http.StatusForbidden)
			}
			return fails
		}
		site.intercept.Store(&intercept)
		digest, err := open(t, site.reference(":stable"), "").Push(t.Context(), data, about)
		if err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %q, %v", step, digest, err)
		}
	}
	site.intercept.Store(nil)
	if _, err := open(t, site.reference(":stable"), "").Fetch(t.Context(), ""); err == nil {
		t.Error("a tag was set")
	}
}
