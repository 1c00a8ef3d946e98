package uritemplate

import "slices"

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
	machine func() machine
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
	switch c {
	case ':', '/', '?', '#', '[', ']', '@', '!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=':
		return true
	}
	return false
}

// inValue reports the characters that the value of {x} may consist of in a
// URI: beside those of the RFC, the five that JavaScript's encodeURIComponent
// leaves as they are.
func inValue(c byte) bool {
	switch c {
	case '!', '*', '\'', '(', ')', '%':
		return true
	}
	return isUnreserved(c)
}

// inURI reports the characters that a URI may consist of.
func inURI(c byte) bool { return isUnreserved(c) || isReserved(c) || c == '%' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isTriplet reports whether s begins with a percent sign and two digits.
func isTriplet(s string) bool {
	return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}
