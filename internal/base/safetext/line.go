// Package safetext prints untrusted text so that all its content is visible and none of
// it can pass for the output of another author: no invisible, reversing or covering
// characters, and no line that looks like our own.
//
// [Line] is for a line among our own output, [Words] for labeled text for people, and
// [Prompt] for labeled text for models.
package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

// Line returns text as one visible line of at most limit bytes. It escapes line ends,
// and invisible, moving and covering characters.
func Line(text string, limit int) string {
	shown, _ := Whole(text, limit)
	return shown
}

// Whole is [Line], and reports whether the text was not truncated.
func Whole(text string, limit int) (shown string, whole bool) {
	l := line{marks: maxMarks}
	for i, r := range text {
		if l.Len() > limit {
			l.forward()
			fmt.Fprintf(&l, "… and %d characters more, not shown", utf8.RuneCountInString(text[i:]))
			return l.String(), false
		}
		l.add(r)
	}
	l.forward()
	return l.String(), true
}

// maxMarks is the maximum number of marks on a letter: Hebrew and Arabic need that
// many.
const maxMarks = 3

// toTheRight (U+200E) keeps text after right-to-left letters to the right of them:
// numbers and signs would otherwise change places with them (UAX 9).
const toTheRight = '\u200e'

// line is text in the format of [Line].
type line struct {
	strings.Builder
	blank  bool // it ends in a space or escaped white space
	marks  int  // marks on the last letter, or maxMarks without one
	turned bool // its last letters are right-to-left
}

func (l *line) add(r rune) {
	switch white := r == ' ' || r == '\n' || r == '\t'; {
	case white && !l.blank:
		l.WriteByte(' ')
		l.blank, l.marks = true, maxMarks
	case unicode.Is(unicode.M, r) && !Invisible(r) && l.marks < maxMarks:
		l.WriteRune(r)
		l.marks++
	case white || unicode.Is(unicode.M, r) || Invisible(r):
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

// forward ends right-to-left text.
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

// Invisible reports whether a character is invisible or encloses others. Joiners of emoji and scripts,
// and the line end and tab, are invisible, too.
func Invisible(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false
	}
	return !unicode.IsGraphic(r) || r != ' ' && unicode.Is(unicode.Zs, r) || r == brailleBlank ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Me)
}

// toTheLeft reports whether a character is in a right-to-left block (UAX 44, the
// defaults of Bidi_Class).
func toTheLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

// Words returns untrusted text for people, in about limit bytes. Each of its lines is a
// [Line] with the label of its author, so that none looks like a line of another
// author. White space within a line becomes one space.
func Words(label, text string, limit int) string {
	return labeled(label, text, limit, func(line string, left int) string { return Line(spaced(line), left) })
}

// Prompt returns untrusted text for models, like [Words], but keeps white space within
// lines.
func Prompt(label, text string, limit int) string {
	return labeled(label, text, limit, func(line string, left int) string {
		if line = visible(line); len(line) > left {
			return truncate.Start(line, left) + "…"
		}
		return line
	})
}

// Title returns text as a [Line] with white space collapsed.
func Title(text string, limit int) string { return Line(spaced(styled.Replace(text)), limit) }

// Shows reports whether text is already one visible line. Two spaces in a row are
// accepted, as after a sentence; more could move the rest out of sight.
func Shows(text string) bool {
	const most = 8 // bytes of a placeholder
	text = strings.ReplaceAll(withoutJoins(text), "  ", " ")
	return strings.ReplaceAll(Line(text, most*len(text)), string(toTheRight), "") == text
}

// styled removes text and color presentation selectors, which carry no meaning.
var styled = strings.NewReplacer("\ufe0e", "", "\ufe0f", "")

// labeled writes each line after the label. Blank lines are collapsed to one, without
// a label.
func labeled(label, text string, limit int, write func(line string, left int) string) string {
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
		if b.Len() >= limit {
			b.WriteString("…")
			break
		}
		b.WriteString(write(line, limit-b.Len()))
	}
	return b.String()
}

// spaced collapses white space.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// visible escapes invisible characters.
func visible(text string) string {
	var l line
	for _, r := range text {
		if r != '\t' && Invisible(r) {
			l.escape(r)
		} else {
			l.WriteRune(r)
		}
	}
	return l.String()
}
