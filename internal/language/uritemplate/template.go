// Package uritemplate reads URI templates (RFC 6570, levels 1 to 3) that can be
// matched back: from each URI that a template makes, the values that made it
// follow without doubt.
//
// [Parse] refuses every other template: where two values touch, where a value
// could end at several places, and what only expands. [Template.Match] takes a
// URI apart from left to right, in time linear in its length and without
// recursion; [Template.Expand] is its inverse. Values are strings, of which
// those of {x}, {+x}, {#x}, {.x} and {/x} are never empty, and those of {;x},
// {?x} and {&x} may be absent.
//
// Unlike RFC 6570, {+x} and {#x} encode every percent sign of a value, since
// the value could not be told from its encoded form otherwise.
package uritemplate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a template, in bytes and in variables.
const (
	MaxTemplate  = 512
	MaxVariables = 32
)

// MaxURI is the length in bytes of every URI: in files, of what is read, and of
// what is subscribed to.
const MaxURI = 4 << 10

// Template is a parsed template. It is immutable.
type Template struct {
	text  string
	parts []part
	names []string
	// machine is what overlaps are found by, made when it is first asked for.
	machine func() automaton
}

// kind says what a part stands for.
type kind uint8

const (
	// literal is text that stands for itself.
	literal kind = iota
	// simple is a value of unreserved characters, others percent-encoded.
	simple
	// reserved is a value that may hold reserved characters too.
	reserved
	// pairs is any of some names with their values, each behind a separator.
	pairs
)

// part is a piece of a template. Two literals never touch.
type part struct {
	kind kind
	text string // of a literal
	// names has one name for simple and reserved.
	names []string
	// operator is the sign that pairs begin with: ';', '?' or '&'.
	operator byte
}

// separator returns what stands before a pair.
func (p *part) separator(first bool) byte {
	if p.operator == '?' && !first {
		return '&'
	}
	return p.operator
}

// String returns the template as it was written.
func (t *Template) String() string { return t.text }

// Names returns the names of the variables in the order of the template.
func (t *Template) Names() []string { return slices.Clone(t.names) }

// Required returns the names of the variables that every URI of the template
// has a value for.
func (t *Template) Required() []string {
	var names []string
	for i := range t.parts {
		if t.parts[i].kind == simple || t.parts[i].kind == reserved {
			names = append(names, t.parts[i].names...)
		}
	}
	return names
}

// Prefix returns the text that all URIs of the template begin with.
func (t *Template) Prefix() string {
	if len(t.parts) > 0 && t.parts[0].kind == literal {
		return t.parts[0].text
	}
	return ""
}

// isUnreserved reports the characters of RFC 3986 section 2.3, which are never encoded.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// isReserved reports the characters of RFC 3986 section 2.2.
func isReserved(c byte) bool {
	return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0
}

// inValue reports the characters that the value of {x} may consist of in a
// URI: beside those of the RFC, the five that JavaScript's encodeURIComponent
// leaves as they are.
func isValueByte(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("!*'()%", c) >= 0
}

// inURI reports the characters that a URI may consist of.
func isURIByte(c byte) bool { return isUnreserved(c) || isReserved(c) || c == '%' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isTriplet reports whether s begins with a percent sign and two digits.
func isTriplet(s string) bool {
	return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

// Expand returns the URI that the values make. It fails when [Template.Match]
// would not return these values from it: when one is empty or missing that must
// not be, is not UTF-8, or makes the URI too long.
func (t *Template) Expand(values map[string]string) (string, error) {
	var uri []byte
	for i := range t.parts {
		p := &t.parts[i]
		switch p.kind {
		case literal:
			uri = append(uri, p.text...)
		case pairs:
			uri = p.appendPairs(uri, values)
		default:
			value := values[p.names[0]]
			if value == "" {
				return "", fmt.Errorf("the variable %q has no value", p.names[0])
			}
			uri = appendValue(uri, value, p.kind)
		}
	}
	for _, name := range t.names {
		if !utf8.ValidString(values[name]) {
			return "", fmt.Errorf("the value of %q is not UTF-8", name)
		}
	}
	if len(uri) > MaxURI {
		return "", errors.New("the URI is too long")
	}
	return string(uri), nil
}

// appendPairs appends the pairs that have values.
func (p *part) appendPairs(uri []byte, values map[string]string) []byte {
	first := true
	for _, name := range p.names {
		value, ok := values[name]
		if !ok {
			continue
		}
		uri = append(append(uri, p.separator(first)), name...)
		if value != "" || p.operator != ';' {
			uri = append(uri, '=')
		}
		uri = appendValue(uri, value, simple)
		first = false
	}
	return uri
}

// appendValue appends a value, with everything percent-encoded that values of
// the kind cannot hold.
func appendValue(uri []byte, value string, k kind) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(value) {
		if c := value[i]; isUnreserved(c) || k == reserved && isReserved(c) {
			uri = append(uri, c)
		} else {
			uri = append(uri, '%', hex[c>>4], hex[c&15])
		}
	}
	return uri
}
