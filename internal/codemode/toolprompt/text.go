package toolprompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fence ends the part of a prompt that is code.
const fence = "```"

// ellipsis ends what was shortened.
const ellipsis = "…"

// maxLine bounds the bytes of a line of a comment.
const maxLine = 1 << 10

// shown reports whether a character can be seen: it neither controls a terminal,
// turns the direction of text, nor hides between others.
func shown(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~'
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// line returns a text as one line of at most most bytes that can stand in a
// comment: of runs of white space one space is left, and what cannot be seen is left
// out. Nothing in it ends the comment, or the code that the comment stands in.
func line(text string, most int) string {
	var b strings.Builder
	space, last := false, ' '
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if !shown(r) {
			continue
		}
		if space || r == '/' && last == '*' {
			b.WriteByte(' ')
			space = false
		}
		if b.Len()+utf8.RuneLen(r) > most {
			b.WriteString(ellipsis)
			break
		}
		b.WriteRune(r)
		last = r
	}
	return strings.ReplaceAll(b.String(), fence, "'''")
}

// lines returns the lines of a text for a comment: at most most of them that are not
// empty. None begins as a tag of ours does.
func lines(text string, most int) []string {
	var list []string
	for len(text) > 0 {
		var next string
		next, text = cutLine(text)
		if next = strings.TrimLeft(line(next, maxLine), "@ "); next == "" {
			continue
		}
		if len(list) == most {
			return append(list, ellipsis)
		}
		list = append(list, next)
	}
	return list
}

// cutLine returns the first line of a text, and what stands behind it.
func cutLine(text string) (first, rest string) {
	at := strings.IndexAny(text, "\n\r\u0085\u2028\u2029")
	if at < 0 {
		return text, ""
	}
	_, size := utf8.DecodeRuneInString(text[at:])
	return text[:at], text[at+size:]
}

// maxSentence bounds the bytes of a first sentence.
const maxSentence = 200

// FirstSentence returns the first sentence of a text, as a line for a comment.
func FirstSentence(text string) string {
	first := lines(text, 1)
	if len(first) == 0 {
		return ""
	}
	s := first[0]
	for i := 0; i+2 < len(s); i++ {
		if strings.IndexByte(".!?", s[i]) >= 0 && s[i+1] == ' ' && 'A' <= s[i+2] && s[i+2] <= 'Z' {
			s = s[:i+1]
			break
		}
	}
	return line(s, maxSentence)
}

// quote returns a text as a string literal of one line, of which no byte is
// anything but printed. Escapes keep the value that the literal has.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case shown(r) && r != '`':
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// comment returns lines as a comment of which every line but the first begins with
// the indent, and ends with a line break. There is none of no lines.
func comment(lines []string, indent string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return "/** " + lines[0] + " */\n"
	}
	var b strings.Builder
	b.WriteString("/**\n")
	for _, l := range lines {
		b.WriteString(indent + " * " + l + "\n")
	}
	b.WriteString(indent + " */\n")
	return b.String()
}
