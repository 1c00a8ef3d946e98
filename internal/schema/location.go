package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A segment is one step into a value: a member of an object, or an item of an
// array when index is not negative.
type segment struct {
	name  string
	index int
}

func member(name string) segment { return segment{name: name, index: -1} }
func item(i int) segment         { return segment{index: i} }

// A location leads from the whole value to a part of it.
type location []segment

// longestSegment bounds, in bytes, how much of a name that a caller made up is repeated.
const longestSegment = 128

// pointer returns the location as a JSON pointer (RFC 6901). Names of more
// than 128 bytes are cut short.
func (l location) pointer() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteByte('/')
		if s.index >= 0 {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escapePointer(clip(s.name, longestSegment)))
		}
	}
	return b.String()
}

// escapePointer returns name as it is written in a JSON pointer.
func escapePointer(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// unescapePointer is the reverse of escapePointer.
func unescapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
}

// clip returns s, cut short at a character so that it has at most n bytes
// before the ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
