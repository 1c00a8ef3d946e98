package hclfile

import (
	"bytes"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// heredoc is a heredoc whose text holds no template, because its tag makes it
// raw or because it has no ${ and no %{. Its text is cut out before HCL parses
// the file, so that HCL cannot misread it.
type heredoc struct {
	tag string
	// raw: what stands there is the value, to the byte.
	raw bool
	// flush: the common indent is stripped (<<-).
	flush bool
	// open, start and end are offsets in the file: of the <<, of the first
	// byte of the text, and of the line that closes it.
	open, start, end int
	// cut is the offset of the << in what HCL parses.
	cut int
}

// rawLanguage returns the language of the code behind a heredoc tag; false when
// its text is none.
func rawLanguage(tag string) (string, bool) {
	switch tag {
	case "JS":
		return JavaScript, true
	case "TS":
		return TypeScript, true
	case "CEL":
		return CEL, true
	case "SQL":
		return SQL, true
	default:
		return "", false
	}
}

// text returns the heredoc's text with the place of each byte.
func (h *heredoc) text(f *File) diag.Text {
	b := diag.TextBuilder{File: f.path}
	indent := 0
	if h.flush {
		indent = commonIndent(f.source[h.start:h.end])
	}
	if indent == 0 && (h.raw || !strings.Contains(f.source[h.start:h.end], "{")) {
		b.Add(f.source[h.start:h.end], f.pos(h.start))
		return b.Text()
	}
	pos := f.pos(h.start)
	for line := range strings.Lines(f.source[h.start:h.end]) {
		next := diag.Advance(pos, line)
		if strings.TrimSpace(line) != "" {
			line, pos = line[indent:], diag.Advance(pos, line[:indent])
		}
		h.addLine(&b, line, pos)
		pos = next
	}
	return b.Text()
}

// addLine adds one line. Outside raw heredocs $${ and %%{ stand for ${ and %{.
func (h *heredoc) addLine(b *diag.TextBuilder, line string, pos diag.Pos) {
	for !h.raw {
		i := indexEscape(line)
		if i < 0 {
			break
		}
		b.Add(line[:i+1], pos)
		pos = diag.Advance(pos, line[:i+2])
		line = line[i+2:]
	}
	b.Add(line, pos)
}

// indexEscape returns the offset of the first $${ or %%{ in s, or -1.
func indexEscape(s string) int {
	dollar, percent := strings.Index(s, "$${"), strings.Index(s, "%%{")
	if dollar < 0 || percent >= 0 && percent < dollar {
		return percent
	}
	return dollar
}

// commonIndent counts the blanks that all lines of s begin with, blank lines aside.
func commonIndent(s string) int {
	least := -1
	for line := range strings.Lines(s) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		n := len(line) - len(strings.TrimLeft(line, " \t"))
		if least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

// heredocEnd finds the line that closes a heredoc whose text starts at start.
// A literal text has no ${ or %{ of its own; the search stops at the first of
// those unless the heredoc is raw.
func heredocEnd(src []byte, start int, tag []byte, raw bool) (end int, result heredocSearch) {
	for at := start; at < len(src); {
		line := src[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		if bytes.Equal(bytes.TrimSpace(line), tag) {
			return at, heredocClosed
		}
		if !raw && hasTemplate(line) {
			return at, heredocTemplate
		}
		at += len(line)
	}
	return len(src), heredocOpen
}

type heredocSearch int

const (
	heredocClosed heredocSearch = iota
	heredocTemplate
	heredocOpen
)

// hasTemplate reports whether the line of a heredoc begins a template sequence.
func hasTemplate(line []byte) bool {
	for i := 0; i+1 < len(line); i++ {
		if line[i] != '$' && line[i] != '%' {
			continue
		}
		if line[i+1] == '{' {
			return true
		}
		if i+2 < len(line) && line[i+1] == line[i] && line[i+2] == '{' {
			i += 2
		}
	}
	return false
}
