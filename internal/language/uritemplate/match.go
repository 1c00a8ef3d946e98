package uritemplate

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// URI is a URI to match against any number of templates. It is not safe for concurrent use.
type URI struct {
	text string
	// ends holds for each offset the end of the run of value characters. It is computed on
	// first use.
	ends []int32
}

// NewURI returns a URI to match.
func NewURI(text string) *URI { return &URI{text: text} }

// end returns the end of the run of value characters that starts at at.
func (u *URI) end(at int) int {
	if u.ends == nil {
		u.ends = make([]int32, len(u.text)+1)
		end := int32(len(u.text))
		u.ends[end] = end
		for i := len(u.text) - 1; i >= 0; i-- {
			if !isValueByte(u.text[i]) {
				end = int32(i)
			}
			u.ends[i] = end
		}
	}
	return int(u.ends[at])
}

// Match returns the values that expand the template to the URI, and false if there are none.
// Absent variables have no value. It decodes and allocates only after the whole template
// matches.
func (t *Template) Match(uri *URI) (map[string]string, bool) {
	if len(uri.text) > MaxURI {
		return nil, false
	}
	m := matcher{uri: uri}
	for i := range t.parts {
		if !m.part(&t.parts[i], t.parts[i+1:]) {
			return nil, false
		}
	}
	if m.at != len(uri.text) {
		return nil, false
	}
	return m.decoded()
}

type matcher struct {
	uri *URI
	at  int
	// values are the encoded values; the first count are set.
	values [MaxVariables]value
	count  int
}

// value is the value of a variable, as a range in the URI.
type value struct {
	name       string
	start, end int
}

func (m *matcher) rest() string { return m.uri.text[m.at:] }

// part consumes the text for a part from the rest of the URI.
func (m *matcher) part(p *part, next []part) bool {
	switch p.kind {
	case literal:
		if !strings.HasPrefix(m.rest(), p.text) {
			return false
		}
		m.at += len(p.text)
		return true
	case simple:
		return m.take(p.names[0], m.simpleEnd(next))
	case reserved:
		end := len(m.uri.text)
		if len(next) > 0 {
			end -= len(next[0].text)
		}
		return m.take(p.names[0], end)
	default:
		m.pairs(p)
		return true
	}
}

// simpleEnd returns the end of the value of a simple variable: before the next literal, or
// before its first character that no value can contain.
func (m *matcher) simpleEnd(next []part) int {
	end := m.uri.end(m.at)
	if len(next) == 0 || next[0].kind != literal {
		return end
	}
	if n := firstNonValueByte(next[0].text); n >= 0 {
		return end - n
	}
	return end - len(next[0].text)
}

// take consumes a value that must not be empty.
func (m *matcher) take(name string, end int) bool {
	if end <= m.at {
		return false
	}
	m.add(name, m.at, end)
	return true
}

// add adds a value and advances to its end.
func (m *matcher) add(name string, start, end int) {
	m.values[m.count] = value{name, start, end}
	m.count++
	m.at = end
}

// pairs consumes the present names, in order.
func (m *matcher) pairs(p *part) {
	first := true
	for _, name := range p.names {
		rest := m.rest()
		if rest == "" || rest[0] != p.separator(first) || !strings.HasPrefix(rest[1:], name) {
			continue
		}
		at := m.at + 1 + len(name)
		rest = m.uri.text[at:]
		hasValue := strings.HasPrefix(rest, "=")
		if !hasValue && (p.operator != ';' || rest != "" && isValueByte(rest[0])) {
			continue
		}
		end := at
		if hasValue {
			at++
			end = m.uri.end(at)
		}
		m.add(name, at, end)
		first = false
	}
}

// decoded returns the decoded values, and false if one is not valid text.
func (m *matcher) decoded() (map[string]string, bool) {
	values := make(map[string]string, m.count)
	for _, v := range m.values[:m.count] {
		text, ok := decode(m.uri.text[v.start:v.end])
		if !ok {
			return nil, false
		}
		values[v.name] = text
	}
	return values, true
}

// decode returns the decoded part of a URI, and false if it is not valid text.
func decode(s string) (string, bool) {
	for i := range len(s) {
		if !isURIByte(s[i]) {
			return "", false
		}
	}
	text, err := url.PathUnescape(s)
	return text, err == nil && utf8.ValidString(text)
}

// Overlaps reports whether a URI may match both templates. steps is a budget that it counts
// down. While it has steps left, it misses no overlap; rarely, for pairs, it reports one that
// does not exist.
func (t *Template) Overlaps(other *Template, steps *int) bool {
	a, b := t.Prefix(), other.Prefix()
	if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
		return false
	}
	return intersects(t.machine(), other.machine(), steps)
}

// class is a set of characters: one byte, or all characters of a kind of value.
type class struct {
	kind kind
	c    byte
}

func (c class) intersects(b class) bool {
	switch {
	case c.kind != literal && b.kind != literal:
		return true
	case c.kind == literal && b.kind == literal:
		return c.c == b.c
	case c.kind == literal:
		return b.intersects(c)
	case c.kind == simple:
		return isValueByte(b.c)
	default:
		return isURIByte(b.c)
	}
}

// state is a state of an automaton.
type state struct {
	// steps are the transitions that consume a character.
	steps []step
	// skips are the transitions that consume nothing.
	skips []int
}

type step struct {
	class class
	next  int
}

// automaton is a template as states. The last state accepts.
type automaton []state

// newAutomaton returns the template as an automaton.
func (t *Template) newAutomaton() automaton {
	a := automaton{{}}
	for i := range t.parts {
		p := &t.parts[i]
		switch p.kind {
		case literal:
			a = a.text(p.text)
		case pairs:
			for i, name := range p.names {
				a = a.pair(p, name, i == 0)
			}
		default:
			a = a.value(class{kind: p.kind})
			end := len(a) - 1
			a[end].steps = append(a[end].steps, step{class{kind: p.kind}, end})
		}
	}
	return a
}

// value adds a state after one character of a class.
func (a automaton) value(c class) automaton {
	end := len(a) - 1
	a[end].steps = append(a[end].steps, step{c, end + 1})
	return append(a, state{})
}

func (a automaton) text(s string) automaton {
	for i := range len(s) {
		a = a.value(class{c: s[i]})
	}
	return a
}

// pair adds an optional pair, after either separator.
func (a automaton) pair(p *part, name string, first bool) automaton {
	start := len(a) - 1
	a = a.value(class{c: p.separator(true)})
	if !first {
		a[start].steps = append(a[start].steps, step{class{c: p.separator(false)}, start + 1})
	}
	a = a.text(name)
	bare := len(a) - 1
	a = a.value(class{c: '='})
	end := len(a) - 1
	a[end].steps = append(a[end].steps, step{class{kind: simple}, end})
	a = append(a, state{})
	a[start].skips = append(a[start].skips, end+1)
	a[end].skips = append(a[end].skips, end+1)
	if p.operator == ';' {
		a[bare].skips = append(a[bare].skips, end+1)
	}
	return a
}

// intersects reports whether a text is accepted by both automata, or the steps run out.
func intersects(a, b automaton, steps *int) bool {
	type pair struct{ a, b int }
	seen := make([]uint64, (len(a)*len(b)+63)/64)
	open := make([]pair, 0, 64)
	visit := func(p pair) {
		at := p.a*len(b) + p.b
		if bit := uint64(1) << (at % 64); seen[at/64]&bit == 0 {
			seen[at/64] |= bit
			open = append(open, p)
		}
	}
	for visit(pair{0, 0}); len(open) > 0 && *steps > 0; *steps-- {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		if at.a == len(a)-1 && at.b == len(b)-1 {
			return true
		}
		for _, skip := range a[at.a].skips {
			visit(pair{skip, at.b})
		}
		for _, skip := range b[at.b].skips {
			visit(pair{at.a, skip})
		}
		for _, x := range a[at.a].steps {
			for _, y := range b[at.b].steps {
				if x.class.intersects(y.class) {
					visit(pair{x.next, y.next})
				}
			}
		}
	}
	return false
}
