// Package uritemplate parses URI templates (RFC 6570, levels 1 to 3) that can be matched: each
// URI that a template produces determines the values.
//
// [Parse] rejects every other template: adjacent values, values with an ambiguous end, and
// templates that can only expand. [Template.Match] parses a URI from left to right, in linear
// time and without recursion; [Template.Expand] is its inverse. Values are strings. Values of
// {x}, {+x}, {#x}, {.x} and {/x} are never empty; values of {;x}, {?x} and {&x} may be absent.
//
// Unlike RFC 6570, {+x} and {#x} encode every percent sign of a value. Otherwise a value and
// its encoded form could not be distinguished.
package uritemplate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a template, in bytes and in variables.
const (
	MaxTemplate  = 512
	MaxVariables = 32
)

// MaxURI is the maximum length of a URI in bytes: in files, in reads and in subscriptions.
const MaxURI = 4 << 10

// Template is a parsed template. It is immutable.
type Template struct {
	text  string
	parts []part
	names []string
	// machine returns the automaton for overlaps, built on first use.
	machine func() automaton
}

// kind is the kind of a part.
type kind uint8

const (
	// literal is literal text.
	literal kind = iota
	// simple is a value of unreserved characters; others are percent-encoded.
	simple
	// reserved is a value that may also contain reserved characters.
	reserved
	// pairs is any subset of names with values, each after a separator.
	pairs
)

// part is a part of a template. Two literals are never adjacent.
type part struct {
	kind kind
	text string // for a literal
	// names has one name for simple and reserved.
	names []string
	// operator is the first character of pairs: ';', '?' or '&'.
	operator byte
}

// separator returns the character before a pair.
func (p *part) separator(first bool) byte {
	if p.operator == '?' && !first {
		return '&'
	}
	return p.operator
}

// String returns the source of the template.
func (t *Template) String() string { return t.text }

// Names returns the names of the variables in the order of the template.
func (t *Template) Names() []string { return slices.Clone(t.names) }

// Required returns the names of the variables with a value in every URI.
func (t *Template) Required() []string {
	var names []string
	for i := range t.parts {
		if t.parts[i].kind == simple || t.parts[i].kind == reserved {
			names = append(names, t.parts[i].names...)
		}
	}
	return names
}

// Prefix returns the common prefix of all URIs of the template.
func (t *Template) Prefix() string {
	if len(t.parts) > 0 && t.parts[0].kind == literal {
		return t.parts[0].text
	}
	return ""
}

// isUnreserved reports whether c is an unreserved character of RFC 3986 section 2.3. These are
// never encoded.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// isReserved reports whether c is a reserved character of RFC 3986 section 2.2.
func isReserved(c byte) bool {
	return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0
}

// isValueByte reports whether the value of {x} may contain c in a URI: the characters of the
// RFC, and the five that JavaScript's encodeURIComponent does not encode.
func isValueByte(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("!*'()%", c) >= 0
}

// isURIByte reports whether a URI may contain c.
func isURIByte(c byte) bool { return isUnreserved(c) || isReserved(c) || c == '%' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isTriplet reports whether s starts with a percent sign and two hexadecimal digits.
func isTriplet(s string) bool {
	return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

// Expand returns the URI for the values. It fails if [Template.Match] would not return them: if
// a required value is empty or missing, a value is not UTF-8, or the URI is too long.
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

// appendValue appends a value and percent-encodes the characters that the kind does not allow.
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
