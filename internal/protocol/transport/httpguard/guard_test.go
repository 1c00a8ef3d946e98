package httpguard

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func newGate(t testing.TB, o Options) *Guard {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// on returns the context of a request that arrived at a local address.
func on(ctx context.Context, address string) context.Context {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(err) // the tests contain the addresses
	}
	return context.WithValue(ctx, http.LocalAddrContextKey, net.Addr(tcp))
}

// passed is the status of requests that the guard accepts.
const passed = http.StatusTeapot

func status(g *Guard, r *http.Request) int {
	w := httptest.NewRecorder()
	g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(passed) })).ServeHTTP(w, r)
	return w.Code
}

// Each row states the expected result of its one property. The results of
// combinations are computed from the rows, not by the guard.
var (
	hostRows = []struct {
		host string
		ours bool
	}{
		{"127.0.0.1:8080", true},
		{"localhost:8080", true},
		{"LocalHost:8080", true},
		{"[::1]:8080", true},
		{"mcp.internal", true},
		{"MCP.internal:8080", true},
		{"alias.internal:9000", true},
		{"plain.internal", true}, // allowed as plain.internal:443
		{"", false},
		{"127.0.0.1", false}, // port 80 is not the listener's
		{"localhost", false},
		{"localhost:80", false},
		{"localhost:8081", false},
		{"localhost:08080", false},
		{"localhost:", false},
		{"localhost:8080:8080", false},
		{"localhost.:8080", false},
		{"localhost.evil.com:8080", false},
		{"evil.com:8080", false},
		{"evil.com", false},
		{"127.0.0.1.nip.io:8080", false},
		{"127.0.0.2:8080", false},
		{"0.0.0.0:8080", false},
		{"127.1:8080", false},
		{"0x7f000001:8080", false},
		{"2130706433:8080", false},
		{"::1:8080", false},
		{"[::1%lo]:8080", false},
		{"[0:0:0:0:0:0:0:1]:8080", false},
		{"[::ffff:127.0.0.1]:8080", false},
		{"[127.0.0.1]:8080", false},
		{"[localhost]:8080", false},
		{"user@localhost:8080", false},
		{"localhost:8080@evil.com", false},
		{"localhost:8080, evil.com", false},
		{"localhost:8080\\evil.com", false},
		{"localhost/evil:8080", false},
		{" localhost:8080", false},
		{"mcp.internal.:8080", false},
		{"mcp.internal:9000", false},
		{"a.mcp.internal:8080", false},
		{"alias.internal", false},
		{"alias.internal:8080", false},
		{"löcalhost:8080", false},
	}
	originRows = []struct {
		origins []string
		allowed bool
		listed  bool
	}{
		{nil, true, false},
		{[]string{"http://localhost:8080"}, true, false},
		{[]string{"http://127.0.0.1:8080"}, true, false},
		{[]string{"http://[::1]:8080"}, true, false},
		{[]string{"https://app.example.com"}, true, true},
		{[]string{"https://dev.example.com:8443"}, true, true},
		{[]string{"null"}, false, false},
		{[]string{""}, false, false},
		{[]string{"*"}, false, false},
		{[]string{"http://localhost"}, false, false},
		{[]string{"http://localhost:3000"}, false, false},
		{[]string{"https://localhost:8080"}, false, false},
		{[]string{"http://LOCALHOST:8080"}, false, false},
		{[]string{"http://localhost:8080/"}, false, false},
		{[]string{"http://user@localhost:8080"}, false, false},
		{[]string{"http://localhost:8080@evil.com"}, false, false},
		{[]string{"http://localhost.evil.com:8080"}, false, false},
		{[]string{"http://evil.com"}, false, false},
		{[]string{"http://mcp.internal:8080"}, false, false},
		{[]string{"ws://localhost:8080"}, false, false},
		{[]string{"http://app.example.com"}, false, false},
		{[]string{"https://app.example.com:444"}, false, false},
		{[]string{"https://app.example.com.evil.com"}, false, false},
		{[]string{"https://app.example.com", "https://app.example.com"}, false, false},
		{[]string{"http://localhost:8080", "http://evil.com"}, false, false},
		{[]string{"http://localhost:8080, http://evil.com"}, false, false},
		{[]string{"http://localhost:8080 http://evil.com"}, false, false},
	}
	siteRows = []struct {
		site  []string
		cross bool
	}{
		{nil, false},
		{[]string{"none"}, false},
		{[]string{"same-origin"}, false},
		{[]string{"cross-site"}, true},
		{[]string{"Cross-Site"}, true},
		{[]string{"same-origin", "cross-site"}, true},
		{[]string{"same-origin, cross-site"}, true},
	}
	contentRows = []struct {
		method   string
		types    []string
		encoding string
		length   int64
		want     int
	}{
		{"GET", nil, "", 0, passed},
		{"HEAD", nil, "", 0, passed},
		{"DELETE", nil, "", 0, passed},
		{"OPTIONS", nil, "", 0, passed},
		{"BREW", nil, "", 0, passed},
		{"GET", nil, "gzip", 0, 415},
		{"GET", nil, "", 1001, 413},
		{"POST", []string{"application/json"}, "", 1000, passed},
		{"POST", []string{"Application/JSON ; Charset=\"UTF-8\""}, "", -1, passed},
		{"POST", []string{"application/json"}, "identity", 1, passed},
		{"POST", []string{"application/json"}, "gzip", 1, 415},
		{"POST", []string{"application/json"}, "", 1001, 413},
		{"POST", nil, "", 1, 415},
		{"POST", []string{""}, "", 1, 415},
		{"POST", []string{"text/plain"}, "", 1, 415},
		{"POST", []string{"text/plain; application/json"}, "", 1, 415},
		{"POST", []string{"application/x-www-form-urlencoded"}, "", 1, 415},
		{"POST", []string{"multipart/form-data; boundary=x"}, "", 1, 415},
		{"POST", []string{"application/jsonp"}, "", 1, 415},
		{"POST", []string{"application/json; charset=utf-16"}, "", 1, 415},
		{"POST", []string{"application/json, text/plain"}, "", 1, 415},
		{"POST", []string{"application/json", "text/plain"}, "", 1, 415},
		{"POST", []string{"application/json; ="}, "", 1, 415},
	}
)

// All combinations of all rows: about two hundred thousand.
func TestGuard_combinations(t *testing.T) {
	g := newGate(t, Options{
		Hosts:   []string{"mcp.internal", "alias.internal:9000", "plain.internal:443"},
		Origins: []string{"https://app.example.com:443", "https://DEV.example.com:8443"},
		MaxBody: 1000,
	})
	h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(passed) }))
	ctx := on(t.Context(), "127.0.0.1:8080")
	cells, problem := 0, 0
	for _, host := range hostRows {
		for _, origin := range originRows {
			for _, site := range siteRows {
				for _, content := range contentRows {
					want := content.want
					if !host.ours || !origin.allowed || site.cross && !origin.listed {
						want = 403
					}
					r := (&http.Request{
						Method: content.method, URL: &url.URL{Path: "/"}, Host: host.host, ContentLength: content.length, Body: http.NoBody,
						Header: http.Header{"Origin": origin.origins, "Sec-Fetch-Site": site.site, "Content-Type": content.types},
					}).WithContext(ctx)
					if content.encoding != "" {
						r.Header.Set("Content-Encoding", content.encoding)
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if cells++; w.Code != want && problem < 20 {
						problem++
						t.Errorf("host %q, origin %q, site %q, %+v: status %d, want %d", host.host, origin.origins, site.site, content, w.Code, want)
					}
				}
			}
		}
	}
	if cells < 600 {
		t.Errorf("only %d combinations", cells)
	}
	t.Logf("%d combinations", cells)
}

func TestGuard_port(t *testing.T) {
	rows := []struct {
		address string // "" for a Unix socket
		secure  bool
		host    string
		want    int
	}{
		{"127.0.0.1:80", false, "localhost", passed},
		{"127.0.0.1:80", false, "localhost:80", passed},
		{"127.0.0.1:80", true, "localhost", 403},
		{"127.0.0.1:443", true, "localhost", passed},
		{"127.0.0.1:443", false, "localhost", 403},
		{"127.0.0.5:8080", false, "127.0.0.5:8080", passed},
		{"127.0.0.5:8080", false, "127.0.0.6:8080", 403},
		{"[::1]:8080", false, "[::1]:8080", passed},
		{"192.168.1.5:8080", false, "192.168.1.5:8080", 403},
		{"192.168.1.5:8080", false, "localhost:8080", passed},
		{"", false, "localhost", passed},
		{"", false, "localhost:1234", passed},
		{"", false, "evil.com", 403},
		{"", false, "named", passed},
	}
	g := newGate(t, Options{Hosts: []string{"named"}})
	for _, r := range rows {
		req := httptest.NewRequest("GET", "/", nil)
		req.Host = r.host
		if r.address != "" {
			req = req.WithContext(on(t.Context(), r.address))
		}
		if r.secure {
			req.TLS = &tls.ConnectionState{}
		}
		if got := status(g, req); got != r.want {
			t.Errorf("%+v: status %d", r, got)
		}
		req.Host = "named"
		req.Header.Set("Origin", map[bool]string{false: "http://", true: "https://"}[r.secure]+r.host)
		if got := status(g, req); got != r.want && r.host != "named" {
			t.Errorf("%+v as origin: status %d", r, got)
		}
	}
}

func TestIsSameOrigin(t *testing.T) {
	const host = "127.0.0.1:8080"
	for name, row := range map[string]struct {
		origin, site []string
		tls, want    bool
	}{
		"plain":             {origin: []string{"http://" + host}, want: true},
		"fetched":           {origin: []string{"http://" + host}, site: []string{"same-origin"}, want: true},
		"behind a proxy":    {origin: []string{"https://" + host}, want: true},
		"TLS":               {origin: []string{"https://" + host}, tls: true, want: true},
		"plain page, TLS":   {origin: []string{"http://" + host}, tls: true},
		"no origin":         {},
		"empty origin":      {origin: []string{""}},
		"opaque origin":     {origin: []string{"null"}},
		"host only":         {origin: []string{host}},
		"two origins":       {origin: []string{"http://" + host, "http://" + host}},
		"another port":      {origin: []string{"http://127.0.0.1:1"}},
		"another scheme":    {origin: []string{"chrome-extension://" + host}},
		"user":              {origin: []string{"http://a@" + host}},
		"path":              {origin: []string{"http://" + host + "/"}},
		"same site":         {origin: []string{"http://" + host}, site: []string{"same-site"}},
		"no site":           {origin: []string{"http://" + host}, site: []string{"none"}},
		"two fetch headers": {origin: []string{"http://" + host}, site: []string{"same-origin", "same-origin"}},
	} {
		r := &http.Request{Host: host, Header: http.Header{}}
		if row.origin != nil {
			r.Header["Origin"] = row.origin
		}
		if row.site != nil {
			r.Header["Sec-Fetch-Site"] = row.site
		}
		if row.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := IsSameOrigin(r); got != row.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestRejection_errorJSON(t *testing.T) {
	rows := map[string]struct {
		request func(r *http.Request)
		status  int
		code    string
		says    string
	}{
		"host":     {func(r *http.Request) { r.Host = "evil.com" }, 403, "POLICY_DENIED", "Host"},
		"origin":   {func(r *http.Request) { r.Header.Set("Origin", "https://evil.com") }, 403, "POLICY_DENIED", "Origin"},
		"site":     {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "POLICY_DENIED", "web sites"},
		"type":     {func(r *http.Request) { r.Header.Del("Content-Type") }, 415, "INVALID_INPUT", "application/json"},
		"encoding": {func(r *http.Request) { r.Header.Set("Content-Encoding", "br") }, 415, "INVALID_INPUT", "Content-Encoding"},
		"size":     {func(r *http.Request) { r.ContentLength = 1 << 40 }, 413, "INVALID_INPUT", "4194304 bytes"},
	}
	g := newGate(t, Options{})
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/any/path", strings.NewReader("{}"))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			row.request(r)
			w := httptest.NewRecorder()
			g.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
			var got map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != row.status || len(got) != 2 || got["error"] != row.code || !strings.Contains(got["message"], row.says) {
				t.Errorf("status %d, body %s", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "evil") {
				t.Errorf("the response contains the request: %s", w.Body)
			}
			if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
				t.Errorf("headers %v", w.Header())
			}
			for h := range w.Header() {
				if strings.HasPrefix(h, "Access-Control-") {
					t.Errorf("the response has the CORS header %s", h)
				}
			}
		})
	}
}

func TestNew_invalidOptions(t *testing.T) {
	bad := Options{
		Hosts:   []string{"", "*", "*.internal", "a b", "http://a", "a:", "a:0", "a:99999", "[::1", "a/b", "a."},
		Origins: []string{"", "*", "null", "app.example.com", "https://", "https://a/", "https://a?", "https://a#", "https://u@a", "https://a b", "https://*.a"},
	}
	_, err := New(bad)
	if err == nil {
		t.Fatal("invalid options were accepted")
	}
	if n := len(strings.Split(err.Error(), "\n")); n != len(bad.Hosts)+len(bad.Origins) {
		t.Errorf("%d errors, want %d:\n%v", n, len(bad.Hosts)+len(bad.Origins), err)
	}
}

func TestGuard_allocations(t *testing.T) {
	g := newGate(t, Options{Hosts: []string{"mcp.internal"}, Origins: []string{"https://app.example.com"}})
	r := httptest.NewRequest("POST", "/mcp/execute", nil).WithContext(on(t.Context(), "127.0.0.1:8080"))
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://localhost:8080")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if n := testing.AllocsPerRun(100, func() {
		if g.check(r) != nil {
			t.Error("the request was rejected")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkGuard(b *testing.B) {
	g := newGate(b, Options{})
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("POST", "/mcp/execute", nil).WithContext(on(b.Context(), "127.0.0.1:8080"))
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

func FuzzHost(f *testing.F) {
	for _, h := range hostRows {
		f.Add(h.host)
	}
	g := newGate(f, Options{})
	f.Fuzz(func(t *testing.T, host string) {
		here := localEndpoint{port: 8080}
		if !g.hosts.matches(host, here) {
			return
		}
		switch strings.ToLower(host) {
		case "localhost:8080", "127.0.0.1:8080", "[::1]:8080":
		default:
			t.Errorf("%q was accepted", host)
		}
	})
}

// TestGuard_callback: the page checks the host itself, and no other request is
// accepted.
func TestGuard_callback(t *testing.T) {
	g := newGate(t, Options{IsCallback: func(r *http.Request) bool { return r.URL.Path == "/oauth/crm" }})
	for target, want := range map[string]int{"/oauth/crm": passed, "/oauth/other": http.StatusForbidden, "/mcp": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(on(t.Context(), "127.0.0.1:8080"), http.MethodGet, target, nil)
		r.Host = "mcp.example.com"
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := status(g, r); got != want {
			t.Errorf("%s: status %d", target, got)
		}
		r.Header.Set("Content-Encoding", "gzip")
		if got := status(g, r); got == passed {
			t.Errorf("%s accepts any body", target)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
