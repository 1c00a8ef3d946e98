package scripting

import (
	"slices"
	"strings"
)

// patch is a text of which some pieces are left out. What stands elsewhere
// keeps its place.
type patch struct {
	text     string
	language Language
	data     bool // the text is JSON
	holes    []hole
	// words are all that the pieces may declare.
	words map[string]bool
}

// span is a part of a text.
type span struct{ start, end int }

// hole is a part that is left out.
type hole struct {
	span
	// wider are the parts to leave out instead, the smallest first.
	wider []span
	// grown says that the part took the one behind it.
	grown bool
	// fill stands for the part.
	fill string
	// closes says that the part may close brackets in front of it.
	closes bool
}

// spot is the place of a mistake of syntax, in an imported file or, where file
// is empty, in the body.
type spot struct {
	file string
	at   int
	// refused is set where the text could not be cut into tokens.
	refused *lexError
	// sure says that what is left out cannot have brought the mistake about.
	sure bool
}

// bound reports whether the text is refused for what it may be at most.
func (s spot) bound() bool { return s.refused != nil && s.refused.harm == harmsAll }

// leaveOut leaves out what is around a mistake that no hole has brought about,
// by the pieces of the text.
func (p *patch) leaveOut(s spot, c *cutter) {
	s.at = max(0, min(s.at, len(p.text)-1))
	switch {
	case p.data || p.text == "":
		p.leave(hole{span: span{0, len(p.text)}, fill: "0"})
	case s.refused == nil:
		p.leave(p.around(s.at, c))
	case s.refused.harm == harmsBytes:
		p.cure(s.refused)
	default:
		p.leave(p.aside(s, cutUp(p.text[:s.at+1], p.language)))
	}
}

// around returns the piece around a mistake. A mistake that a piece begins with
// may be that the one before it is not finished.
func (p *patch) around(at int, c *cutter) hole {
	in := c.at(at)
	first := in
	starts := in < 0 || c.pieces[in].start == at || strings.IndexByte(")]}", p.text[at]) >= 0
	if before := c.endingAt(at); starts && before >= 0 && !c.pieces[before].done {
		first = before
	}
	whole := span{0, len(p.text)}
	if first < 0 {
		return hole{span: whole}
	}
	found := hole{span: c.span(first), fill: c.pieces[first].fill}
	if first != in && in >= 0 && c.pieces[in].start == at {
		found.wider = append(found.wider, span{c.pieces[first].start, c.pieces[in].end})
	}
	for outer := c.pieces[first].outer; outer >= 0; outer = c.pieces[outer].outer {
		found.wider = append(found.wider, c.span(outer))
	}
	found.wider = append(found.wider, whole)
	return found
}

func (c *cutter) span(i int) span { return span{c.pieces[i].start, c.pieces[i].end} }

// cure writes a token otherwise.
func (p *patch) cure(e *lexError) {
	if e.end <= len(p.text) && p.text[e.start] >= 0x80 {
		p.text = utf8Only(p.text)
		return
	}
	p.text = p.text[:e.start] + e.cured(p.text) + p.text[e.end:]
	p.holes = append(p.holes, hole{span: span{e.start, e.end}})
}

// leave leaves a part out.
func (p *patch) leave(c hole) {
	p.holes = append(p.holes, c)
	p.blank(len(p.holes) - 1)
}

// blank leaves out what stands in a hole.
func (p *patch) blank(i int) {
	c := p.holes[i]
	if p.words == nil {
		p.words = map[string]bool{}
	}
	words(p.text[c.start:c.end], p.words)
	p.holes[i].closes = closesMore(p.text[c.start:c.end])
	space := []byte(p.text[c.start:c.end])
	for i, b := range space {
		if b != '\n' && b != '\r' {
			space[i] = ' '
		}
	}
	if line := strings.IndexAny(string(space), "\r\n"); len(c.fill) <= len(space) && (line < 0 || len(c.fill) <= line) {
		copy(space, c.fill)
	}
	p.text = p.text[:c.start] + string(space) + p.text[c.end:]
}

// near returns the hole that may have brought a mistake about, or -1.
func (p *patch) near(s spot) int {
	return slices.IndexFunc(p.holes, func(c hole) bool {
		switch at := min(s.at, len(p.text)); {
		case at < c.start:
			return c.closes && s.refused != nil && s.refused.harm == harmsBrackets
		case s.sure:
			return false
		case at <= c.end:
			return true
		default:
			return onlySemicolons(p.text[c.end:at])
		}
	})
}

// onlySemicolons reports whether a text holds no other tokens.
func onlySemicolons(text string) bool {
	l := lexer{src: text}
	t := l.next()
	for t.kind == tokenSemicolon {
		t = l.next()
	}
	return t.kind == tokenEnd && l.err == nil
}

// widen leaves out more in place of a hole behind which a mistake is left, and
// reports whether there was more.
func (p *patch) widen(i int, s spot) bool {
	c := &p.holes[i]
	if s.refused != nil && s.refused.harm == harmsBytes {
		p.cure(s.refused)
		return true
	}
	if s.at >= c.end && !c.grown && s.refused == nil && s.at < len(p.text) {
		c.grown = true
		all := cutUp(p.text, p.language)
		if next := all.at(s.at); next >= 0 && all.pieces[next].start >= c.end {
			c.end = all.pieces[next].end
			p.blank(i)
			return true
		}
	}
	for len(c.wider) > 0 {
		next := c.wider[0]
		c.wider = c.wider[1:]
		if next.start < c.start || next.end > c.end {
			c.span, c.fill = span{min(c.start, next.start), max(c.end, next.end)}, ";"
			p.blank(i)
			return true
		}
	}
	return false
}

// words adds all words of a text to a set, but for those beside a dot, which
// declare nothing.
func words(text string, into map[string]bool) {
	for i := 0; i < len(text); {
		if !wordStart(text[i:]) && text[i] != '#' {
			i++
			continue
		}
		end := wordEnd(text, i)
		if text[i] == '#' {
			end = wordEnd(text, i+1)
		}
		after := strings.TrimLeft(text[end:], " \t\r\n?")
		if (i == 0 || text[i-1] != '.') && !strings.HasPrefix(after, ".") {
			into[text[i:end]] = true
		}
		i = end
	}
}
