package weburl

import "testing"

// The examples of the WHATWG URL standard and its tests.
func TestParse_likeBrowsers(t *testing.T) {
	for _, c := range []struct{ text, base, want string }{
		{"http://example.com", "", "http://example.com/"},
		{"  http://EXAMPLE.com:80/a\tb ", "", "http://example.com/ab"},
		{"https://example.com:443", "", "https://example.com/"},
		{"https://example.com:80", "", "https://example.com:80/"},
		{"https:example.org", "", "https://example.org/"},
		{"https://////example.com///", "", "https://example.com///"},
		{`https:\\x\y`, "", "https://x/y"},
		{"http://a/b/../../../c/./d/..", "", "http://a/c/"},
		{"http://a/%2e%2E/b/.%2e/c", "", "http://a/c"},
		{"http://a/b c?d e#f g", "", "http://a/b%20c?d%20e#f%20g"},
		{"http://a/ä?ö#ü", "", "http://a/%C3%A4?%C3%B6#%C3%BC"},
		{"http://u:p@a/", "", "http://u:p@a/"},
		{"http://u@b@a/", "", "http://u%40b@a/"},
		{"http://[::1]:8080/", "", "http://[::1]:8080/"},
		{"http://[2001:DB8::0:1]/", "", "http://[2001:db8::1]/"},
		{"http://127.1", "", "http://127.0.0.1/"},
		{"http://0x7f.1", "", "http://127.0.0.1/"},
		{"http://2130706433", "", "http://127.0.0.1/"},
		{"http://0177.0.0.1", "", "http://127.0.0.1/"},
		{"http://%65xample.com", "", "http://example.com/"},
		{"mailto:a@b.c", "", "mailto:a@b.c"},
		{"data:text/plain,a b", "", "data:text/plain,a b"},
		{"urn:x:y?z#f", "", "urn:x:y?z#f"},
		{"web+demo:/.//not-a-host/", "", "web+demo:/.//not-a-host/"},
		{"foo://Bar/a", "", "foo://Bar/a"},
		{"foo://bar", "", "foo://bar"},
		{"file:///a/b", "", "file:///a/b"},
		{"file://localhost/a", "", "file:///a"},
		{"b", "http://h/a/c?q#f", "http://h/a/b"},
		{"", "http://h/a/c?q#f", "http://h/a/c?q"},
		{"?x", "http://h/a/c?q#f", "http://h/a/c?x"},
		{"#x", "http://h/a/c?q#f", "http://h/a/c?q#x"},
		{"/x", "http://h/a/c?q#f", "http://h/x"},
		{"//o/x", "http://h/a/c?q#f", "http://o/x"},
		{"../x", "http://h/a/b/c", "http://h/a/x"},
		{"https://o", "http://h/a", "https://o/"},
		{"#x", "mailto:a", "mailto:a#x"},
		{"", "", "invalid URL"},
		{"a", "", "invalid URL"},
		{"//a", "", "invalid URL"},
		{"x", "mailto:a", "invalid URL"},
		{"http://", "", "invalid URL"},
		{"http://a b/", "", "invalid URL"},
		{"http://a:b/", "", "invalid URL"},
		{"http://a:65536/", "", "invalid URL"},
		{"http://[::1/", "", "invalid URL"},
		{"http://[::1]x/", "", "invalid URL"},
		{"http://256.1.1.1/", "", "invalid URL"},
		{"http://1.2.3.4.5/", "", "invalid URL"},
		{"http://a%00b/", "", "invalid URL"},
		{"http://a%/", "", "invalid URL"},
		{"http://ä.de/", "", "invalid URL"},
		{"foo://b ar/", "", "invalid URL"},
	} {
		var base *URL
		if c.base != "" {
			base, _ = Parse(c.base, nil)
		}
		got := ""
		if u, err := Parse(c.text, base); err != nil {
			got = err.Error()
		} else {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%q against %q: got %q, want %q", c.text, c.base, got, c.want)
		}
	}
}

// FuzzURL checks that parsing the text of a parsed URL returns the same URL.
func FuzzURL(f *testing.F) {
	f.Add("http://u:p@example.com:8080/a/../b?q=1#f", "x")
	f.Add("mailto:a@b", "")
	f.Fuzz(func(t *testing.T, text, reference string) {
		u, err := Parse(text, nil)
		if err != nil {
			return
		}
		again, err := Parse(u.String(), nil)
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q became %q and then %v %v", text, u, again, err)
		}
		if r, err := Parse(reference, u); err == nil {
			if again, err := Parse(r.String(), nil); err != nil || again.String() != r.String() {
				t.Fatalf("%q against %q became %q and then %v %v", reference, u, r, again, err)
			}
		}
	})
}
