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

func (s *scanner) quoted() {
	switch s.src[s.at] {
	case '"':
		s.pop(len(s.levels) - 1)
		s.at++
	case '\\':
		s.at++
		if s.at < len(s.src) && s.src[s.at] != '\n' && s.src[s.at] != '\r' {
			s.at++
		}
	case '\n':
		s.unclosedString()
	case '$', '%':
		s.sequence()
	default:
		s.literal(`"\$%` + "\n")
	}
}

// unclosedString reports a string that continues after its line. A quote without text after it
// was probably the end of the string around a template sequence.
func (s *scanner) unclosedString() {
	open := s.top().at
	if outer := s.levels[len(s.levels)-2]; (outer.kind == '$' || outer.kind == '%') && len(bytes.TrimSpace(s.src[open+1:s.at])) == 0 {
		s.fail("syntax", outer.at, fmt.Sprintf(`this "%c{" is never closed`, outer.kind), fmt.Sprintf(`add the "}" that ends it, or write %[1]c%[1]c{ for the text %[1]c{`, outer.kind))
		s.problem.end = outer.at + 2
		return
	}
	s.fail("syntax", open, "the string is not closed on its line", "close it with a quote; write \\n for a line end, or use a heredoc")
	s.problem.end = s.at
}

// heredocText reads a part of a heredoc with templates.
func (s *scanner) heredocText() {
	if s.top().tag != nil && s.lineStart() {
		line, _, _ := bytes.Cut(s.src[s.at:], []byte("\n"))
		if bytes.Equal(bytes.TrimSpace(line), s.top().tag) {
			s.at += len(line)
			s.pop(len(s.levels) - 1)
			return
		}
	}
	switch s.src[s.at] {
	case '\n':
		s.piece(1)
		s.at++
	case '$', '%':
		s.sequence()
	default:
		s.literal("$%\n")
	}
}

// lineStart reports whether a line of the heredoc starts here.
func (s *scanner) lineStart() bool { return s.at > 0 && s.src[s.at-1] == '\n' }

// literal skips to the next byte in stops.
func (s *scanner) literal(stops string) {
	i := bytes.IndexAny(s.src[s.at+1:], stops)
	if i < 0 {
		s.at = len(s.src)
		return
	}
	s.at += 1 + i
}

// sequence reads a $ or %: the start of a template sequence, an escape, or the plain character.
func (s *scanner) sequence() {
	c := s.src[s.at]
	switch {
	case s.peek(1) == '{':
		s.piece(1)
		s.push(c)
		s.at += 2
		if s.peek(0) == '~' {
			s.at++
		}
	case s.peek(1) == c && s.peek(2) == '{':
		s.piece(2)
		s.at += 3
	default:
		s.piece(2)
		s.at++
	}
}

// piece counts parts of the innermost template, which HCL joins pairwise.
func (s *scanner) piece(n int) {
	top := s.top()
	if top.pieces += n; top.pieces > maxPieces {
		s.fail("too-large", top.at, fmt.Sprintf("the template has more than %d lines, signs and sequences", maxPieces),
			"put the text into a file and read it with file(), or into a heredoc without templates")
	}
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
