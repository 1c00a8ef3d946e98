package console

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// send sends a request with headers that browsers do not let pages set. It follows no redirect.
func (b *browser) send(method, path, body string, header map[string]string) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	if host := header["Host"]; host != "" {
		r.Host = host
	}
	client := *b.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if header["Cookie"] != "" || header["No-Cookie"] != "" {
		client.Jar = nil
	}
	response, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response
}

func TestConsole_requestsRefused(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Reload] = map[string]any{"ok": true}
	b := browse(t, backend).signIn()
	good := func(change map[string]string) map[string]string {
		h := map[string]string{"Origin": b.origin, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
		for name, value := range change {
			h[name] = value
		}
		return h
	}
	form := url.Values{"csrf": {b.csrf}}.Encode()
	rows := []struct {
		name, method, path, body string
		header                   map[string]string
		want                     int
	}{
		{"accepted", "POST", "/reload", form, good(nil), http.StatusSeeOther},
		{"host of an attacker", "GET", "/", "", map[string]string{"Host": "attacker.example"}, http.StatusMisdirectedRequest},
		{"host with another port", "GET", "/", "", map[string]string{"Host": "127.0.0.1:1"}, http.StatusMisdirectedRequest},
		{"assets for a host of an attacker", "GET", "/assets/x/y", "", map[string]string{"Host": "attacker.example"}, http.StatusMisdirectedRequest},
		{"no cookie", "GET", "/", "", map[string]string{"No-Cookie": "1"}, http.StatusUnauthorized},
		{"no cookie for events", "GET", "/overview/events", "", map[string]string{"No-Cookie": "1"}, http.StatusUnauthorized},
		{"wrong cookie", "GET", "/", "", map[string]string{"Cookie": cookieName + "=x"}, http.StatusUnauthorized},
		{"origin of an attacker", "POST", "/reload", form, good(map[string]string{"Origin": "http://attacker.example"}), http.StatusForbidden},
		{"opaque origin", "POST", "/reload", form, good(map[string]string{"Origin": "null"}), http.StatusForbidden},
		{"no origin", "POST", "/reload", form, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, http.StatusForbidden},
		{"other port of the host", "POST", "/reload", form, good(map[string]string{"Origin": "http://127.0.0.1:1"}), http.StatusForbidden},
		{"cross-site fetch", "POST", "/reload", form, good(map[string]string{"Sec-Fetch-Site": "cross-site"}), http.StatusForbidden},
		{"same-site fetch", "POST", "/reload", form, good(map[string]string{"Sec-Fetch-Site": "same-site"}), http.StatusForbidden},
		{"no CSRF token", "POST", "/reload", "", good(nil), http.StatusForbidden},
		{"wrong CSRF token", "POST", "/reload", "csrf=x", good(nil), http.StatusForbidden},
		{"CSRF token in the address", "POST", "/reload?" + form, "", good(nil), http.StatusForbidden},
		{"JSON body", "POST", "/reload", `{"csrf":"` + b.csrf + `"}`, good(map[string]string{"Content-Type": "application/json"}), http.StatusUnsupportedMediaType},
		{"text body", "POST", "/reload", form, good(map[string]string{"Content-Type": "text/plain"}), http.StatusUnsupportedMediaType},
		{"long body", "POST", "/reload", form + "&x=" + strings.Repeat("x", maxForm), good(nil), http.StatusRequestEntityTooLarge},
		{"GET of an action", "GET", "/reload", "", nil, http.StatusMethodNotAllowed},
		{"HEAD of an action", "HEAD", "/reload", "", nil, http.StatusMethodNotAllowed},
		{"POST of a page", "POST", "/items", form, good(nil), http.StatusMethodNotAllowed},
		{"PUT", "PUT", "/reload", form, good(nil), http.StatusMethodNotAllowed},
		{"overridden method", "GET", "/reload?_method=POST", "", map[string]string{"X-HTTP-Method-Override": "POST"}, http.StatusMethodNotAllowed},
		{"unknown action", "POST", "/confirm/reload", form, good(nil), http.StatusNotFound},
	}
	for _, row := range rows {
		if got := b.send(row.method, row.path, row.body, row.header); got.StatusCode != row.want {
			t.Errorf("%s: status %d, want %d", row.name, got.StatusCode, row.want)
		}
	}
	for _, path := range []string{"/item/try", "/item/complete", "/runs/x/answer", "/runs/x/cancel", "/policies/explain", "/policies/replay", "/confirm/accept", "/confirm/revoke_key"} {
		if got := b.send("POST", path, "csrf=x", good(nil)); got.StatusCode != http.StatusForbidden {
			t.Errorf("wrong CSRF token for %s: status %d", path, got.StatusCode)
		}
	}
	if n := len(backend.requests(control.Reload)); n != 1 {
		t.Errorf("%d reloads, want that of the accepted request", n)
	}
}

func TestConsole_token(t *testing.T) {
	t.Parallel()
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake())
		if status, _ := b.get("/?token=other"); status != http.StatusUnauthorized {
			t.Errorf("status %d", status)
		}
		b.signIn() // a wrong token does not use up the right one
	})
	t.Run("reused", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake()).signIn()
		if got := b.send("GET", b.token, "", map[string]string{"No-Cookie": "1"}); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("status %d", got.StatusCode)
		}
		if status, _ := b.get("/"); status != http.StatusOK {
			t.Errorf("the session has ended: status %d", status)
		}
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		b := browse(t, newFake(), func(o *Options) { o.Now = func() time.Time { return now } })
		now = now.Add(tokenLifetime)
		if status, _ := b.get(b.token); status != http.StatusUnauthorized {
			t.Errorf("status %d", status)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake())
		path := strings.TrimPrefix(b.console.NewToken(), b.console.base)
		if status, _ := b.get(b.token); status != http.StatusUnauthorized {
			t.Errorf("the old token: status %d", status)
		}
		if status, _ := b.get(path); status != http.StatusOK {
			t.Errorf("the new token: status %d", status)
		}
	})
	t.Run("used by another browser", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake()).signIn()
		path := strings.TrimPrefix(b.console.NewToken(), b.console.base)
		if status, _ := b.get("/"); status != http.StatusOK {
			t.Errorf("before the token is used: status %d", status)
		}
		if got := b.send("GET", path, "", map[string]string{"No-Cookie": "1"}); got.StatusCode != http.StatusSeeOther {
			t.Errorf("the new token: status %d", got.StatusCode)
		}
		if status, _ := b.get("/"); status != http.StatusUnauthorized {
			t.Errorf("the old session: status %d", status)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake())
		b.console.token.text = ""
		for _, path := range []string{"/", "/?token=", b.token} {
			if status, _ := b.get(path); status != http.StatusUnauthorized {
				t.Errorf("%s: status %d", path, status)
			}
		}
	})
	t.Run("not with HEAD", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake())
		b.send("HEAD", b.token, "", nil)
		b.signIn()
	})
	t.Run("redirect", func(t *testing.T) {
		t.Parallel()
		b := browse(t, newFake())
		got := b.send("GET", b.token, "", nil)
		if got.StatusCode != http.StatusSeeOther || strings.Contains(got.Header.Get("Location"), "token") {
			t.Errorf("status %d, location %q", got.StatusCode, got.Header.Get("Location"))
		}
		cookie := got.Header.Get("Set-Cookie")
		for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=" + b.console.base + ";"} {
			if !strings.Contains(cookie, attribute) {
				t.Errorf("cookie %q lacks %s", cookie, attribute)
			}
		}
		if strings.Contains(cookie, "Domain") {
			t.Errorf("cookie %q is not bound to its host", cookie)
		}
	})
}

// Only a request below the secret path reaches the console, and a browser sends the cookie only there.
func TestConsole_secretPath(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	if secret := strings.TrimPrefix(b.console.base, "/"); len(secret) < 22 || browse(t, newFake()).console.base == b.console.base {
		t.Errorf("secret %q", secret)
	}
	at, _ := url.Parse(b.origin)
	var other = *at
	other.Host = at.Hostname() + ":1"
	for _, path := range []string{"/", "/items", b.console.base[:len(b.console.base)-1] + "/", b.console.base + "x/"} {
		at.Path, other.Path = path, path
		if got := append(b.client.Jar.Cookies(at), b.client.Jar.Cookies(&other)...); len(got) != 0 {
			t.Errorf("%s: a browser sends %v", path, got)
		}
	}
	b.base = b.origin
	session := map[string]string{"Cookie": cookieName + "=" + b.console.session.id}
	for _, path := range []string{
		"/", "/items", b.token, "/start", "/overview/events", b.console.assets["app.js"].path, "//", "/" + b.console.base + "/", b.console.base[:len(b.console.base)-1] + "/",
		b.console.base + "x/", "/x" + b.console.base + "/", "/x/.." + b.console.base + "/", strings.ToLower(b.console.base) + "/",
	} {
		got := b.send("GET", path, "", session)
		if got.StatusCode != http.StatusNotFound || strings.Contains(got.Header.Get("Location"), b.console.base) {
			t.Errorf("%s: status %d, headers %v", path, got.StatusCode, got.Header)
		}
	}
	for path, want := range map[string]int{"/items": http.StatusOK, "/nothing": http.StatusNotFound} {
		if got := b.send("GET", b.console.base+path, "", session); got.StatusCode != want {
			t.Errorf("%s below the secret path: status %d", path, got.StatusCode)
		}
	}
	if policy := b.send("GET", b.console.base+"/", "", session).Header.Get("Referrer-Policy"); policy != "same-origin" {
		t.Errorf("Referrer-Policy %q", policy)
	}
}

func TestConsole_sessionExpires(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := browse(t, newFake(), func(o *Options) { o.Now = func() time.Time { return now } }).signIn()
	now = now.Add(sessionLifetime)
	if status, _ := b.get("/items"); status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
}

func TestConsole_headers(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	paths := []string{"/", "/items", "/item?kind=tool&address=greet", "/calls", "/policies", "/upstreams", "/access", "/nothing", "/start"}
	for _, path := range paths {
		h := b.send("GET", path, "", nil).Header
		csp := h.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", path, csp)
		}
		if h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
}

func TestConsole_assets(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake())
	total := 0
	for name, a := range b.console.assets {
		total += len(a.packed)
		got := b.send("GET", a.path, "", map[string]string{"Accept-Encoding": "gzip"})
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") || got.Header.Get("Content-Type") == "" {
			t.Errorf("%s: status %d, headers %v", name, got.StatusCode, got.Header)
		}
		if got := b.send("GET", a.path, "", map[string]string{"If-None-Match": `"` + a.hash + `"`}); got.StatusCode != http.StatusNotModified {
			t.Errorf("%s: status %d for the known version", name, got.StatusCode)
		}
		if got := b.send("GET", "/assets/0000/"+name, "", nil); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d for another version", name, got.StatusCode)
		}
	}
	if total > 250<<10 {
		t.Errorf("the assets have %d bytes compressed, more than 250 KiB", total)
	}
}

// Connections without a session make room for those of the operator, whose live pages go on.
func TestServe_silentConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	backend := newFake()
	calls := make(chan *pipe, 1)
	backend.streams[control.Calls] = func(p *pipe) { calls <- p }
	c, err := New(backend, Options{Hosts: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx, l) }()
	jar, _ := cookiejar.New(nil)
	b := &browser{t: t, console: c, origin: "http://" + l.Addr().String(), client: &http.Client{Jar: jar, Timeout: time.Minute}}
	b.base, b.token = b.origin+c.base, strings.TrimPrefix(c.NewToken(), c.base)
	defer func() {
		b.client.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		c.Close()
	}()
	b.signIn()
	live := b.live("/calls/events")
	live.until("event: feed")
	var silent []net.Conn
	for range 2 * maxConns {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	b.client.CloseIdleConnections() // a new connection is accepted after the silent ones
	if status, _ := b.get("/items"); status != http.StatusOK {
		t.Errorf("the operator: status %d", status)
	}
	(<-calls).lines <- control.Call{CallID: "one", Name: "still-live", Outcome: "ok"}
	live.until("still-live")
	// The server has closed it before it answered the operator, and long before its timeout.
	_ = silent[0].SetReadDeadline(time.Now().Add(headerTimeoutOfTest))
	if _, err := silent[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the first silent connection: %v", err)
	}
}

// headerTimeoutOfTest is shorter than the timeout of a connection without a request.
const headerTimeoutOfTest = 2 * time.Second
