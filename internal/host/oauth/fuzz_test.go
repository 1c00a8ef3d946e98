package oauth

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// saying is a transport with one answer for all requests.
type saying struct {
	status       int
	kind, answer string
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(strings.NewReader(s.answer)), Request: r}, nil
}

// FuzzTokenResponse checks that a token is valid in a header, has a lifetime and is in the
// response, and that errors repeat nothing.
func FuzzTokenResponse(f *testing.F) {
	f.Add(200, "application/json", `{"access_token":"hunter2-hunter2","token_type":"bearer","expires_in":60}`)
	f.Add(200, "application/json; charset=utf-8", `{"access_token":"\u0000","expires_in":"-1"}`)
	f.Add(400, "application/json", `{"error":"invalid_client"}`)
	f.Add(302, "text/html", `<html>`)
	f.Add(200, "application/json", strings.Repeat("[", 1000))
	f.Fuzz(func(t *testing.T, status int, kind, answer string) {
		got, err := exchange(t.Context(), theClient, clientSecret, saying{status, kind, answer})
		switch {
		case err != nil:
			for _, known := range []error{errNotJSON, errMalformed, errNotBearer, errExpired} {
				if err == known {
					return
				}
			}
			if refused, ok := err.(*serverError); !ok || refused.status != status {
				t.Fatalf("%d %q %q: %v", status, kind, answer, err)
			}
		case status != 200 || got.life <= 0 || got.value == "":
			t.Fatalf("token %[4]q of %[1]d %[2]q %[3]q, user %[5]s", status, kind, answer, got.value, got.life)
		case strings.ContainsFunc(got.value, func(r rune) bool { return r < ' ' || r > '~' }):
			t.Fatalf("the token %q cannot stand in a header", got.value)
		}
	})
}

// FuzzCallback checks that no page repeats anything of a request, and that no request stores
// anything.
func FuzzCallback(f *testing.F) {
	f.Add("GET", "mcp.example.com", "/oauth/crm", "state=hunter2&code=hunter2")
	f.Add("GET", "MCP.example.com:443", "/oauth/../oauth/crm", "state=%zz;code")
	f.Add("POST", "evil.example.com", "/oauth/crm/", "error=hunter2")
	f.Add("GET", "", "/oauth/%2e%2e/mcp", strings.Repeat("state=a&", 1000))
	f.Fuzz(func(t *testing.T, method, host, path, query string) {
		h := newHall(t)
		ada := h.page("ada").Query().Get("state")
		r := &http.Request{Method: method, Host: host, URL: &url.URL{Path: path, RawQuery: query}}
		page := h.returns(r)
		if page != nil && (method != "GET" || !strings.EqualFold((&url.URL{Host: host}).Hostname(), "mcp.example.com") || path != "/oauth/crm") {
			t.Fatalf("%q %q %q is a page", method, host, path)
		}
		if page != nil {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, r.WithContext(t.Context()))
			if w.Body.String() != pageUnknown && !strings.Contains(query, ada) {
				t.Fatalf("%q shows %q", query, w.Body.String())
			}
		}
		h.wantKept(0)
	})
}
