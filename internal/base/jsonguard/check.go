package jsonguard

import (
	"bytes"
	"unicode/utf8"
)

// Check returns nil when data is exactly one JSON value within the limits, and
// an [*Error] for the first mistake otherwise. It takes time linear in the
// length of data, and no memory for objects of up to 16 plainly written names.
//
// What passes is JSON to every decoder, and the same JSON to each of them: it
// is UTF-8 throughout, has no lone surrogates, no member named twice (names
// are compared after unescaping), and no number that overflows a float64. A
// number too small for a float64 passes: every decoder reads zero.
func Check(data []byte, l Limits) error {
	l = l.withDefaults()
	if len(data) > l.Bytes {
		return limited(TooLarge, l.Bytes, l.Bytes, "the JSON text is longer than the limit of %d bytes")
	}
	if !utf8.Valid(data) {
		return &Error{Kind: BadUTF8, Offset: invalidAt(data), Message: "the JSON text is not valid UTF-8"}
	}
	s := scanner{data: data, limits: l}
	if err := s.text(); err != nil {
		return err
	}
	return nil
}

// invalidAt returns the offset of the first byte that is not UTF-8.
func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// IsObject reports whether JSON is that of an object.
func IsObject(raw []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) }
