package lockfile

import (
	"iter"
	"strings"
	"unicode"
)

// maxPiece is how many columns a piece of a text takes, without its quotes.
const maxPiece = 80

// maxMarks is how many marks a character may bear; more of them cover the lines around.
const maxMarks = 3

// quoted returns a text as a JSON string of one line, that shows each of its characters.
func quoted(text string) string { return string(appendQuoted(nil, text)) }

// appendQuoted appends what [quoted] returns.
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
