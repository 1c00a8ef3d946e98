package policylang

import (
	"slices"

	"github.com/mcpd/mcpd/diag"
)

// What a condition with mistakes of syntax may cost: it is read again without
// what is wrong, and its places are kept byte by byte.
const (
	maxMends  = 8
	maxMended = 4 << 10
)

// compile compiles one text. Nil means that it added errors to the list: all of
// a condition, with those of its other parts when one cannot be read.
func (c *compiler) compile(r role, text diag.Text) *expression {
	x, found := c.read(r, text)
	for range maxMends {
		if found == nil || r == roleReason || r == roleFrom {
			break
		}
		mended, hole, ok := found.mended()
		if !ok {
			break
		}
		told := len(c.diags)
		if found = c.rest(r, mended); found != nil && hole >= 0 && found.beside(hole) {
			c.diags = c.diags[:told]
			break
		}
	}
	return x
}

// rest tells the errors of a text that is not the whole.
func (c *compiler) rest(r role, text diag.Text) *slip {
	told := len(c.diags)
	_, found := c.read(r, text)
	errors := slices.DeleteFunc(c.diags[told:], func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
	c.diags = c.diags[:told+len(errors)]
	return found
}

// beside reports whether nothing but one token is between the mistake and the
// word true that begins at hole.
func (s slip) beside(hole int) bool {
	w := wordsOf(s.text.Body())
	at, of := w.at(s.start), w.at(hole)
	return at >= of-1 && at <= of+1
}

// slip is a mistake of syntax: the bytes from start up to end of a text.
type slip struct {
	text       diag.Text
	start, end int
}

// mended returns the text without the mistake: with the sign that was meant or,
// if only a part of the condition is wrong, with true in place of that part.
// hole is where that stands. It returns false when nothing sound is left.
func (s slip) mended() (text diag.Text, hole int, ok bool) {
	body := s.text.Body()
	if len(body) > maxMended {
		return s.text, 0, false
	}
	if sign, ok := meant(body[s.start:s.end]); ok {
		return s.replaced(s.start, s.end, sign), -1, true
	}
	w := wordsOf(body)
	if end := len(w.tokens) - 1; end >= 0 && s.start >= w.tokens[end].end && connects(w.word(end)) {
		return s.replaced(w.tokens[end].start, w.tokens[end].end, ""), -1, true
	}
	first, last, ok := w.part(w.at(s.start))
	if !ok {
		return s.text, 0, false
	}
	return s.replaced(w.tokens[first].start, w.tokens[last].end, "true"), w.tokens[first].start, true
}

// meant returns CEL's sign for one of another language.
func meant(word string) (sign string, ok bool) {
	switch word {
	case "and", "&":
		return "&&", true
	case "or", "|":
		return "||", true
	case "not":
		return "!", true
	case "=", "===":
		return "==", true
	case "!==":
		return "!=", true
	}
	return "", false
}

// replaced returns the text with other words, each byte of which stands where
// one stands that it replaces, and the last ones where the last of these stands.
func (s slip) replaced(start, end int, by string) diag.Text {
	body := s.text.Body()
	b := diag.TextBuilder{File: s.text.File()}
	for i := range len(body) {
		if i < start || i >= end {
			b.Add(body[i:i+1], s.text.Pos(i))
			continue
		}
		part := by[min(i-start, len(by)):min(i-start+1, len(by))]
		if i == end-1 {
			part = by[min(i-start, len(by)):]
		}
		for j := range len(part) {
			b.Add(part[j:j+1], s.text.Pos(i))
		}
	}
	return b.Text()
}

// wording is a text that is cut into tokens, whatever is wrong with them.
type wording struct {
	src    string
	tokens []token
}

func wordsOf(src string) wording {
	w := wording{src: src}
	l := lexer{src: src}
	for {
		t, _ := l.next()
		if t.kind == tokenEOF || len(w.tokens) > maxTokens {
			return w
		}
		w.tokens = append(w.tokens, t)
	}
}

// at returns the index of the token at an offset, or of the last one.
func (w wording) at(offset int) int {
	i := slices.IndexFunc(w.tokens, func(t token) bool { return t.end > offset })
	if i < 0 {
		return len(w.tokens) - 1
	}
	return i
}

// word returns a token's text, and nothing outside of the text.
func (w wording) word(i int) string {
	if i < 0 || i >= len(w.tokens) {
		return ""
	}
	return w.src[w.tokens[i].start:w.tokens[i].end]
}

// part returns the smallest run of tokens around the one at i that stands
// beside && or ||, or alone in parentheses that do, so that it is a condition.
// It reports whether there is one.
func (w wording) part(i int) (first, last int, ok bool) {
	if i < 0 || !w.balanced() {
		return 0, 0, false
	}
	if connects(w.word(i)) {
		i-- // what is in front of it is not finished
	}
	if first, last = i, i; i < 0 || connects(w.word(i)) {
		return 0, 0, false
	}
	for range w.tokens {
		first, last = w.edge(first, -1), w.edge(last, 1)
		before, after := w.word(first-1), w.word(last+1)
		if connects(before) || connects(after) {
			return first, last, true
		}
		if before == "" && after == "" {
			return 0, 0, false
		}
		if before == "(" && after == ")" && joins(w.word(first-2)) && joins(w.word(last+2)) {
			return first, last, true
		}
		first, last = w.enclosing(first, -1), w.enclosing(last, 1)
	}
	return 0, 0, false
}

// edge returns how far an operand reaches from the token at i in a direction.
func (w wording) edge(i, step int) int {
	for depth := 0; i+step >= 0 && i+step < len(w.tokens); i += step {
		next := w.word(i + step)
		turn := bracket(next) * step
		if depth == 0 && (connects(next) || next == "?" || next == ":" || next == "," || turn < 0) {
			break
		}
		depth += turn
	}
	return i
}

// enclosing returns the index of the bracket around the token at i, in a direction.
func (w wording) enclosing(i, step int) int {
	for depth := 0; i+step >= 0 && i+step < len(w.tokens); {
		i += step
		if depth += bracket(w.word(i)) * step; depth < 0 {
			break
		}
	}
	return i
}

// balanced reports whether the brackets match.
func (w wording) balanced() bool {
	depth := 0
	for i := range w.tokens {
		if depth += bracket(w.word(i)); depth < 0 {
			return false
		}
	}
	return depth == 0
}

func connects(word string) bool { return word == "&&" || word == "||" }

// joins reports whether a condition stands beside the word, or the text ends there.
func joins(word string) bool { return word == "" || connects(word) }
