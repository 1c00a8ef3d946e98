package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestConsole_base: all addresses in pages start with the base, and no text of a user changes.
func TestConsole_base(t *testing.T) {
	signedOut := false
	b := browse(t, newFake(), func(o *Options) {
		o.Base, o.Hosts, o.SignOut = "/console", nil, func() { signedOut = true }
	})
	b.csrf = b.console.session.csrf
	const hostile = `/etc" href="/x`
	pages := []string{
		"/", "/items?q=" + url.QueryEscape(hostile), "/item?kind=tool&address=greet", "/calls?name=" + url.QueryEscape(hostile), "/policies?q=" + url.QueryEscape(hostile),
		"/upstreams", "/access", "/nowhere-at-all",
	}
	for _, path := range pages {
		status, page := b.get("/console" + path)
		if path == "/nowhere-at-all" {
			if status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
			continue
		}
		if status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		checkBase(t, path, page, hostile)
	}
	if status, _ := b.get("/items"); status != http.StatusNotFound {
		t.Errorf("a path without the base: %d", status)
	}
	_, page, at := b.post("/console/item/try?kind=tool&address=greet", url.Values{"arg/name": {"Ada"}, "as": {"self"}})
	if !strings.HasPrefix(at, "/console/runs/") {
		t.Errorf("the call leads to %s", at)
	}
	checkBase(t, "a call", page, hostile)
	run := strings.TrimSuffix(at, "#try")
	checkBase(t, "an ended call", b.ended(run), hostile)
	if signedOut {
		t.Fatal("signed out")
	}
	b.csrf = "x"
	if status, _, _ := b.post("/console/sign-out", nil); status != http.StatusForbidden || signedOut {
		t.Errorf("sign-out with a wrong token: %d", status)
	}
	b.csrf = b.console.session.csrf
	if b.post("/console/sign-out", nil); !signedOut {
		t.Error("not signed out")
	}
}

// checkBase checks the addresses of a page, and that a text is only the value of a field.
func checkBase(t *testing.T, where, page, hostile string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "action", "src", "hx-get", "hx-post", "sse-connect":
				if !strings.HasPrefix(a.Val, "/console/") && !strings.HasPrefix(a.Val, "#") {
					t.Errorf("%s: %s of %s leads to %q", where, a.Key, n.Data, a.Val)
				}
			case "value":
				if strings.Contains(a.Val, "etc") && a.Val != hostile {
					t.Errorf("%s: the text %q has become %q", where, hostile, a.Val)
				}
			}
		}
	}
}

func TestSignIn(t *testing.T) {
	get := func(path, problem string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		SignIn(w, httptest.NewRequest(http.MethodGet, path, nil), "/console", http.StatusUnauthorized, problem)
		return w
	}
	const problem = `the credential "<b>" was not accepted`
	w := get("/console/items", problem)
	if w.Code != http.StatusUnauthorized || w.Header().Get("Content-Security-Policy") != contentSecurityPolicy || strings.Contains(w.Body.String(), "<b>") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	checkBase(t, "the sign-in", w.Body.String(), problem)
	doc, err := html.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	styles := 0
	for n := range doc.Descendants() {
		if n.Data != "link" && n.Data != "script" {
			continue
		}
		for _, a := range n.Attr {
			if a.Key == "href" || a.Key == "src" {
				if styles++; get(a.Val, "").Code != http.StatusOK {
					t.Errorf("%s: %d", a.Val, get(a.Val, "").Code)
				}
			}
		}
	}
	if styles < 3 {
		t.Errorf("the page loads %d files", styles)
	}
	for _, path := range []string{"/console/assets/", "/console/assets/x/console.css", "/console/assets/../session.go"} {
		if w := get(path, ""); w.Code == http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
