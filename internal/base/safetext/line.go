package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns text as one line that shows what it holds, cut to at most most bytes.
// What would begin another line, show nothing, move other text or cover it is escaped.
func Line(text string, most int) string {
	shown, _ := Whole(text, most)
	return shown
}

// Whole is [Line], and reports whether nothing of the text was cut.
func Whole(text string, most int) (shown string, whole bool) {
	l := line{marks: maxMarks}
	for i, r := range text {
		if l.Len() > most {
			l.forward()
			fmt.Fprintf(&l, "… and %d characters more, which are not shown", utf8.RuneCountInString(text[i:]))
			return l.String(), false
		}
		l.add(r)
	}
	l.forward()
	return l.String(), true
}

// maxMarks is how many marks may stand on one letter: as many as Hebrew and Arabic need.
const maxMarks = 3

// toTheRight (U+200E) has what follows letters that are written to the left stand to the
// right of them: numbers and signs would else change places with them (UAX 9).
const toTheRight = '\u200e'

// line is text that is written as [Line] says.
type line struct {
	strings.Builder
	blank  bool // it ends in a space, or in white space that is escaped
	marks  int  // how many marks stand on the last letter, or maxMarks without one
	turned bool // its last letters are written to the left
}

func (l *line) add(r rune) {
	switch white := r == ' ' || r == '\n' || r == '\t'; {
	case white && !l.blank:
		l.WriteByte(' ')
		l.blank, l.marks = true, maxMarks
	case unicode.Is(unicode.M, r) && !unseen(r) && l.marks < maxMarks:
		l.WriteRune(r)
		l.marks++
	case white || unicode.Is(unicode.M, r) || unseen(r):
		l.forward()
		l.escape(r)
		l.blank, l.marks = white, maxMarks
	default:
		if !toTheLeft(r) {
			l.forward()
		}
		l.WriteRune(r)
		l.blank, l.marks, l.turned = false, 0, toTheLeft(r)
	}
}

// forward ends text that is written to the left.
func (l *line) forward() {
	if l.turned {
		l.WriteRune(toTheRight)
		l.turned = false
	}
}

func (l *line) escape(r rune) {
	if r == ' ' {
		l.WriteString(`\u0020`)
		return
	}
	l.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
}

// unseen reports whether a character shows nothing of its own, or encloses others.
func unseen(r rune) bool {
	return !unicode.IsGraphic(r) || r != ' ' && unicode.Is(unicode.Zs, r) || r == brailleBlank ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Me)
}

// toTheLeft reports whether a character is in a block whose letters are written to the
// left (UAX 44, the defaults of Bidi_Class).
func toTheLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}
