package safetext

import (
	"strings"
	"unicode"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

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
