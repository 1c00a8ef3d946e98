package hclfile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// heredoc is a heredoc without templates: its tag makes it raw, or it has no ${ and no %{. Its
// text is removed before HCL parses the file, because HCL would misread it.
type heredoc struct {
	tag string
	// raw: the value is the exact text.
	raw bool
	// flush: the common indent is removed (<<-).
	flush bool
	// open, start and end are offsets in the file: of the <<, of the first byte of the text,
	// and of the closing line.
	open, start, end int
	// cut is the offset of the << in the text for HCL.
	cut int
}

// rawLanguage returns the language of the code for a heredoc tag, and false if the text is not
// code.
func rawLanguage(tag string) (string, bool) {
	switch tag {
	case "JS":
		return definition.JavaScript, true
	case "TS":
		return definition.TypeScript, true
	case "CEL":
		return definition.CEL, true
	case "SQL":
		return definition.SQL, true
	default:
		return "", false
	}
}

// text returns the text of the heredoc with its positions.
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

// addLine adds one line. Outside of raw heredocs, $${ and %%{ are escapes of ${ and %{.
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

// commonIndent counts the common leading blanks of all lines of s, except blank lines.
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

// heredocEnd finds the closing line of a heredoc with text at start. A literal text has no
// unescaped ${ or %{; unless the heredoc is raw, the search stops at the first one.
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

// hasTemplate reports whether a line of a heredoc starts a template sequence.
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

// openHeredoc reads <<TAG or <<-TAG with its line end. It records a heredoc without templates
// and skips to its closing line.
func (s *scanner) openHeredoc() {
	open := s.at
	at := open + 2
	flush := at < len(s.src) && s.src[at] == '-'
	if flush {
		at++
	}
	tag := asciiWord(s.src[at:])
	if len(tag) == 0 {
		s.operator(1)
		return
	}
	newline := lineEnd(s.src[at+len(tag):])
	if newline == 0 {
		s.fail("syntax", at+len(tag), "there is text after the tag of the heredoc",
			fmt.Sprintf("end the line after %s; a tag may contain only ASCII letters, digits, _ and -", s.src[open:at+len(tag)]))
		return
	}
	s.separate()
	start := at + len(tag) + newline
	_, raw := rawLanguage(string(tag))
	end, found := heredocEnd(s.src, start, tag, raw)
	switch found {
	case heredocOpen:
		s.unterminatedHeredoc(open, at, tag)
	case heredocTemplate:
		s.push('<')
		s.top().tag = tag
		s.at = start
	default:
		if raw && reopensTag(s.src[start:end], tag) {
			s.unterminatedHeredoc(open, at, tag)
			return
		}
		s.heredocs = append(s.heredocs, heredoc{tag: string(tag), raw: raw, flush: flush, open: open, start: start, end: end})
		s.at = end + bytes.Index(s.src[end:], tag) + len(tag)
		s.operand, s.newline = true, false
	}
}

// unterminatedHeredoc reports a heredoc with its tag at an offset.
func (s *scanner) unterminatedHeredoc(open, at int, tag []byte) {
	s.fail("syntax", open, fmt.Sprintf("the heredoc %s is not closed", s.src[open:at+len(tag)]), fmt.Sprintf("add a line with only %s", tag))
	s.problem.end = at + len(tag)
}

// reopensTag reports whether code contains a line that starts a heredoc with the same tag. No
// code does: the found end belongs to the other heredoc.
func reopensTag(text, tag []byte) bool {
	for opener := append([]byte("<<"), tag...); ; {
		n := bytes.Index(text, opener)
		if n < 0 {
			return false
		}
		line := bytes.TrimSpace(text[bytes.LastIndexByte(text[:n], '\n')+1 : n])
		name, equals := bytes.CutSuffix(line, []byte("="))
		name = bytes.TrimSpace(name)
		if text = text[n+len(opener):]; equals && len(name) > 0 && len(asciiWord(name)) == len(name) && lineEnd(bytes.TrimLeft(text, " \t")) > 0 {
			return true
		}
	}
}

// asciiWord returns the ASCII identifier at the start of src.
func asciiWord(src []byte) []byte {
	n := 0
	for n < len(src) && src[n] < utf8.RuneSelf && (isWord(src[n]) || n > 0 && src[n] == '-') {
		n++
	}
	if n > 0 && isDigit(src[0]) {
		return nil
	}
	return src[:n]
}

// lineEnd returns the length of the line end at the start of src, or 0.
func lineEnd(src []byte) int {
	switch {
	case len(src) > 0 && src[0] == '\n':
		return 1
	case len(src) > 1 && src[0] == '\r' && src[1] == '\n':
		return 2
	default:
		return 0
	}
}
