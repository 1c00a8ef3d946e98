package lockfile

import (
	"iter"
	"strings"
	"unicode"
)

// sheet is a definition as people read it: JSON with one member or item a line, and texts
// in [pieces], each a string of its own on a line of its own. No line is longer than some
// 200 columns, but for numbers with more digits.
type sheet struct {
	text []byte
	// most is beyond what length of the text nothing is written that is not begun; 0 is
	// beyond none.
	most int
}

// appendSheet appends the lines of a tool's definition, with no end behind the last; the
// zero Tool has none.
func appendSheet(dst []byte, t Tool) []byte {
	value, err := decode([]byte(t.definition))
	if err != nil {
		return dst
	}
	s := sheet{text: dst}
	s.value(value, 0)
	return s.text
}

// Levels of depth by which lines are set in. What is deeper than the deepest is set in as
// that is: a line says what it is by its brackets, and blanks before each of thousands of
// items would be most of the text.
const (
	nested    = 1
	continued = 2
	deepest   = 16
)

func (s *sheet) value(value any, depth int) {
	inner := min(depth+nested, deepest)
	switch value := value.(type) {
	case string:
		s.string(value, depth)
	case []any:
		s.text = append(s.text, '[')
		for i, item := range value {
			if s.full() {
				return
			}
			s.next(i, inner)
			s.value(item, inner)
		}
		s.end(']', len(value), depth)
	case map[string]any:
		s.text = append(s.text, '{')
		for i, name := range sortedNames(value) {
			if s.full() {
				return
			}
			s.next(i, inner)
			s.string(name, inner)
			s.text = append(s.text, ": "...)
			s.value(value[name], inner)
		}
		s.end('}', len(value), depth)
	default:
		s.text = appendValue(s.text, value)
	}
}

func (s *sheet) string(text string, depth int) {
	behind := false
	for piece := range pieces(text) {
		if s.full() {
			return
		}
		if behind {
			s.line(depth + continued)
		}
		s.text, behind = appendQuoted(s.text, piece), true
	}
}

// full reports whether the text is longer than it may be.
func (s *sheet) full() bool { return s.most > 0 && len(s.text) > s.most }

func (s *sheet) next(i, depth int) {
	s.text = separated(s.text, i)
	s.line(depth)
}

func (s *sheet) end(bracket byte, n, depth int) {
	if n > 0 {
		s.line(depth)
	}
	s.text = append(s.text, bracket)
}

func (s *sheet) line(depth int) {
	s.text = append(s.text, '\n')
	for range depth {
		s.text = append(s.text, "  "...)
	}
}

// joiner puts lines of a sheet together to JSON again.
type joiner struct {
	json []byte
	// closed says that the last line ends with the quote that ends a string, or begins one.
	closed bool
}

// add appends a line. A string that follows a string is the rest of it: JSON has no two
// of them without a comma or colon between.
func (j *joiner) add(line string) {
	line = strings.TrimLeft(line, " \t")
	rest, begins := strings.CutPrefix(line, `"`)
	if begins && j.closed {
		j.json = append(j.json[:len(j.json)-1], rest...)
	} else {
		j.json = append(append(j.json, ' '), line...)
	}
	before, quote := strings.CutSuffix(line, `"`)
	escapes := len(before) - len(strings.TrimRight(before, `\`))
	j.closed = quote && escapes%2 == 0
}

// maxPiece is how many columns a piece of a text takes, without its quotes.
const maxPiece = 80

// maxMarks is how many marks a character may bear; more of them cover the lines around.
const maxMarks = 3

// quoted returns a text as a JSON string of one line, that shows each of its characters.
func quoted(text string) string { return string(appendQuoted(nil, text)) }

func appendQuoted(dst []byte, text string) []byte {
	var e eye
	return appendText(dst, text, e.hides)
}

// eye looks at a text from its beginning, and knows what nobody sees of it.
type eye struct{ marks int }

// hides reports whether the next character shows nothing of its own, moves or covers
// others, or is a mark without a letter or one of too many on it.
func (e *eye) hides(r rune) bool {
	const brailleBlank = '\u2800'
	switch {
	case r >= ' ' && r < 0x7f:
		e.marks = 0
		return false
	case !unicode.IsPrint(r) || r == brailleBlank,
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Me):
		return true
	case !unicode.Is(unicode.M, r):
		e.marks = 0
		return false
	}
	e.marks++
	return e.marks > maxMarks
}

// columns returns how many columns the next character takes in a quoted text.
func (e *eye) columns(r rune) int {
	switch {
	case shortEscape(r) != 0:
		return len(`\n`)
	case !e.hides(r):
		return 1
	case r > 0xffff:
		return len(`\u0000\u0000`)
	}
	return len(`\u0000`)
}

// pieces cuts a text so that each of its lines and sentences begins a piece, and none is
// wide. What is put into a text, or taken out, leaves the pieces around it as they are.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var e eye
		var before rune
		from, width := 0, 0
		blank, behind := 0, 0 // the last place to cut at, and the width up to there
		for i, r := range text {
			columns := e.columns(r)
			at, rest := from, width
			switch {
			case i == from:
			case begins(before, r):
				at, rest = i, 0
			case width+columns > maxPiece && blank > from:
				at, rest = blank, width-behind
			case width+columns > maxPiece:
				at, rest = i, 0
			}
			if at > from && !yield(text[from:at]) {
				return
			}
			from, width = at, rest
			if r == ' ' && before != ' ' {
				blank, behind = i, width
			}
			width += columns
			before = r
		}
		yield(text[from:])
	}
}

// begins reports whether a line or a sentence begins between two characters. The blank
// before a sentence is a part of it, as the one before was the last until then.
func begins(before, r rune) bool {
	return r == '\n' || r == ' ' && strings.ContainsRune(".!?", before) || strings.ContainsRune("。！？", before)
}
