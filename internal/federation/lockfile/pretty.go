package lockfile

import (
	"iter"
	"strings"
	"unicode"
)

// prettyPrinter writes a definition for review: JSON with one member or item per line, and
// texts split by [splitText] into one string per line. Lines have about 200 columns at most,
// except for longer numbers.
type prettyPrinter struct {
	text []byte
	// limit stops writing once the text is longer; 0 means no limit.
	limit int
}

// appendPretty appends the lines of a tool's definition, without a line end after the last one.
// The zero Tool has none.
func appendPretty(dst []byte, t Tool) []byte {
	value, err := decode([]byte(t.definition))
	if err != nil {
		return dst
	}
	p := prettyPrinter{text: dst}
	p.value(value, 0)
	return p.text
}

// Indentation levels. Deeper nesting keeps maxIndent: brackets show the structure, and blanks
// before thousands of items would be most of the text.
const (
	itemIndent   = 1
	stringIndent = 2
	maxIndent    = 16
)

func (p *prettyPrinter) value(value any, depth int) {
	inner := min(depth+itemIndent, maxIndent)
	switch value := value.(type) {
	case string:
		p.string(value, depth)
	case []any:
		p.text = append(p.text, '[')
		for i, item := range value {
			if p.full() {
				return
			}
			p.next(i, inner)
			p.value(item, inner)
		}
		p.end(']', len(value), depth)
	case map[string]any:
		p.text = append(p.text, '{')
		for i, name := range sortedNames(value) {
			if p.full() {
				return
			}
			p.next(i, inner)
			p.string(name, inner)
			p.text = append(p.text, ": "...)
			p.value(value[name], inner)
		}
		p.end('}', len(value), depth)
	default:
		p.text = appendValue(p.text, value)
	}
}

func (p *prettyPrinter) string(text string, depth int) {
	started := false
	for piece := range splitText(text) {
		if p.full() {
			return
		}
		if started {
			p.line(depth + stringIndent)
		}
		p.text, started = appendQuoted(p.text, piece), true
	}
}

// full reports whether the text has reached the limit.
func (p *prettyPrinter) full() bool { return p.limit > 0 && len(p.text) > p.limit }

func (p *prettyPrinter) next(i, depth int) {
	p.text = appendComma(p.text, i)
	p.line(depth)
}

func (p *prettyPrinter) end(bracket byte, n, depth int) {
	if n > 0 {
		p.line(depth)
	}
	p.text = append(p.text, bracket)
}

func (p *prettyPrinter) line(depth int) {
	p.text = append(p.text, '\n')
	for range depth {
		p.text = append(p.text, "  "...)
	}
}

// lineJoiner joins the lines of a definition to JSON.
type lineJoiner struct {
	json []byte
	// closed reports whether the last line ends with the quote of a string.
	closed bool
}

// add appends a line. A string that follows a string continues it: in JSON, a comma or colon
// would be between them.
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

// maxPieceWidth is the maximum width of a piece without its quotes, in columns.
const maxPieceWidth = 80

// maxCombiningMarks is the maximum number of marks on a character; more would cover adjacent
// lines.
const maxCombiningMarks = 3

// quoted returns a text as a JSON string on one line, with every character visible.
func quoted(text string) string { return string(appendQuoted(nil, text)) }

func appendQuoted(dst []byte, text string) []byte {
	var e invisibleScanner
	return appendText(dst, text, e.needsEscape)
}

// invisibleScanner scans a text from its start for characters that are not visible.
type invisibleScanner struct{ marks int }

// needsEscape reports whether the next character is invisible, moves or covers others, or is a
// combining mark without a letter or beyond the limit.
func (s *invisibleScanner) needsEscape(r rune) bool {
	const brailleBlank = '\u2800'
	switch {
	case r >= ' ' && r < 0x7f:
		s.marks = 0
		return false
	case !unicode.IsPrint(r) || r == brailleBlank,
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Me):
		return true
	case !unicode.Is(unicode.M, r):
		s.marks = 0
		return false
	}
	s.marks++
	return s.marks > maxCombiningMarks
}

// columns returns the width of the next character in a quoted text.
func (s *invisibleScanner) columns(r rune) int {
	switch {
	case shortEscape(r) != 0:
		return len(`\n`)
	case !s.needsEscape(r):
		return 1
	case r > 0xffff:
		return len(`\u0000\u0000`)
	}
	return len(`\u0000`)
}

// splitText splits a text so that each line and sentence starts a piece, and no piece is too
// wide. An edit of the text does not move the other pieces.
func splitText(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var e invisibleScanner
		var before rune
		from, width := 0, 0
		blank, blankWidth := 0, 0 // the last possible split, and the width up to it
		for i, r := range text {
			columns := e.columns(r)
			at, rest := from, width
			switch {
			case i == from:
			case startsPiece(before, r):
				at, rest = i, 0
			case width+columns > maxPieceWidth && blank > from:
				at, rest = blank, width-blankWidth
			case width+columns > maxPieceWidth:
				at, rest = i, 0
			}
			if at > from && !yield(text[from:at]) {
				return
			}
			from, width = at, rest
			if r == ' ' && before != ' ' {
				blank, blankWidth = i, width
			}
			width += columns
			before = r
		}
		yield(text[from:])
	}
}

// startsPiece reports whether a line or sentence starts between two characters. The blank
// before a sentence belongs to it, because the previous sentence was the last one until then.
func startsPiece(before, r rune) bool {
	return r == '\n' || r == ' ' && strings.ContainsRune(".!?", before) || strings.ContainsRune("。！？", before)
}
