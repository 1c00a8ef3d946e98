// Package truncate shortens texts and marks those that it has shortened.
//
// The end of a shortened text may stand within a value that nobody may see, of which the
// rest is gone: who hides values in texts sees by the mark that the end is to go, too.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// mark ends a text that was shortened.
const mark = " … [cut]"

// Least is the length in bytes of the shortest text that is shortened so. The mark means
// nothing before: who ends a name in it is to lose none of the name.
const Least = 4 << 10

// earliest is where the mark stands in a text of [Least] bytes, or behind.
const earliest = Least - len(mark) - utf8.UTFMax

// Text returns a text of most bytes at most, which ends in the mark where it is shortened.
// It breaks no character. Less than [Least] are taken for that.
func Text(text string, most int) string {
	most = max(most, Least)
	if len(text) <= most {
		return text
	}
	return Start(text, most-len(mark)) + mark
}

// Start returns the first bytes of a text, most of them at most. It breaks no character.
func Start(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}

// Next returns where the first mark begins in a text, and where it ends, from a place on;
// false where there is none that means anything. Texts that were shortened may have others
// behind them, such as where a body failed.
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
