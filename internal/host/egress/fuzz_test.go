package egress

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// FuzzParseURL checks that an accepted URL is unambiguous: it parses to the same URL again, its
// host is only a name or an address, and no variant of its path has dot segments.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com/a%2fb?q#f", "http://[::1]:80/", "http://0x7f.1/", "https://a@b/", "https://h/%252e%252e/", "https:\\\\h", "http://h./", "http://H:8080/..;/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := parseURL(raw)
		if err != nil {
			return
		}
		again, err := parseURL(a.url.String())
		if err != nil {
			t.Fatalf("%q parses to %q, which is rejected: %v", raw, a.url, err)
		}
		if !again.sameOrigin(a) || again.url.String() != a.url.String() {
			t.Errorf("%q parses to %q, then %q", raw, a.url, again.url)
		}
		if _, err := netip.ParseAddr(a.host); err != nil && strings.ContainsAny(a.host, ":/\\@#?%[] ") {
			t.Errorf("%q has the host %q", raw, a.host)
		}
		if a.host != strings.ToLower(a.host) || a.port == "" || a.url.User != nil || a.url.Fragment != "" {
			t.Errorf("%q is not canonical: %q", raw, a.url)
		}
		for _, reading := range a.pathVariants {
			for _, segment := range strings.Split(strings.ReplaceAll(reading, `\`, "/"), "/") {
				if segment == "." || segment == ".." {
					t.Errorf("%q climbs: %q", raw, reading)
				}
			}
		}
		if newAllowlist(grant.HTTP{Hosts: []string{"granted.example:443"}}).check("GET", a) == nil && a.hostport() != "granted.example:443" {
			t.Errorf("%q matches another host", raw)
		}
	})
}

// FuzzRequest checks that no payload crashes the process or bypasses the header checks.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"method":"GET","url":"https://h.example/","headers":{"a":"b"},"body":"x","timeout_ms":1}`))
	f.Add([]byte(`{"url":"https://h.example/","body64":"eA=="}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := parseRequest(payload)
		if err != nil {
			return
		}
		for _, h := range r.headers {
			if !httpheader.IsToken(h.name) || strings.ContainsAny(h.value, "\r\n\x00") || isForbiddenHeader(foldHeader(h.name)) {
				t.Errorf("the header %q: %q was accepted", h.name, h.value)
			}
		}
		if r.timeout < 0 || !httpheader.IsToken(r.method) || r.to == nil {
			t.Errorf("the request %+v was accepted", r)
		}
	})
}

func BenchmarkParseURL(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseURL("https://crm.internal:8443/customers/C-1042?expand=orders"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClassOf(b *testing.B) {
	n, ip := newAddressClassifier(), netip.MustParseAddr("2606:4700::1111")
	b.ReportAllocs()
	for b.Loop() {
		n.classOf(ip)
	}
}
