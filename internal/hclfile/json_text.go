package hclfile

import (
	"encoding/json"
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
	at := start
	for {
		n := strings.IndexAny(src[at:], `"\`)
		if n < 0 {
			n = len(src) - at
		}
		b.Add(src[at:at+n], f.pos(at))
		at += n
		if at >= len(src) || src[at] == '"' {
			return b.Text(), min(at+1, len(src))
		}
		size := escapeSize(src[at:])
		b.Add(unescapeJSON(src[at:at+size]), f.pos(at))
		at += size
	}
}

// escapeSize returns the length of the escape that s begins with; both halves
// of a surrogate pair are one.
func escapeSize(s string) int {
	const short, unicode = 2, 6
	if len(s) < unicode || s[1] != 'u' {
		return min(short, len(s))
	}
	if r, err := strconv.ParseUint(s[2:unicode], 16, 32); err == nil && utf16.IsSurrogate(rune(r)) && len(s) >= 2*unicode {
		return 2 * unicode
	}
	return unicode
}

func unescapeJSON(escape string) string {
	var s string
	if err := json.Unmarshal([]byte(`"`+escape+`"`), &s); err != nil {
		return string(utf8.RuneError)
	}
	return s
}
