// Package safetext writes text of others so that it shows what it holds, and nothing of it
// passes for what somebody else says: no character that is not seen, turns others around or
// covers them, and no line that looks as if it were ours.
//
// [Line] is for one line among others of ours, [Words] for what people read of somebody
// whose label it bears, and [Prompt] for what models read of them.
package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/truncate"
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

// Words returns text of somebody for people, in at most most bytes, or little more: each of
// its lines is a [Line] that begins with the label of who says it, so that none looks like
// one of another. White space within a line is one space.
func Words(label, text string, most int) string {
	return labelled(label, text, most, func(line string, left int) string { return Line(spaced(line), left) })
}

// Prompt returns text of somebody for models as [Words] does, with white space within lines
// as it is.
func Prompt(label, text string, most int) string {
	return labelled(label, text, most, func(line string, left int) string {
		if line = visible(line); len(line) > left {
			return truncate.Start(line, left) + "…"
		}
		return line
	})
}

// Title returns text as a [Line] in which white space is one space.
func Title(text string, most int) string { return Line(spaced(styled.Replace(text)), most) }

// Shows reports whether text is one line that shows what it holds as it is. Two spaces may
// follow each other, as after a sentence; more would move what comes behind them out of sight.
func Shows(text string) bool {
	const most = 8 // bytes, of what stands for one of them
	text = strings.ReplaceAll(withoutJoins(text), "  ", " ")
	return strings.ReplaceAll(Line(text, most*len(text)), string(toTheRight), "") == text
}

// styled leaves out what has signs be drawn as text or in colour, which says nothing.
var styled = strings.NewReplacer("\ufe0e", "", "\ufe0f", "")

// labelled writes each line behind the label. Of blank lines between others one is left, as
// it is: nobody is taken to say it.
func labelled(label, text string, most int, write func(line string, left int) string) string {
	var b strings.Builder
	b.WriteString(label)
	blank := false
	for line := range strings.SplitSeq(strings.TrimSpace(styled.Replace(text)), "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			blank = true
			continue
		}
		if b.Len() > len(label) {
			b.WriteByte('\n')
			if blank {
				b.WriteByte('\n')
			}
			b.WriteString(label)
		}
		blank = false
		if b.Len() >= most {
			b.WriteString("…")
			break
		}
		b.WriteString(write(line, most-b.Len()))
	}
	return b.String()
}

// spaced makes one space of white space.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// visible escapes what is not seen.
func visible(text string) string {
	var l line
	for _, r := range text {
		if r != '\t' && unseen(r) {
			l.escape(r)
		} else {
			l.WriteRune(r)
		}
	}
	return l.String()
}
