package hclfile

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

// jsonText decodes the JSON string whose first byte after the quote is at
// start. It returns the offset behind the closing quote.
func jsonText(f *File, src string, start int) (diag.Text, int) {
	b := diag.TextBuilder{File: f.path}
	length, escapes := measureJSON(src[start:])
	b.Grow(length, 2*escapes+1)
	at, pos := start, f.pos(start)
	for {
		n := strings.IndexAny(src[at:], `"\`)
		if n < 0 {
			n = len(src) - at
		}
		if n > 0 || at == start || at >= len(src) || src[at] == '"' { // the end has a place too
			b.Add(src[at:at+n], pos)
			pos = diag.Advance(pos, src[at:at+n])
		}
		at += n
		if at >= len(src) || src[at] == '"' {
			return b.Text(), min(at+1, len(src))
		}
		size := escapeSize(src[at:])
		b.Add(unescapeJSON(src[at:at+size]), pos)
		pos = diag.Advance(pos, src[at:at+size])
		at += size
	}
}

// measureJSON returns the length of the rest of a JSON string up to its quote,
// and how many escapes are in it.
func measureJSON(s string) (length, escapes int) {
	for {
		n := strings.IndexAny(s[length:], `"\`)
		if n < 0 {
			return len(s), escapes
		}
		length += n
		if s[length] == '"' {
			return length, escapes
		}
		length = min(length+escapeSize(s[length:]), len(s))
		escapes++
	}
}

// unicodeEscape is the length of \uXXXX.
const unicodeEscape = 6

// escapeSize returns the length of the escape that s begins with; both halves
// of a surrogate pair are one.
func escapeSize(s string) int {
	const short = 2
	if len(s) < unicodeEscape || s[1] != 'u' {
		return min(short, len(s))
	}
	if utf16.IsSurrogate(hexRune(s)) && len(s) >= 2*unicodeEscape {
		return 2 * unicodeEscape
	}
	return unicodeEscape
}

// unescapeJSON returns the text of one escape of a text that passed the gate.
func unescapeJSON(escape string) string {
	const letters, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(letters, escape[len(escape)-1]); len(escape) == 2 && i >= 0 {
		return meanings[i : i+1]
	}
	first := hexRune(escape)
	if len(escape) > unicodeEscape {
		return string(utf16.DecodeRune(first, hexRune(escape[unicodeEscape:])))
	}
	return string(first)
}

// hexRune returns what \uXXXX stands for, and half of a pair by itself.
func hexRune(escape string) rune {
	if len(escape) < unicodeEscape {
		return utf8.RuneError
	}
	r, err := strconv.ParseUint(escape[2:unicodeEscape], 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(r)
}
