package uritemplate

import "strings"

// Overlaps reports whether some URI may match both templates. It never misses
// one as long as it has steps left, which it counts down; in a rare case of pairs
// it reports one that there is not.
func (t *Template) Overlaps(other *Template, steps *int) bool {
	a, b := t.Prefix(), other.Prefix()
	if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
		return false
	}
	return meet(t.machine(), other.machine(), steps)
}

// class is a set of characters: one byte, or all that values of a kind hold.
type class struct {
	kind kind
	c    byte
}

func (a class) meets(b class) bool {
	switch {
	case a.kind != literal && b.kind != literal:
		return true
	case a.kind == literal && b.kind == literal:
		return a.c == b.c
	case a.kind == literal:
		return b.meets(a)
	case a.kind == simple:
		return inValue(b.c)
	default:
		return inURI(b.c)
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
type machine []state

// newMachine returns the template as a machine.
func (t *Template) newMachine() machine {
	m := machine{{}}
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
func (m machine) value(c class) machine {
	end := len(m) - 1
	m[end].steps = append(m[end].steps, step{c, end + 1})
	return append(m, state{})
}

func (m machine) text(s string) machine {
	for i := range len(s) {
		m = m.value(class{c: s[i]})
	}
	return m
}

// pair adds a pair that may be absent, behind either separator.
func (m machine) pair(p *part, name string, first bool) machine {
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
func meet(a, b machine, steps *int) bool {
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
				if x.class.meets(y.class) {
					visit(pair{x.next, y.next})
				}
			}
		}
	}
	return false
}
