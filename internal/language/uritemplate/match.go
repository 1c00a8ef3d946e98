package uritemplate

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// URI is a URI that is held against templates, any number of them. It belongs
// to one goroutine.
type URI struct {
	text string
	// ends holds for each offset where the run of characters that values hold
	// ends; it is nil until it is asked for.
	ends []int32
}

// NewURI returns a URI to match.
func NewURI(text string) *URI { return &URI{text: text} }

// end returns where the run of characters that values hold ends, from at on.
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

// Match returns the values that make the template into a URI, and false when
// none do. Absent variables have no value. Nothing is decoded, and no memory is
// used, before all of the template fits.
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
	// values are the first count of the values, as they stand in the URI.
	values [MaxVariables]value
	count  int
}

// value is what stands for a variable.
type value struct {
	name       string
	start, end int
}

func (m *matcher) rest() string { return m.uri.text[m.at:] }

// part takes what a part stands for from the rest of the URI.
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

// simpleEnd returns where the value of a simple variable ends: the literal
// behind it ends, or has its first character that no value holds, where the run
// of characters that values hold ends.
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

// take takes a value that must not be empty.
func (m *matcher) take(name string, end int) bool {
	if end <= m.at {
		return false
	}
	m.add(name, m.at, end)
	return true
}

// add adds a value, and goes on behind it.
func (m *matcher) add(name string, start, end int) {
	m.values[m.count] = value{name, start, end}
	m.count++
	m.at = end
}

// pairs takes the names that are there, in their order.
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

// decoded returns the values as text, and false when one of them is none.
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

// decode returns what a part of a URI stands for, if that is text.
func decode(s string) (string, bool) {
	for i := range len(s) {
		if !isURIByte(s[i]) {
			return "", false
		}
	}
	text, err := url.PathUnescape(s)
	return text, err == nil && utf8.ValidString(text)
}

// Overlaps reports whether some URI may match both templates. It never misses
// one as long as it has steps left, which it counts down; in a rare case of pairs
// it reports one that there is not.
func (t *Template) Overlaps(other *Template, steps *int) bool {
	a, b := t.Prefix(), other.Prefix()
	if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
		return false
	}
	return intersects(t.machine(), other.machine(), steps)
}

// class is a set of characters: one byte, or all that values of a kind hold.
type class struct {
	kind kind
	c    byte
}

func (a class) intersects(b class) bool {
	switch {
	case a.kind != literal && b.kind != literal:
		return true
	case a.kind == literal && b.kind == literal:
		return a.c == b.c
	case a.kind == literal:
		return b.intersects(a)
	case a.kind == simple:
		return isValueByte(b.c)
	default:
		return isURIByte(b.c)
	}
}

// state is where a template may stand in a URI.
type state struct {
	// steps are what may come next, each to the state that follows.
	steps []step
	// skips are states that stand at the same place.
	skips []int
}

type step struct {
	class class
	next  int
}

// machine is a template as states, of which the last is the end.
type automaton []state

// newMachine returns the template as a machine.
func (t *Template) newAutomaton() automaton {
	m := automaton{{}}
	for i := range t.parts {
		p := &t.parts[i]
		switch p.kind {
		case literal:
			m = m.text(p.text)
		case pairs:
			for i, name := range p.names {
				m = m.pair(p, name, i == 0)
			}
		default:
			m = m.value(class{kind: p.kind})
			end := len(m) - 1
			m[end].steps = append(m[end].steps, step{class{kind: p.kind}, end})
		}
	}
	return m
}

// value adds a state that one character of a class leads to.
func (m automaton) value(c class) automaton {
	end := len(m) - 1
	m[end].steps = append(m[end].steps, step{c, end + 1})
	return append(m, state{})
}

func (m automaton) text(s string) automaton {
	for i := range len(s) {
		m = m.value(class{c: s[i]})
	}
	return m
}

// pair adds a pair that may be absent, behind either separator.
func (m automaton) pair(p *part, name string, first bool) automaton {
	start := len(m) - 1
	m = m.value(class{c: p.separator(true)})
	if !first {
		m[start].steps = append(m[start].steps, step{class{c: p.separator(false)}, start + 1})
	}
	m = m.text(name)
	bare := len(m) - 1
	m = m.value(class{c: '='})
	end := len(m) - 1
	m[end].steps = append(m[end].steps, step{class{kind: simple}, end})
	m = append(m, state{})
	m[start].skips = append(m[start].skips, end+1)
	m[end].skips = append(m[end].skips, end+1)
	if p.operator == ';' {
		m[bare].skips = append(m[bare].skips, end+1)
	}
	return m
}

// meet reports whether one text leads through both machines, unless it runs out
// of steps before it knows.
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
