// Package truncate truncates texts and marks the cut.
//
// The end of a truncated text may be the start of a sensitive value. A redactor
// recognizes the mark and removes that end too.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// mark is the end of a truncated text.
const mark = " … [cut]"

// Least is the minimum length in bytes of a truncated text. In a shorter text the mark has
// no meaning, so that a name that ends in it is not shortened.
const Least = 4 << 10

// earliest is the first possible offset of the mark in a truncated text.
const earliest = Least - len(mark) - utf8.UTFMax

// Text returns a text of at most limit bytes, with the mark at its end if it was
// truncated. It does not split characters. limit is at least [Least].
func Text(text string, limit int) string {
	limit = max(limit, Least)
	if len(text) <= limit {
		return text
	}
	return Start(text, limit-len(mark)) + mark
}

// Start returns the start of a text, at most limit bytes. It does not split characters.
func Start(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit]
}

// Next returns the start and the end of the first valid mark at or after from; ok is
// false without one. A truncated text may be followed by other text, such as a stack.
func Next(text string, from int) (begins, ends int, ok bool) {
	from = max(from, earliest)
	if from >= len(text) {
		return 0, 0, false
	}
	at := strings.Index(text[from:], mark)
	if at < 0 {
		return 0, 0, false
	}
	return from + at, from + at + len(mark), true
}
