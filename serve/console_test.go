package serve_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/serve"
)

// fakeConsole has pages that name their caller.
type fakeConsole struct {
	mu     sync.Mutex
	open   int
	opened []serve.Operator
}

// fakePages are the pages of one caller. A path that ends in live answers until its request ends.
type fakePages struct {
	of *fakeConsole
	serve.Operator
}

func (c *fakeConsole) Open(o serve.Operator) (serve.ConsolePages, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.opened = append(c.opened, o)
	return &fakePages{c, o}, nil
}

func (c *fakeConsole) SignIn(w http.ResponseWriter, _ *http.Request, status int, problem string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "sign in %s", problem)
}

func (p *fakePages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	other := identity.Principal{ID: "bob", Kind: identity.KindKey}
	if !strings.HasPrefix(r.URL.Path, p.Base+"/") {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintf(w, "%s operates %v as bob %v", p.Principal.ID, p.MayOperate(r.Context()), p.MayActAs(r.Context(), other))
	switch {
	case strings.HasSuffix(r.URL.Path, "live"):
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "sign-out"):
		p.SignOut()
	}
}

func (p *fakePages) Close() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.open--
}

// sessions returns the number of sessions that have not ended.
func (c *fakeConsole) sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// consoleSite is a server with a console.
type consoleSite struct {
	t       *testing.T
	console *fakeConsole
	keys    map[string]string // by principal
	keyFile string
	url     string
	engine  *engine.Server
	config  fstest.MapFS
	base    sync.Map // the path of the session of each browser
}

const consoleBlock = `
console {
  allow       = "principal.id != 'eve' && principal.id != 'fails' || principal.claims.x > 1"
  operate     = "principal.id == 'ada' || principal.id == 'cy'"
  impersonate = "principal.id == 'ada' && other.id == 'bob'"
}
`

func newConsoleSite(t *testing.T, block string) *consoleSite {
	t.Helper()
	c := &consoleSite{t: t, console: &fakeConsole{}}
	c.keys, c.keyFile = validKeys(t, "ada", "bob", "cy", "eve", "fails")
	c.config = fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "auth \"api_key\" \"a\" { file = %q }\nauth \"anonymous\" \"guests\" {}\n%s", c.keyFile, block), Mode: 0o644}}
	var err error
	c.engine, err = engine.New(engine.Options{
		Name: "test", Front: withoutTLS{}, Logger: slog.New(slog.DiscardHandler),
		Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte("tool \"t\" {\n  run = \"return 1\"\n}\n"), Mode: 0o644}}, Config: c.config},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(c.engine, serve.Options{Console: c.console})
	t.Cleanup(func() {
		if err := front.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if n := c.console.sessions(); n != 0 {
			t.Errorf("%d sessions after the shutdown", n)
		}
	})
	handler, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// browser returns a client with cookies that follows no redirect.
func (c *consoleSite) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// at returns the address of a page, in the session of a browser if it has one.
func (c *consoleSite) at(b *http.Client, path string) string {
	if page, ok := strings.CutPrefix(path, "/console/"); ok {
		if base, ok := c.base.Load(b); ok {
			return c.url + base.(string) + page
		}
	}
	return c.url + path
}

// send sends a request. A nil form is a GET.
func (c *consoleSite) send(b *http.Client, path string, form url.Values, modify ...func(*http.Request)) (status int, text string, header http.Header) {
	c.t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.at(b, path), strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", c.url)
	}
	for _, m := range modify {
		m(r)
	}
	answer, err := b.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, string(read), answer.Header
}

// signIn signs in with a credential.
func (c *consoleSite) signIn(b *http.Client, credential string, modify ...func(*http.Request)) (status int, text string, header http.Header) {
	c.t.Helper()
	c.base.Delete(b)
	status, text, header = c.send(b, "/console/", url.Values{"credential": {credential}}, modify...)
	if to := header.Get("Location"); to != "" {
		c.base.Store(b, to)
	}
	return status, text, header
}

// TestConsole_absentWithoutBlock: the path is like any that does not exist.
func TestConsole_absentWithoutBlock(t *testing.T) {
	c := newConsoleSite(t, "")
	_, nowhere, _ := c.send(c.browser(), "/nowhere", nil)
	for _, path := range []string{"/console", "/console/", "/console/items"} {
		if status, text, _ := c.send(c.browser(), path, nil); status != http.StatusNotFound || text != nowhere {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _, _ := c.signIn(c.browser(), c.keys["ada"]); status != http.StatusNotFound {
		t.Errorf("sign-in: %d", status)
	}
}

func TestConsole_rights(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	tests := []struct {
		name, credential string
		status           int
		text             string
	}{
		{"all rights", c.keys["ada"], 303, "ada operates true as bob true"},
		{"operator", c.keys["cy"], 303, "cy operates true as bob false"},
		{"reader", c.keys["bob"], 303, "bob operates false as bob false"},
		{"no access", c.keys["eve"], 403, "sign in"},
		{"a condition that fails", c.keys["fails"], 403, "sign in"},
		{"unknown key", unknownKey(), 401, "sign in"},
		{"no key", "", 400, "sign in"},
		{"spaces", "  ", 400, "sign in"},
		{"two lines", "a\nb", 401, "sign in"},
		{"too long", strings.Repeat("a", 20<<10), 400, "sign in"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := c.browser()
			status, text, _ := c.signIn(b, tt.credential)
			if status != tt.status {
				t.Fatalf("sign-in: %d %s, want %d", status, text, tt.status)
			}
			if _, text, _ := c.send(b, "/console/items", nil); !strings.HasPrefix(text, tt.text) {
				t.Errorf("page: %q, want %q", text, tt.text)
			}
		})
	}
}

func TestConsole_cookie(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	_, _, header := c.signIn(c.browser(), c.keys["ada"])
	local := header.Get("Set-Cookie")
	base, ok := strings.CutPrefix(strings.TrimSuffix(header.Get("Location"), "/"), "/console/s-")
	if !ok || len(base) < 22 {
		t.Errorf("the session is at %q", header.Get("Location"))
	}
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/console/s-" + base + ";", "Max-Age=28800"} {
		if !strings.Contains(local, part) {
			t.Errorf("cookie %q without %s", local, part)
		}
	}
	if strings.Contains(local, "Secure") || strings.Contains(local, "Domain") {
		t.Errorf("cookie on loopback: %q", local)
	}
	_, _, header = c.signIn(c.browser(), c.keys["ada"])
	if other := header.Get("Location"); strings.Contains(other, base) {
		t.Errorf("two sessions at %q", other)
	}
}

// A browser sends the cookie of a session without TLS only below its secret path, and the server
// accepts it only there.
func TestConsole_secretPath(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	b := c.browser()
	_, _, header := c.signIn(b, c.keys["ada"])
	value, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	c.base.Delete(b)
	for _, path := range []string{"/healthz", "/console/", "/console/items", "/console/s-", header.Get("Location")[:len(header.Get("Location"))-2] + "/"} {
		at, err := url.Parse(c.url + path)
		if err != nil {
			t.Fatal(err)
		}
		if sent := b.Jar.Cookies(at); len(sent) != 0 {
			t.Errorf("%s: a browser sends %v", path, sent)
		}
		withCookie := func(r *http.Request) { r.Header.Set("Cookie", value) }
		if status, text, _ := c.send(c.browser(), path, nil, withCookie); path != "/healthz" && status != http.StatusUnauthorized || strings.Contains(text, "ada") {
			t.Errorf("%s with the cookie: %d %s", path, status, text)
		}
	}
	if status, text, _ := c.send(b, header.Get("Location")+"items", nil); status != http.StatusOK || !strings.HasPrefix(text, "ada") {
		t.Errorf("the page of the session: %d %s", status, text)
	}
}

func TestConsole_sessionEnds(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	signedIn := func(t *testing.T) *http.Client {
		t.Helper()
		b := c.browser()
		if status, text, _ := c.signIn(b, c.keys["ada"]); status != http.StatusSeeOther {
			t.Fatalf("sign-in: %d %s", status, text)
		}
		return b
	}
	mustEnd := func(t *testing.T, b *http.Client, status int) {
		t.Helper()
		if got, text, _ := c.send(b, "/console/items", nil); got != status || !strings.HasPrefix(text, "sign in") {
			t.Errorf("page: %d %q, want %d", got, text, status)
		}
	}
	t.Run("a cookie of no session", func(t *testing.T) {
		b := c.browser()
		status, _, _ := c.send(b, "/console/", nil, func(r *http.Request) { r.Header.Set("Cookie", "mcpd-console=x") })
		if status != http.StatusUnauthorized {
			t.Errorf("page: %d", status)
		}
	})
	t.Run("a sign-out", func(t *testing.T) {
		b := signedIn(t)
		c.send(b, "/console/sign-out", url.Values{})
		mustEnd(t, b, http.StatusUnauthorized)
	})
	t.Run("another credential in the request", func(t *testing.T) {
		b := signedIn(t)
		status, _, _ := c.send(b, "/console/items", nil, func(r *http.Request) { r.Header.Set("X-API-Key", c.keys["bob"]) })
		if status != http.StatusUnauthorized {
			t.Errorf("page: %d", status)
		}
		mustEnd(t, b, http.StatusUnauthorized)
	})
	t.Run("a sign-out beside a live page", func(t *testing.T) {
		b := signedIn(t)
		live := c.live(b)
		c.send(b, "/console/sign-out", url.Values{})
		mustEndLive(t, live)
	})
	t.Run("too many sessions of a principal", func(t *testing.T) {
		first := signedIn(t)
		for range 8 {
			signedIn(t)
		}
		mustEnd(t, first, http.StatusUnauthorized)
		if n := c.console.sessions(); n != 8 {
			t.Errorf("%d sessions", n)
		}
	})
	t.Run("a revoked key", func(t *testing.T) {
		b := signedIn(t)
		live := c.live(b)
		id, _, _ := strings.Cut(strings.TrimPrefix(c.keys["ada"], "mcpd_"), "_")
		if _, err := apikey.Revoke(c.keyFile, id, time.Now()); err != nil {
			t.Fatal(err)
		}
		mustEndLive(t, live)
		mustEnd(t, b, http.StatusUnauthorized)
	})
}

// live opens a live page. The channel gets its text when it ends.
func (c *consoleSite) live(b *http.Client) <-chan string {
	c.t.Helper()
	live := make(chan string, 1)
	answer, err := b.Get(c.at(b, "/console/live"))
	if err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		live <- string(text)
	}()
	return live
}

// mustEndLive waits for the end of a live page of ada.
func mustEndLive(t *testing.T, live <-chan string) {
	t.Helper()
	select {
	case text := <-live:
		if !strings.HasPrefix(text, "ada") {
			t.Errorf("live page: %q", text)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a live page does not end with the access of its caller")
	}
}

func TestConsole_otherSites(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	for name, modify := range map[string]func(*http.Request){
		"foreign origin":    func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"no origin":         func(r *http.Request) { r.Header.Del("Origin") },
		"null origin":       func(r *http.Request) { r.Header.Set("Origin", "null") },
		"two origins":       func(r *http.Request) { r.Header.Add("Origin", r.Header.Get("Origin")) },
		"other port":        func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"cross-site":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":         func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"unknown host":      func(r *http.Request) { r.Host = "evil.example" },
		"listed nowhere":    func(r *http.Request) { r.Host, r.Header["Origin"] = "evil.example", []string{"http://evil.example"} },
		"a compressed form": func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") },
	} {
		b := c.browser()
		status, _, header := c.signIn(b, c.keys["ada"], modify)
		if want := http.StatusForbidden; status != want && !(name == "a compressed form" && status == http.StatusUnsupportedMediaType) || header.Get("Set-Cookie") != "" {
			t.Errorf("sign-in with %s: %d %v", name, status, header)
		}
	}
}

// TestConsole_credentialInHeader begins a session, so that forms have the token of one.
func TestConsole_credentialInHeader(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	b := c.browser()
	status, text, header := c.send(b, "/console/items", nil, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.keys["bob"]) })
	if status != http.StatusOK || !strings.HasPrefix(text, "bob") || header.Get("Set-Cookie") == "" {
		t.Fatalf("%d %s %v", status, text, header)
	}
	if status, _, _ := c.send(b, "/console/items", nil); status != http.StatusUnauthorized {
		t.Errorf("a page without the header: %d", status)
	}
}

// A program that sends its credential with each request, and no cookie, ends no session of a browser.
func TestConsole_requestsWithoutCookie(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	b := c.browser()
	c.signIn(b, c.keys["bob"])
	if status, text, _ := c.send(b, "/console/items", nil); status != http.StatusOK {
		t.Fatalf("the browser: %d %s", status, text)
	}
	for range 20 {
		status, text, _ := c.send(c.browser(), "/console/items", nil, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.keys["bob"]) })
		if status != http.StatusOK {
			t.Fatalf("the program: %d %s", status, text)
		}
	}
	if status, text, _ := c.send(b, "/console/items", nil); status != http.StatusOK || !strings.HasPrefix(text, "bob") {
		t.Errorf("the browser, after the program: %d %s", status, text)
	}
	if n := c.console.sessions(); n != 8 {
		t.Errorf("%d sessions", n)
	}
}

// TestConsole_reload: the rights are those of the block as it is now.
func TestConsole_reload(t *testing.T) {
	c := newConsoleSite(t, consoleBlock)
	b := c.browser()
	c.signIn(b, c.keys["ada"])
	text := string(c.config["mcpd.hcl"].Data)
	reload := func(config string) {
		t.Helper()
		c.config["mcpd.hcl"].Data = []byte(config)
		if _, err := c.engine.Reload(t.Context(), engine.Change{All: true}); err != nil {
			t.Fatal(err)
		}
	}
	reload(strings.Replace(text, "principal.id == 'ada' ||", "", 1))
	if _, page, _ := c.send(b, "/console/items", nil); page != "ada operates false as bob false" {
		t.Errorf("without operate: %q", page)
	}
	watching := c.browser()
	c.signIn(watching, c.keys["ada"])
	live := c.live(watching)
	reload(strings.Replace(text, "!= 'eve'", "== 'bob'", 1))
	mustEndLive(t, live)
	if status, _, _ := c.send(b, "/console/items", nil); status != http.StatusForbidden {
		t.Errorf("without allow: %d", status)
	}
	c.signIn(b, c.keys["bob"])
	reload(strings.Split(text, "console {")[0])
	if status, _, _ := c.send(b, "/console/items", nil); status != http.StatusNotFound || c.console.sessions() != 0 {
		t.Errorf("without the block: %d, %d sessions", status, c.console.sessions())
	}
}
