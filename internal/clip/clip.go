// Package clip shortens texts and marks those that it has shortened.
//
// The end of a shortened text may stand within a value that nobody may see, of which the
// rest is gone: who hides values in texts sees by the mark that the end is to go, too.
package clip

import "strings"

// mark ends a text that was shortened.
const mark = " … [cut]"

// Text returns a text of most bytes at most, which ends in the mark where it is shortened.
// It breaks no character.
func Text(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Start(text, max(0, most-len(mark))) + mark
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

// Cut returns a text without the mark, and whether it has one.
func Cut(text string) (start string, shortened bool) { return strings.CutSuffix(text, mark) }

// Mend returns what may be shown of the start of a text that was shortened, where the
// values to hide, of which none is longer than some bytes, have been taken out already: a
// part of one may be left at its end.
func Mend(start string, longest int) string {
	return Start(start, max(0, len(start)-max(0, longest-1))) + mark
}
