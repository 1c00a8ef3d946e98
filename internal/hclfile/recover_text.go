package hclfile

import (
	"bytes"
	"fmt"
)

// maxTextLines is on how many lines the end is looked for of a string that is
// not closed on its own.
const maxTextLines = 10

// unclosedSequence returns what is wrong with a string that begins at the quote
// that was meant to end the one around it: a template sequence lacks its end.
func (s *pieceScanner) unclosedSequence(p *scanProblem) *scanProblem {
	n := len(s.levels) - 2
	if s.top().kind != '"' || p.code != "syntax" || n < 1 || s.levels[n].at < s.line || s.levels[n].kind != '$' && s.levels[n].kind != '%' {
		return p
	}
	if text := s.src[s.top().at+1:]; !endsLine(bytes.TrimLeft(text, " \t")) {
		return p
	}
	at, sign := s.levels[n].at, s.levels[n].kind
	return &scanProblem{"syntax", at, at + 2, fmt.Sprintf(`this "%c{" is never closed`, sign), fmt.Sprintf(`add the "}" that ends it, or write %c%c{ for the text %c{`, sign, sign, sign)}
}

// textEnd returns where a line ends that ends a string from an earlier line,
// with lines between that begin nothing, or at when there is none.
func (r *reader) textEnd(at int) int {
	next := at
	for range maxTextLines {
		next += lineLength(r.src[next:])
		length := lineLength(r.src[next:])
		line := bytes.TrimSpace(r.src[next : next+length])
		start := next + bytes.Index(r.src[next:next+length], line)
		if len(line) == 0 || bytes.IndexByte([]byte("}])#/"), line[0]) >= 0 || startsItem(r.src, start) || r.definition(start) {
			return at
		}
		if quote := bytes.IndexByte(line, '"'); quote >= 0 {
			if quote == len(line)-1 && quote > 0 && line[quote-1] != ' ' {
				return start + len(line)
			}
			return at
		}
	}
	return at
}
