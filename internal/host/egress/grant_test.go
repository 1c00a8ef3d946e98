package egress

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestDo_notGranted(t *testing.T) {
	s := newSite(t, false, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s went out", r.Method, r.URL)
	})
	s.grant.Paths = []string{"/public/*", "/exact"}
	s.grant.Headers = []grant.Header{{Name: "X-Api-Key", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}
	rows := []struct {
		request fields
		want    string
	}{
		{fields{"url": "/public/a", "method": "POST"}, "NOT_GRANTED: POST is not among the methods of the grant"},
		{fields{"url": "/public/a", "method": "DELETE"}, "NOT_GRANTED: DELETE is not among the methods of the grant"},
		{fields{"url": "/public/a", "method": "CONNECT"}, "DENIED: scripts cannot use CONNECT"},
		{fields{"url": "/public/a", "method": "trace"}, "DENIED: scripts cannot use TRACE"},
		{fields{"url": "/public/a", "method": "GE T"}, "INVALID: the method is malformed"},
		{fields{"url": "/public/a", "method": "GET\r\nX: y"}, "INVALID: the method is malformed"},
		{fields{"url": "/public/a", "method": strings.Repeat("A", 33)}, "INVALID: the method is malformed"},
		{fields{"url": "/admin"}, "NOT_GRANTED: the path of the URL is not among the paths of the grant"},
		{fields{"url": ""}, "INVALID: the URL must start with https:// or http://"},
		{fields{}, "INVALID: the URL must start with https:// or http://"},
		{fields{"url": "/public/" + strings.Repeat("a", maxURL)}, "INVALID: the URL is longer than 8192 bytes"},
		{fields{"url": 1}, "INVALID: the request is malformed: url and method are strings, headers an object of strings"},
		{fields{"url": "/public/a", "body": "a", "body64": "YQ=="}, "INVALID: the request has two bodies"},
		{fields{"url": "/public/a", "body64": "?"}, "INVALID: body64 is not standard base64"},
		{fields{"url": "/public/a", "timeout_ms": -1}, "INVALID: timeout_ms is out of range"},
		{fields{"url": "/public/a", "timeout_ms": 1e300}, "INVALID: timeout_ms is out of range"},
		{fields{"url": "/public/a", "headers": fields{"X-Api-Key": "mine"}}, "DENIED: the header X-Api-Key is set by the grant"},
		{fields{"url": "/public/a", "headers": fields{"x_api-KEY": "mine"}}, "DENIED: the header X_api-Key is set by the grant"},
	}
	for _, r := range rows {
		if _, got := s.do(r.request); got != r.want {
			t.Errorf("%v:\n got %s\nwant %s", r.request, got, r.want)
		}
	}
}

func TestAllowlist_paths(t *testing.T) {
	rows := []struct {
		patterns string
		path     string
		want     bool
	}{
		{"/public/*", "/public/a", true},
		{"/public/*", "/public/", true},
		{"/public/*", "/public/a/b", true},
		{"/public/*", "/public", false},
		{"/public/*", "/publicity/a", false},
		{"/public/*", "/Public/a", false},
		{"/public/*", "/x/public/a", false},
		{"/public/*", "//public/a", false},
		{"/public/*", "/%70ublic/a", false},
		{"/public/*", "/public%2fa", false},
		{"/public/*", "/public/a%2Fb", true},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a/b/c/d", false},
		{"/a/*/c", "/a/b%2fc", false},
		{"/a/*/c", "/a/b/c%2fd", false},
		{"/a/*/c", "/a/b%252fd/c", true},
		{"/a/*/c", "/a/c", false},
		{"*", "/anything", true},
		{"/a%20b", "/a%20b", true},
		{"/a%2520b", "/a%2520b", true},
		{"/a%2a", "/abc", false},
		{"/one /two", "/two", true},
		{"", "/anything", true},
		{"/", "", true},
		{"/a**b", "/axxb", true},
		{"/*a*b*", "/xxaxxbxx", true},
		{"/*a*b", "/xxbxxa", false},
		{"/aa*aa", "/aaa", false},
	}
	for _, r := range rows {
		g := grant.HTTP{Hosts: []string{"h.example:443"}, Paths: strings.Fields(r.patterns)}
		a, err := parseURL("https://h.example" + r.path)
		if err != nil {
			t.Errorf("%s: %v", r.path, err)
			continue
		}
		if got := newAllowlist(g).check("GET", a) == nil; got != r.want {
			t.Errorf("%q covers %q: %v, want %v", r.patterns, r.path, got, r.want)
		}
	}
}

func TestParseHeaders_forbidden(t *testing.T) {
	s := newSite(t, false, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it went out: %v", r.Header) })
	for _, name := range []string{
		"Host", "host", "Content-Length", "CONTENT-LENGTH", "Transfer-Encoding", "transfer_encoding", "TE", "Trailer", "Connection",
		"Keep-Alive", "Upgrade", "Expect", "Via", "HTTP2-Settings", "Proxy-Authorization", "Proxy-Connection", "Proxy-Anything", "proxy_x",
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Host", "Forwarded",
	} {
		_, got := s.do(fields{"url": "/", "headers": fields{name: "x"}})
		if !strings.HasPrefix(got, "DENIED: scripts cannot set the header ") {
			t.Errorf("%s: %q", name, got)
		}
	}
	malformed := []fields{
		{"": "x"}, {"a b": "x"}, {"a:": "x"}, {"a\r\nb": "x"}, {"é": "x"}, {"a\x00": "x"}, {strings.Repeat("a", maxHeaderName+1): "x"},
		{"a": "x\r\nHost: evil"}, {"a": "x\nb: c"}, {"a": "x\rb"}, {"a": "x\x00"}, {"a": "\x7f"},
		{"a": "1", "A": "2"}, {"a-b": "1", "a_b": "2"}, {"a": strings.Repeat("x", maxHeaderBytes)},
	}
	many := fields{}
	for i := range maxHeaders + 1 {
		many[fmt.Sprint("h", i)] = ""
	}
	for _, headers := range append(malformed, many) {
		if _, got := s.do(fields{"url": "/", "headers": headers}); !strings.HasPrefix(got, "INVALID: ") {
			t.Errorf("%v: %q", headers, got)
		}
	}
}
