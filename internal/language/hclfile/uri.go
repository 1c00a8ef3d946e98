package hclfile

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// uri decodes an argument that is an absolute URI.
func (d *decoder) uri(body *hclsyntax.Body, name string) (string, bool) {
	s, ok := d.text(body, name)
	if !ok {
		return "", false
	}
	if problem, detail := checkURI(s); problem != "" {
		d.fail("bad-uri", d.f.rng(body.Attributes[name].Expr.Range()), problem, detail)
		return "", false
	}
	return s, true
}

// checkURI says what keeps s from being an absolute URI (RFC 3986 section 3).
func checkURI(s string) (problem, detail string) {
	if len(s) > uritemplate.MaxURI {
		return "the URI is too long", fmt.Sprintf("write at most %d bytes", uritemplate.MaxURI)
	}
	if i := badURIByte(s); i >= 0 {
		switch {
		case s[i] == '{' || s[i] == '}':
			return "a URI holds no braces", "write a resource_template block for URIs with variables in {…}"
		case s[i] == '%':
			return "a % in the URI is not followed by two hexadecimal digits", "write %25 for the sign itself"
		default:
			return "the URI holds a character that no URI can hold", "percent-encode it, as in %20 for a space"
		}
	}
	if !hasScheme(s) {
		return "the URI is not absolute", "begin it with a scheme, such as \"docs://handbook\""
	}
	return "", ""
}

// hasScheme reports whether s begins with a scheme, and goes on behind it.
func hasScheme(s string) bool {
	scheme, rest, found := strings.Cut(s, ":")
	if !found || rest == "" || scheme == "" || !isWord(scheme[0]) || isDigit(scheme[0]) || scheme[0] == '_' {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; c >= 0x80 || c == '_' || !isWord(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// badURIByte returns the offset of the first byte that cannot stand where it
// does in a URI (RFC 3986 section 2), or -1.
func badURIByte(s string) int {
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return i
			}
		case c <= ' ', c >= 0x7f, strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return i
		}
	}
	return -1
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
