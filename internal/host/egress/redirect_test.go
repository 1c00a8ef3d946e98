package egress

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// redirects answers every path except /end with a redirect: ?to= is the location, ?status= the
// status.
func redirects(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/end" {
		echo(w, r)
		return
	}
	w.Header().Set("Location", r.URL.Query().Get("to"))
	status := map[string]int{"301": 301, "302": 302, "303": 303, "307": 307, "308": 308}[r.URL.Query().Get("status")]
	w.WriteHeader(max(status, 301))
}

func TestRedirect_notGranted(t *testing.T) {
	s := newSite(t, false, redirects)
	got, fault := s.do(fields{"url": "/?to=/end"})
	if fault != "" || got["status"] != 301.0 || got["headers"].(map[string]any)["location"] != "/end" {
		t.Errorf("got %v %s", got, fault)
	}
}

func TestRedirect_limit(t *testing.T) {
	s := newSite(t, false, redirects)
	s.grant.Redirects = 2
	rows := map[string]float64{
		"/?to=/end":              418,
		"/?to=%2F%3Fto%3D%2Fend": 418,
		"/?to=%2F%3Fto%3D%252F%253Fto%253D%2Fend": 301, // the third is returned unchanged
		"/?to=/end%23fragment":                    418,
		"/?to=":                                   301,
	}
	for url, want := range rows {
		if got, fault := s.do(fields{"url": url}); fault != "" || got["status"] != want {
			t.Errorf("%s: %v %s, want status %v", url, got, fault, want)
		}
	}
}

func TestRedirect_checked(t *testing.T) {
	s := newSite(t, true, redirects)
	s.grant.Redirects = 5
	s.grant.Paths = []string{"/", "/end"}
	s.grant.Headers = []grant.Header{{Name: "X-Key", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a host that is not granted was asked: %v", r.Header)
	}))
	t.Cleanup(other.Close)
	const (
		uncovered = "NOT_GRANTED: the redirect leads outside the grant"
		malformed = "UNAVAILABLE: the redirect is malformed"
	)
	_, otherPort, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	rows := map[string]string{
		"https://127.0.0.1:" + otherPort + "/": uncovered,
		"//localhost/":                         uncovered,
		"/admin":                               uncovered,
		"/%252e%252e/admin":                    malformed,
		other.URL + "/":                        "DENIED: the redirect leads from https:// to http://",
		"http://" + s.host() + "/end":          "DENIED: the redirect leads from https:// to http://",
		"https://user:pw@" + s.host() + "/end": malformed,
		"file:///etc/passwd":                   malformed,
		"https://2130706433/":                  malformed,
		"https://169.254.169.254/":             uncovered,
		":":                                    malformed,
	}
	for to, want := range rows {
		if got, fault := s.do(fields{"url": "/?to=" + strings.ReplaceAll(to, "%", "%25")}); fault != want {
			t.Errorf("to %s: %v %q, want %q", to, got, fault, want)
		}
	}
}

func TestRedirect_privateNetwork(t *testing.T) {
	s := newSite(t, false, redirects)
	s.grant.Redirects = 1
	s.grant.Hosts = append(s.grant.Hosts, "*.v4.example:80")
	s.pool.resolver = (&names{}).resolver(t)
	_, fault := s.do(fields{"url": "/?to=http://169-254-169-254.v4.example/"})
	if want := "DENIED: the host of the redirect is in a network that the grant does not reach (private_networks)"; fault != want {
		t.Errorf("got %q, want %q", fault, want)
	}
}

func TestRedirect_request(t *testing.T) {
	s := newSite(t, false, redirects)
	s.grant.Redirects = 1
	s.grant.Methods = []string{"GET", "POST", "HEAD", "PUT"}
	rows := []struct{ status, method, want string }{
		{"301", "POST", `GET /end HTTP/1 ""`},
		{"302", "POST", `GET /end HTTP/1 ""`},
		{"303", "POST", `GET /end HTTP/1 ""`},
		{"303", "PUT", `GET /end HTTP/1 ""`},
		{"302", "PUT", `PUT /end HTTP/1 "x"`},
		{"307", "POST", `POST /end HTTP/1 "x"`},
		{"308", "POST", `POST /end HTTP/1 "x"`},
	}
	for _, r := range rows {
		got, fault := s.do(fields{"url": "/?to=/end&status=" + r.status, "method": r.method, "body": "x"})
		if body, _ := got["body"].(string); fault != "" || !strings.HasPrefix(body, r.want) {
			t.Errorf("%s of %s: %v %s, want %s", r.status, r.method, got, fault, r.want)
		}
	}
	s.grant.Methods = []string{"POST"}
	if _, fault := s.do(fields{"url": "/?to=/end&status=303", "method": "POST"}); !strings.HasPrefix(fault, "NOT_GRANTED") {
		t.Errorf("a GET that is not granted was made of a POST: %q", fault)
	}
}

func TestRedirect_credentials(t *testing.T) {
	far := newSite(t, false, echo)
	near := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	near.grant.Redirects = 1
	near.grant.Hosts = append(near.grant.Hosts, far.host())
	got, fault := near.do(fields{"url": "/?to=" + far.URL + "/end", "headers": fields{"authorization": "mine", "cookie": "c=1", "x-mine": "1"}})
	body, _ := got["body"].(string)
	if fault != "" || strings.Contains(body, "Authorization") || strings.Contains(body, "Cookie") || !strings.Contains(body, "X-Mine=[1]") {
		t.Errorf("got %v %s", got, fault)
	}
}
