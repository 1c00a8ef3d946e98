package lockfile

import (
	"strings"
	"unicode"
)

// maxPiece is how many columns a piece of a text takes, without its quotes.
const maxPiece = 80

// maxMarks is how many marks a character may bear; more of them cover the lines around.
const maxMarks = 3

// quoted returns a text as a JSON string of one line, that shows each of its characters.
func quoted(text string) string {
	var e eye
	return string(appendText(nil, text, e.hides))
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
func pieces(text string) []string {
	var list []string
	var e eye
	var before rune
	from, width := 0, 0
	blank, behind := 0, 0 // the last place to cut at, and the width up to there
	cut := func(at, rest int) {
		list = append(list, text[from:at])
		from, width = at, rest
	}
	for i, r := range text {
		columns := e.columns(r)
		switch {
		case i == from:
		case begins(before, r):
			cut(i, 0)
		case width+columns > maxPiece && blank > from:
			cut(blank, width-behind)
		case width+columns > maxPiece:
			cut(i, 0)
		}
		if r == ' ' && before != ' ' {
			blank, behind = i, width
		}
		width += columns
		before = r
	}
	return append(list, text[from:])
}

// begins reports whether a line or a sentence begins between two characters. The blank
// before a sentence is a part of it, as the one before was the last until then.
func begins(before, r rune) bool {
	return r == '\n' || r == ' ' && strings.ContainsRune(".!?", before) || strings.ContainsRune("。！？", before)
}
