package hclfile

import (
	"bytes"
	"fmt"
)

// scanTemplate is scan for a text that is one template.
func scanTemplate(src []byte) ([]heredoc, *scanProblem) {
	s := scanner{src: src, levels: []level{{}, {kind: '<'}}}
	return s.run()
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
