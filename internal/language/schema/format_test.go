package schema

import (
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	for _, row := range []struct{ format, good, bad string }{
		{"date", "2026-07-28 2024-02-29 0000-01-01 2000-02-29", "2026-7-28 2026-13-01 2026-00-10 2026-04-31 2023-02-29 1900-02-29 2026-07-28Z +026-07-28 20260728 2026/07/28"},
		{"time", "14:30:00Z 00:00:00z 23:59:60Z 14:30:00.25+02:00 01:29:60+01:30 22:59:60-01:00", "14:30:00 24:00:00Z 14:60:00Z 14:30:61Z 14:30:60Z 14:30:00.Z 14:30Z +4:30:00Z 14:30:00+24:00 14:30:00+0200 14:30:00+02:60 14.30.00Z"},
		{"date-time", "2026-07-28T14:30:00Z 2026-07-28t14:30:00.123-05:00", "2026-07-28 2026-07-28T14:30:00 2026-07-28_14:30:00Z 2026-02-30T14:30:00Z 2026-07-28T25:00:00Z"},
		{"duration", "P1Y P1Y2M3DT4H5M6S PT36H P2W PT1M P3DT4H", "P PT P1 1Y P1S PT1D P1D2Y P1YT P2W3D PW P1.5D P-1D P1Y2D PT1H2S P１Y"},
		{"email", `name@example.com a+b@x.co "a\"b"@x.co a@[192.0.2.1] a@[IPv6:::1]`, `name @x.co a@ a@b@c .a@x.co a.@x.co a..b@x.co a@-x.co é@x.co a@[1.2.3] "a"b"@x.co "a\"@x.co ` + strings.Repeat("a", 65) + "@x.co"},
		{"idn-email", "é@bücher.example name@example.com", "é @x é@"},
		{"hostname", "example.com a xn--bcher-kva.example 1.2.3.4 a-b", "-a a- a..b .a a. a_b bücher.example " + strings.Repeat("a", 64) + " " + strings.Repeat("a.", 127) + "aa"},
		{"idn-hostname", "bücher.example 例え。テスト example.com", "-bücher bücher- bücher..x"},
		{"ipv4", "192.0.2.1 0.0.0.0 255.255.255.255", "256.0.0.1 1.2.3 1.2.3.4.5 01.2.3.4 +1.2.3.4 1.2.3.x 1.2.3.4/8 ::1"},
		{"ipv6", "::1 2001:db8::1 ::ffff:192.0.2.1 1:2:3:4:5:6:7:8", "1.2.3.4 ::1%eth0 12345:: 1:2:3:4:5:6:7 ::1/64 :::"},
		{"uri", "https://u:p@example.com:8080/a/b;c?d=e&f#g mailto:a@b.c urn:x:y http://[::1]:80/ http://[v1.a]/ file:///x data:text/plain,%20", "/a a.b // http://a[b http://[::1 http://a:b/ http://[1]/ http://a|b 1a:b http://%zz http://%4 http://é/ a\\b: http://x]/ http://[::1]x/"},
		{"uri-reference", "/a?b#c a/b ?x # //host/x https://x ./a:b", "\\a a|b 1:b/c é %x"},
		{"iri", "https://bücher.example/é?ü#ö", "é /é"},
		{"iri-reference", "/é #é bücher", "\\é |é"},
		{"uri-template", "/orders/{id} /{+path,x}{?q*,n:3}{&a.b} {a%20b} x'y é", "{ } {} {a {{a}} {a:0} {a:12345} {a:01} {a..b} {.a.} {a-b} a<b a\\b"},
		{"uuid", "123e4567-e89b-12d3-a456-426614174000 123E4567-E89B-12D3-A456-426614174000", "123e4567e89b12d3a456426614174000 123e4567-e89b-12d3-a456-42661417400g {123e4567-e89b-12d3-a456-426614174000} 123e4567-e89b-12d3-a4564266-14174000"},
		{"regex", "^a+$ [a-z]{2} (?i)x \\d", "( [ a{2,1} (?=x) \\1 *"},
		{"json-pointer", "/a/b /~0~1 / /é", "a /~ /~2 #/a"},
		{"relative-json-pointer", "0 1/a 0# 10/~0", "a -1 01 /a 1~ +1/a 0## 0#a"},
	} {
		f := formats[row.format]
		for _, s := range strings.Fields(row.good) {
			if !f.valid(s) {
				t.Errorf("%s refuses %q", row.format, s)
			}
		}
		for _, s := range strings.Fields(row.bad) {
			if f.valid(s) {
				t.Errorf("%s accepts %q", row.format, s)
			}
		}
	}
}

func TestTheEmptyStringIsOfTheFormatsThatAllowIt(t *testing.T) {
	for name, f := range formats {
		want := name == "uri-reference" || name == "iri-reference" || name == "uri-template" || name == "json-pointer" || name == "regex"
		if got := f.valid(""); got != want {
			t.Errorf("%s: valid is %t, want %t", name, got, want)
		}
	}
}

// FuzzFormats checks that no text does harm to a format.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{"", "P1Y", "a@[IPv6:::1]", "http://[::1]:80/%20?#", "{+a,b:3}", "23:59:60Z", "\"\\\"@x", "é。x", "%", "[", "0#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, format := range formats {
			if format.valid(s) != format.valid(strings.Clone(s)) {
				t.Errorf("%s is not sure of %q", name, s)
			}
		}
		if isDateTime(s) && (!isDate(s[:10]) || !isTime(s[11:])) || isURI(s) && !isURIReference(s) || isEmail(s) && !isIDNEmail(s) || isHostname(s) && !isIDNHostname(s) {
			t.Errorf("the formats of %q contradict each other", s)
		}
	})
}
