package openapi

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// maxMatch bounds the text that matching makes of a pattern.
const maxMatch = 500

// matching returns a short text that probably matches a pattern. The caller checks that it does.
func matching(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	writeMatch(&b, parsed)
	return b.String()
}

// maxPatternCost is the maximum size of a compiled pattern.
const maxPatternCost = 2_000

// patternCost estimates the size of a compiled pattern, more than maxPatternCost if RE2 does not
// support it.
func patternCost(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return maxPatternCost + 1
	}
	return sizeOf(parsed)
}

func sizeOf(e *syntax.Regexp) int {
	size := 1 + len(e.Rune)
	for _, part := range e.Sub {
		size += sizeOf(part)
	}
	if e.Op == syntax.OpRepeat {
		size *= max(1, e.Min, e.Max)
	}
	return min(size, maxPatternCost+1)
}

// writeMatch writes a text for an expression, whose depth the parser bounds.
func writeMatch(b *strings.Builder, e *syntax.Regexp) {
	if b.Len() > maxMatch {
		return
	}
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
	case syntax.OpCharClass:
		b.WriteRune(member(e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpPlus:
		writeMatch(b, e.Sub[0])
	case syntax.OpRepeat:
		for range min(e.Min, maxMatch) {
			writeMatch(b, e.Sub[0])
		}
	case syntax.OpConcat, syntax.OpCapture:
		for _, part := range e.Sub {
			writeMatch(b, part)
		}
	case syntax.OpAlternate:
		writeMatch(b, e.Sub[0])
	}
}

// member returns a character of a class, a letter or digit if it has one.
func member(ranges []rune) rune {
	for _, wanted := range "a1A" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= wanted && wanted <= ranges[i+1] {
				return wanted
			}
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		if unicode.IsPrint(ranges[i]) {
			return ranges[i]
		}
	}
	return ' '
}
