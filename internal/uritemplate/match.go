package uritemplate

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// Match returns the values that make the template into a URI, and false when
// none do. Absent variables have no value.
func (t *Template) Match(uri string) (map[string]string, bool) {
	if len(uri) > MaxURI {
		return nil, false
	}
	m := matcher{rest: uri, values: make(map[string]string, len(t.names))}
	for i := range t.parts {
		if !m.part(&t.parts[i], t.parts[i+1:]) {
			return nil, false
		}
	}
	return m.values, m.rest == ""
}

type matcher struct {
	rest   string
	values map[string]string
}

// part takes what a part stands for from the rest of the URI.
func (m *matcher) part(p *part, next []part) bool {
	switch p.kind {
	case literal:
		rest, ok := strings.CutPrefix(m.rest, p.text)
		m.rest = rest
		return ok
	case simple:
		return m.take(p.names[0], m.simpleEnd(next))
	case reserved:
		end := len(m.rest)
		if len(next) > 0 {
			end -= len(next[0].text)
		}
		return m.take(p.names[0], end)
	default:
		m.pairs(p)
		return true
	}
}

// run returns the length of what a value could be at most.
func (m *matcher) run() int {
	if n := outside(m.rest); n >= 0 {
		return n
	}
	return len(m.rest)
}

// simpleEnd returns where the value of a simple variable ends: the literal
// behind it ends, or has its first character that no value holds, where the run
// of characters that values hold ends.
func (m *matcher) simpleEnd(next []part) int {
	end := m.run()
	if len(next) == 0 || next[0].kind != literal {
		return end
	}
	if n := outside(next[0].text); n >= 0 {
		return end - n
	}
	return end - len(next[0].text)
}

// take takes a value that must not be empty.
func (m *matcher) take(name string, end int) bool {
	if end <= 0 {
		return false
	}
	value, ok := decode(m.rest[:end])
	m.values[name], m.rest = value, m.rest[end:]
	return ok
}

// pairs takes the names that are there, in their order.
func (m *matcher) pairs(p *part) {
	first := true
	for _, name := range p.names {
		rest, ok := strings.CutPrefix(m.rest, string(p.separator(first))+name)
		if !ok {
			continue
		}
		value, hasValue := strings.CutPrefix(rest, "=")
		if !hasValue && (p.operator != ';' || rest != "" && inValue(rest[0])) {
			continue
		}
		n := 0
		if hasValue {
			if n = outside(value); n < 0 {
				n = len(value)
			}
		}
		text, ok := decode(value[:n])
		if !ok {
			continue
		}
		m.values[name], m.rest, first = text, value[n:], false
	}
}

// decode returns what a part of a URI stands for, if that is text.
func decode(s string) (string, bool) {
	for i := range len(s) {
		if !inURI(s[i]) {
			return "", false
		}
	}
	text, err := url.PathUnescape(s)
	return text, err == nil && utf8.ValidString(text)
}
