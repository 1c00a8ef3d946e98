package scripting

import (
	"strings"
	"unicode/utf8"
)

// harm says what of a text cannot be trusted behind a mistake that keeps it
// from being cut into tokens.
type harm int

const (
	// harmsAll is of bounds: nothing is looked for behind them.
	harmsAll harm = iota
	// harmsBytes is of a token that can be written otherwise.
	harmsBytes
	// harmsLine is of the rest of a line, such as behind an open quote.
	harmsLine
	// harmsTemplate is of an open template, behind which no other begins.
	harmsTemplate
	// harmsBrackets is of brackets that do not match.
	harmsBrackets
	// harmsRest is of everything behind the mistake.
	harmsRest
)

// cured returns as many bytes that can stand where those of the error stand.
func (e *lexError) cured(text string) string {
	wrong := text[e.start:e.end]
	switch {
	case wrong == "import":
		return "String"
	case strings.HasSuffix(wrong, "default"):
		return ";[]=" + blank(wrong[4:]) // which takes any expression
	case isAlnum(wrong[0]) && wrong[0] > '9':
		return blank(wrong)
	case wrong[0] >= 0x80:
		return "_"
	}
	return blank(wrong[:1]) + wrong[1:]
}

// exportSpot returns the place of the word export. What can stand without the
// word stays.
func exportSpot(text string, word module) spot {
	l := lexer{src: text[word.end:]}
	next := l.next()
	if next.text == "{" || next.text == "*" {
		return spot{at: word.start}
	}
	if next.text == "default" {
		word.end += next.end
	}
	return spot{at: word.start, refused: &lexError{start: word.start, end: word.end, harm: harmsBytes}}
}

// utf8Only writes another character for each byte that is not UTF-8.
func utf8Only(text string) string {
	out := []byte(text)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			out[i] = '_'
		}
		i += size
	}
	return string(out)
}

// aside returns what to leave out around a mistake behind which tokens cannot
// be trusted, by the pieces in front of it: statements that are laid out on lines of their own, and else all
// from the outermost statement on.
func (p *patch) aside(s spot, c *cutter) hole {
	rest := span{s.at, len(p.text)}
	var found []span
	if s.refused.harm == harmsRest {
		found = append(found, rest)
	}
	starts, fill := c.around(s)
	for _, start := range starts {
		rest.start = start
		if part, ok := p.laidOut(start, s, c); ok && s.refused.harm != harmsRest {
			found = append(found, part)
		}
	}
	found = append(found, rest, span{0, len(p.text)})
	return hole{span: found[0], wider: found[1:], fill: fill}
}

// around returns where the statements begin that a mistake stands in, or may
// stand in, the innermost first, and what can stand in its place.
func (c *cutter) around(s spot) (starts []int, fill string) {
	fill = ";"
	unclosed := c.unclosed(s)
	if top := c.nooks[len(c.nooks)-1]; !unclosed && top.holds != holdsExpressions && top.now < 0 {
		starts = append(starts, s.at)
	}
	for i := len(c.nooks) - 1; i >= 0; i-- {
		if now := c.nooks[i].now; now >= 0 && c.nooks[i].holds != holdsHeader && c.pieces[now].start <= s.at {
			if len(starts) == 0 {
				fill = c.pieces[now].fill
			}
			starts = append(starts, c.pieces[now].start)
		}
	}
	return starts, fill
}

// unclosed reports whether a mistake is a bracket that is never closed.
func (c *cutter) unclosed(s spot) bool {
	return s.refused.harm == harmsBrackets && strings.IndexByte(")]}", c.src[s.at]) < 0
}

// laidOut returns the lines of the statement that begins at start, if they are
// all that the mistake spoils.
func (p *patch) laidOut(start int, s spot, c *cutter) (span, bool) {
	through := s.at
	if n := len(c.braces); s.refused.harm == harmsBrackets && !c.unclosed(s) && n > 0 && c.braces[n-1].start >= start {
		through = c.braces[n-1].start
	}
	end, ok := laidOut(p.text, start, through, s.refused.harm != harmsBrackets)
	odd := 0
	if s.refused.harm == harmsTemplate && (len(c.braces) == 0 || c.braces[len(c.braces)-1].kind != '$') {
		odd = 1
	}
	return span{start, end}, ok && strings.Count(p.text[start:end], "`")%2 == odd
}
