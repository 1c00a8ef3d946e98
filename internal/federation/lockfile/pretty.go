package lockfile

import (
	"iter"
	"strings"
	"unicode"
)

// sheet is a definition as people read it: JSON with one member or item a line, and texts
// in [pieces], each a string of its own on a line of its own. No line is longer than some
// 200 columns, but for numbers with more digits.
type prettyPrinter struct {
	text []byte
	// most is beyond what length of the text nothing is written that is not begun; 0 is
	// beyond none.
	limit int
}

// appendSheet appends the lines of a tool's definition, with no end behind the last; the
// zero Tool has none.
func appendPretty(dst []byte, t Tool) []byte {
	value, err := decode([]byte(t.definition))
	if err != nil {
		return dst
	}
	s := prettyPrinter{text: dst}
	s.value(value, 0)
	return s.text
}

// Levels of depth by which lines are set in. What is deeper than the deepest is set in as
// that is: a line says what it is by its brackets, and blanks before each of thousands of
// items would be most of the text.
const (
	itemIndent   = 1
	stringIndent = 2
	maxIndent    = 16
)

func (s *prettyPrinter) value(value any, depth int) {
	inner := min(depth+itemIndent, maxIndent)
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

func (s *prettyPrinter) string(text string, depth int) {
	behind := false
	for piece := range splitText(text) {
		if s.full() {
			return
		}
		if behind {
			s.line(depth + stringIndent)
		}
		s.text, behind = appendQuoted(s.text, piece), true
	}
}

// full reports whether the text is longer than it may be.
func (s *prettyPrinter) full() bool { return s.limit > 0 && len(s.text) > s.limit }

func (s *prettyPrinter) next(i, depth int) {
	s.text = appendComma(s.text, i)
	s.line(depth)
}

func (s *prettyPrinter) end(bracket byte, n, depth int) {
	if n > 0 {
		s.line(depth)
	}
	s.text = append(s.text, bracket)
}

func (s *prettyPrinter) line(depth int) {
	s.text = append(s.text, '\n')
	for range depth {
		s.text = append(s.text, "  "...)
	}
}

// joiner puts lines of a sheet together to JSON again.
type lineJoiner struct {
	json []byte
	// closed says that the last line ends with the quote that ends a string, or begins one.
	closed bool
}

// add appends a line. A string that follows a string is the rest of it: JSON has no two
// of them without a comma or colon between.
func (j *lineJoiner) add(line string) {
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
const maxPieceWidth = 80

// maxMarks is how many marks a character may bear; more of them cover the lines around.
const maxCombiningMarks = 3

// quoted returns a text as a JSON string of one line, that shows each of its characters.
func quoted(text string) string { return string(appendQuoted(nil, text)) }

func appendQuoted(dst []byte, text string) []byte {
	var e invisibleScanner
	return appendText(dst, text, e.needsEscape)
}

// eye looks at a text from its beginning, and knows what nobody sees of it.
type invisibleScanner struct{ marks int }

// hides reports whether the next character shows nothing of its own, moves or covers
// others, or is a mark without a letter or one of too many on it.
func (e *invisibleScanner) needsEscape(r rune) bool {
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
	return e.marks > maxCombiningMarks
}

// columns returns how many columns the next character takes in a quoted text.
func (e *invisibleScanner) columns(r rune) int {
	switch {
	case shortEscape(r) != 0:
		return len(`\n`)
	case !e.needsEscape(r):
		return 1
	case r > 0xffff:
		return len(`\u0000\u0000`)
	}
	return len(`\u0000`)
}

// pieces cuts a text so that each of its lines and sentences begins a piece, and none is
// wide. What is put into a text, or taken out, leaves the pieces around it as they are.
func splitText(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var e invisibleScanner
		var before rune
		from, width := 0, 0
		blank, behind := 0, 0 // the last place to cut at, and the width up to there
		for i, r := range text {
			columns := e.columns(r)
			at, rest := from, width
			switch {
			case i == from:
			case startsPiece(before, r):
				at, rest = i, 0
			case width+columns > maxPieceWidth && blank > from:
				at, rest = blank, width-behind
			case width+columns > maxPieceWidth:
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
func startsPiece(before, r rune) bool {
	return r == '\n' || r == ' ' && strings.ContainsRune(".!?", before) || strings.ContainsRune("。！？", before)
}
