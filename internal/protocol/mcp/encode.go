package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD. Nothing is escaped for the sake of HTML.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			if b < ' ' || b == '"' || b == '\\' {
				dst = appendEscape(append(dst, s[start:i]...), b)
				start = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + 1
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
}

// appendMember appends a member with its comma, unless it is the first of the object.
func appendMember(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	return append(appendString(dst, name), ':')
}

// appendText appends a member that is a string.
func appendText(dst []byte, name, value string) []byte {
	return appendString(appendMember(dst, name), value)
}

// appendOptional appends a member that is a string, unless it is empty.
func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendText(dst, name, value)
}

// appendTexts appends a member that is a list of strings, unless it is empty.
func appendTexts(dst []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	dst = append(appendMember(dst, name), '[')
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, value)
	}
	return append(dst, ']')
}

// appendValue appends a member that is JSON already, and null when it is empty.
func appendValue(dst []byte, name string, value []byte) []byte {
	return appendRaw(appendMember(dst, name), value)
}

// appendRaw appends JSON, on one line whatever its author wrote: stdio frames
// and SSE events end at a line break.
func appendRaw(dst, value []byte) []byte {
	if len(value) == 0 {
		return append(dst, "null"...)
	}
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(dst, value...)
	}
	var line bytes.Buffer
	if json.Compact(&line, value) != nil {
		return append(dst, "null"...)
	}
	return append(dst, line.Bytes()...)
}
