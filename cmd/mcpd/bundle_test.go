package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/mcpd/mcpd/internal/ops/bundle"
)

// release makes bundles with one tool, which returns the serial number.
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

func (r release) bundle(t *testing.T, serial int64) []byte {
	t.Helper()
	return r.configured(t, serial, "server { name = \"shop\" }\n")
}

// configured returns a bundle with this mcpd.hcl.
func (r release) configured(t *testing.T, serial int64, config string) []byte {
	t.Helper()
	tool := fmt.Sprintf("tool \"serial\" {\n  run = <<JS\n    return %d;\n  JS\n}\n", serial)
	data, err := bundle.Pack(fstest.MapFS{
		"mcpd.hcl": {Data: []byte(config)}, "tools.d/serial.hcl": {Data: []byte(tool)},
		"tools.d/text.txt": {Data: []byte(strings.Repeat("text ", 100_000))},
	}, bundle.Manifest{Name: "shop", Serial: serial, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = bundle.Sign(data, r.private); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBundle_killedServerServesAgain kills mcpd while it downloads and activates bundles. Without
// its site it must start again, with the last bundle that was in service or a newer one.
func TestBundle_killedServerServesAgain(t *testing.T) {
	t.Parallel()
	r, dir := newRelease(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "release.pub"), r.public, 0o600); err != nil {
		t.Fatal(err)
	}
	var offer atomic.Pointer[[]byte]
	var sent atomic.Int64 // bytes to send before the server is killed; negative sends everything
	kill := make(chan struct{}, 1)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		data := offer.Load()
		if data == nil {
			http.Error(w, "closed", http.StatusServiceUnavailable)
			return
		}
		n := int(sent.Load())
		if n < 0 {
			_, _ = w.Write(*data)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(*data)))
		_, _ = w.Write((*data)[:min(n, len(*data))])
		_ = http.NewResponseController(w).Flush()
		select {
		case kill <- struct{}{}:
		default:
		}
		if n < len(*data) {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(site.Close)
	program := buildDaemon(t)
	var d *daemon
	t.Cleanup(func() { d.kill() })
	start := func() *daemon {
		d, err := startDaemon(program, dir, os.Environ(), []string{"--bundle", site.URL, "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "100ms"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	serving := func(d *daemon) (serial int64) {
		_, body, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"serial","arguments":{}}`), nil)
		var answer struct{ Result int64 }
		if err != nil || json.Unmarshal(body, &answer) != nil || answer.Result == 0 {
			t.Fatalf("call: %v %s", err, body)
		}
		return answer.Result
	}
	first := r.bundle(t, 1)
	offer.Store(&first)
	sent.Store(-1)
	d = start()
	last := serving(d)
	for serial := int64(2); serial < 10; serial++ {
		next := r.bundle(t, serial)
		sent.Store(int64(len(next)) * (serial - 2) / 5) // from nothing to everything
		offer.Store(&next)
		<-kill
		d.kill()
		offer.Store(nil)
		d = start()
		now := serving(d)
		if now < last || now > serial {
			t.Fatalf("serving %d after %d was in service and %d offered", now, last, serial)
		}
		t.Logf("killed with %d of %d bytes sent: %d serves", min(sent.Load(), int64(len(next))), len(next), now)
		sent.Store(-1)
		offer.Store(&next)
		if now < serial {
			if _, err := d.waitFor(regexp.MustCompile(fmt.Sprintf(`bundle activated.*serial=%d `, serial))); err != nil {
				t.Fatal(err)
			}
		}
		last = serial
		select {
		case <-kill:
		default:
		}
	}
	d.kill()
	files, err := filepath.Glob(filepath.Join(dir, "kept", "*.bundle"))
	if err != nil || len(files) < 2 || len(files) > 3 {
		t.Errorf("kept %v, %v", files, err)
	}
}

// TestBundle_longPoll requires that a server which waits for a new bundle is asked again at once.
func TestBundle_longPoll(t *testing.T) {
	t.Parallel()
	r, dir := newRelease(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "release.pub"), r.public, 0o600); err != nil {
		t.Fatal(err)
	}
	one, two := r.bundle(t, 1), r.bundle(t, 2)
	asked, release := make(chan string, 100), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		data, tag := one, `"one"`
		if request.Header.Get("If-None-Match") == tag {
			asked <- request.Header.Get("Prefer")
			select {
			case <-release:
			case <-request.Context().Done():
				return
			}
			data, tag = two, `"two"`
		}
		w.Header().Set("ETag", tag)
		w.Header().Set("Preference-Applied", "wait")
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(site.Close)
	d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--bundle", site.URL, "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "1h"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	if prefer := <-asked; prefer != "wait=50" {
		t.Errorf("the request prefers %q", prefer)
	}
	close(release)
	if _, err := d.waitFor(regexp.MustCompile(`bundle activated.*serial=2`)); err != nil {
		t.Fatal(err)
	}
}

// TestBundle_registry pushes bundles to a registry and serves them from there, over HTTPS by a proxy
// and with credentials.
func TestBundle_registry(t *testing.T) {
	t.Parallel()
	r, dir, handler := newRelease(t), t.TempDir(), registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if name, password, _ := request.BasicAuth(); name != "ada" || password != "swordfish" {
			w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(site.Close)
	const host = "example.com" // which the certificate of the server names
	proxy := httptest.NewServer(tunnel(site.Listener.Addr().String()))
	t.Cleanup(proxy.Close)
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("release.pub", r.public)
	write("config.json", fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("ada:swordfish"))))
	write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw}))
	const reference = "oci://" + host + "/acme/shop:stable"
	program, environment := buildDaemon(t), append(os.Environ(), "HTTPS_PROXY="+proxy.URL, "SSL_CERT_FILE="+filepath.Join(dir, "ca.pem"))
	push := func(serial int64, variables ...string) (code int, output string) {
		t.Helper()
		write("shop.bundle", r.bundle(t, serial))
		verb := exec.Command(program, "bundle", "push", "shop.bundle", reference)
		verb.Dir, verb.Env = dir, append(slices.Clip(environment), variables...)
		text, err := verb.CombinedOutput()
		if verb.ProcessState == nil {
			t.Fatal(err)
		}
		return verb.ProcessState.ExitCode(), string(text)
	}
	if code, output := push(1, "HOME="+dir); code != exitFindings || !strings.Contains(output, "push bundle") {
		t.Errorf("without credentials: %d %s", code, output)
	}
	if code, output := push(1, "DOCKER_CONFIG="+dir); code != exitOK || !strings.Contains(output, "shop, serial 1, 1 signature, sha256:") {
		t.Fatalf("with DOCKER_CONFIG: %d %s", code, output)
	}
	args := []string{"--bundle", reference, "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "100ms", "--registry-auth", "config.json"}
	d, err := startDaemon(program, dir, environment, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.kill() })
	if code, output := push(2, "REGISTRY_AUTH_FILE=config.json"); code != exitOK {
		t.Fatalf("with REGISTRY_AUTH_FILE: %d %s", code, output)
	}
	if _, err := d.waitFor(regexp.MustCompile(`bundle activated.*serial=2`)); err != nil {
		t.Fatal(err)
	}
	site.Close()
	if _, err := d.waitFor(regexp.MustCompile(`keep active bundle.*fetch bundle`)); err != nil {
		t.Fatal(err)
	}
	d.kill()
	if d, err = startDaemon(program, dir, environment, args); err != nil {
		t.Fatalf("without the registry: %v", err)
	}
	for _, args := range [][]string{
		{"bundle", "push", "shop.bundle", "oci://" + host + "/acme/shop"},
		{"bundle", "push", "shop.bundle", reference, "--registry-auth", "missing.json"},
		{"bundle", "push", "missing.bundle", reference},
	} {
		if code, _, stderr := inProcess(t, dir, nil, args...); code != exitUsage {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	write("shop.bundle", []byte("no bundle"))
	if code, _, stderr := inProcess(t, dir, nil, "bundle", "push", "shop.bundle", reference); code != exitFindings {
		t.Errorf("a damaged bundle: %d %s", code, stderr)
	}
}

// TestBundle_changedDecisions offers bundles whose policies decide audited calls differently.
func TestBundle_changedDecisions(t *testing.T) {
	t.Parallel()
	r, dir := newRelease(t), t.TempDir()
	config := fmt.Sprintf("audit {\n  path = %q\n  mode = \"strict\"\n}\n", filepath.Join(dir, "audit.jsonl"))
	deny := "policy \"closed\" {\n  deny   = \"tool.name == 'serial'\"\n  reason = \"closed\"\n}\n"
	offer := func(serial int64, config string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "new.bundle"), r.configured(t, serial, config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new.bundle"), filepath.Join(dir, "shop.bundle")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "release.pub"), r.public, 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(most string) *daemon {
		t.Helper()
		d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--bundle", "shop.bundle", "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "100ms", "--max-changed-decisions", most})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.kill)
		return d
	}
	sees := func(d *daemon, line string) {
		t.Helper()
		d.mu.Lock()
		d.next = 0 // a stored bundle is activated before the server listens
		d.mu.Unlock()
		if _, err := d.waitFor(regexp.MustCompile(line)); err != nil {
			t.Fatal(err)
		}
	}
	call := func(d *daemon, want string) {
		t.Helper()
		_, body, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"serial","arguments":{}}`), nil)
		if err != nil || !strings.Contains(string(body), want) {
			t.Fatalf("call: %v %s, want %s", err, body, want)
		}
	}
	offer(1, config)
	d := start("0")
	for range 3 {
		call(d, `"result":1`)
	}
	offer(2, config+deny)
	sees(d, `keep active bundle.*1 decision about the last 3 audited calls.*record .*serial.*recorded allowed, with the bundle denied by.*closed`)
	call(d, `"result":1`)
	for _, path := range []string{"/readyz", "status"} {
		var text string
		if path == "status" {
			_, stdout, stderr := inProcess(t, dir, nil, "status", "--bundle-dir", "kept")
			text = stdout + stderr
		} else if code, body, err := d.exchange(http.MethodGet, path, nil, nil); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %v", path, code, err)
		} else {
			text = string(body)
		}
		if !strings.Contains(text, "would change, more than") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if _, stdout, _ := inProcess(t, dir, nil, "status", "--bundle-dir", "kept", "--json"); !strings.Contains(stdout, `"decisions"`) {
		t.Errorf("status --json has no problem_code decisions: %s", stdout)
	}
	d.kill()
	d = start("0") // bundle 2 is refused again
	call(d, `"result":1`)
	d.kill()
	d = start("1")
	sees(d, `bundle activated.*serial=2 `)
	call(d, "closed")
	recorded := regexp.MustCompile(`"serial": ?2\b`)
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // until the record is written, which nothing signals
		record, err := os.ReadFile(filepath.Join(dir, "kept", "active.json"))
		if err == nil && recorded.Match(record) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the record is %s, %v", record, err)
		}
	}
	d.kill()
	d = start("0") // the active bundle is not examined again
	call(d, "closed")
	offer(3, "server { name = \"shop\" }\n"+deny) // decides as bundle 2, other than the record
	sees(d, `bundle activated.*serial=3 `)
	d.kill()
	d = start("0")
	sees(d, "no audit log for --max-changed-decisions")
}

// TestBundle_noDecisionJudged has an audit log without arguments, and policies that read them: the server
// must say that bundles pass without being judged.
func TestBundle_noDecisionJudged(t *testing.T) {
	t.Parallel()
	r, dir := newRelease(t), t.TempDir()
	offer := func(serial int64, most int) {
		t.Helper()
		config := fmt.Sprintf("audit {\n  path = %q\n  mode = \"strict\"\n}\n", filepath.Join(dir, "audit.jsonl"))
		tool := fmt.Sprintf("tool \"small\" {\n  input \"n\" { type = integer }\n  run = \"return 1;\"\n}\npolicy \"bound\" {\n  deny   = \"args.n > %d\"\n  reason = \"too large\"\n}\n", most)
		data, err := bundle.Pack(fstest.MapFS{"mcpd.hcl": {Data: []byte(config)}, "tools.d/small.hcl": {Data: []byte(tool)}}, bundle.Manifest{Name: "shop", Serial: serial, Created: time.Now()})
		if err == nil {
			data, err = bundle.Sign(data, r.private)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "new.bundle"), data, 0o600)
		}
		if err == nil {
			err = os.Rename(filepath.Join(dir, "new.bundle"), filepath.Join(dir, "shop.bundle"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "release.pub"), r.public, 0o600); err != nil {
		t.Fatal(err)
	}
	start := func() *daemon {
		t.Helper()
		d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--bundle", "shop.bundle", "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "100ms", "--max-changed-decisions", "0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.kill)
		return d
	}
	status := func() (row statusResult, text string) {
		t.Helper()
		_, stdout, stderr := inProcess(t, dir, nil, "status", "--bundle-dir", "kept", "--json")
		if err := json.Unmarshal([]byte(stdout), &row); err != nil || row.Decisions == nil {
			t.Fatalf("%v: %s%s", err, stdout, stderr)
		}
		_, text, _ = inProcess(t, dir, nil, "status", "--bundle-dir", "kept")
		return row, text
	}
	warning := regexp.MustCompile(`no audited call judged for --max-changed-decisions.*calls=2 .*bound.* reads args`)
	offer(1, 9)
	d := start()
	if row, text := status(); row.Decisions.Audited != 0 || !strings.Contains(text, "decisions    0 of the last 0 audited calls judged for --max-changed-decisions 0\n") {
		t.Errorf("without calls: %+v\n%s", row.Decisions, text)
	}
	for range 2 {
		if code, body, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"small","arguments":{"n":5}}`), nil); err != nil || code != http.StatusOK {
			t.Fatalf("call: %v, %d %s", err, code, body)
		}
	}
	offer(2, 1) // denies both calls
	if _, err := d.waitFor(warning); err != nil {
		t.Fatal(err)
	}
	if _, err := d.waitFor(regexp.MustCompile(`bundle activated.*serial=2 `)); err != nil {
		t.Fatal(err)
	}
	if row, text := status(); row.Decisions.Audited != 2 || row.Decisions.Judged != 0 || !strings.Contains(row.Decisions.Reason, "reads args") || !strings.Contains(text, "0 of the last 2 audited calls judged for --max-changed-decisions 0; others not: policy") {
		t.Errorf("%+v\n%s", row.Decisions, text)
	}
	d.kill()
	d = start()
	d.mu.Lock()
	d.next = 0 // the warning precedes the address
	d.mu.Unlock()
	if _, err := d.waitFor(warning); err != nil {
		t.Fatal(err)
	}
}

// TestReload_bundle reloads a server that would look for a bundle only after an hour: reload fails
// unless the newest bundle serves.
func TestReload_bundle(t *testing.T) {
	t.Parallel()
	r, dir := newRelease(t), t.TempDir()
	offer := func(bundle []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "shop.bundle"), bundle, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "release.pub"), r.public, 0o600); err != nil {
		t.Fatal(err)
	}
	offer(r.bundle(t, 2))
	d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--bundle", "shop.bundle", "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "1h"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	reload := func(what string, code int, text string) {
		t.Helper()
		got, stdout, stderr := inProcess(t, dir, nil, "reload", "--bundle-dir", "kept")
		if got != code || !strings.Contains(stdout+stderr, text) || code == exitOK == (stdout == "") {
			t.Errorf("%s: exit code %d, %s%s", what, got, stdout, stderr)
		}
	}
	serves := func(serial string) {
		t.Helper()
		if _, body, err := d.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"serial","arguments":{}}`), nil); err != nil || !strings.Contains(string(body), `"result":`+serial) {
			t.Errorf("%v: %s, want serial %s", err, body, serial)
		}
	}
	reload("the same bundle", exitOK, "ok: serving 1 tool")
	offer(r.bundle(t, 3))
	reload("a newer bundle", exitOK, "ok: serving 1 tool")
	serves("3")
	offer(r.bundle(t, 1))
	reload("an older bundle", exitFindings, "mcpd: bundle: refuse bundle: its serial number 1 is lower than 3")
	offer(r.configured(t, 4, "server { nonsense = 1 }\n"))
	reload("a bundle with an error", exitFindings, "mcpd: bundle: load bundle 4: ")
	got, stdout, _ := inProcess(t, dir, nil, "reload", "--bundle-dir", "kept", "--json")
	var row reloadResult
	if err := json.Unmarshal([]byte(stdout), &row); err != nil || got != exitFindings || row.OK || !strings.Contains(row.BundleProblem, "load bundle 4: ") || row.Revision == "" {
		t.Errorf("--json: exit code %d, %v, %s", got, err, stdout)
	}
	serves("3")
	if err := os.Remove(filepath.Join(dir, "shop.bundle")); err != nil {
		t.Fatal(err)
	}
	reload("no source", exitFindings, "mcpd: bundle: fetch bundle: ")
	offer(r.bundle(t, 5))
	reload("a bundle in order", exitOK, "ok: serving 1 tool")
	serves("5")
}

// tunnel is a proxy that connects every client with one server.
func tunnel(address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := net.Dial("tcp", address)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer server.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer client.Close()
		if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
	})
}
