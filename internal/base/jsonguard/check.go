// Package jsonguard looks at JSON text from outside before anything else does.
//
// [Check] reads the text once, from front to back, without recursion and
// without building a value, and refuses with an [Error] whatever a decoder
// might choke on or read differently from another decoder: text over the
// [Limits], text that is not exactly one JSON value of RFC 8259, text that is
// not UTF-8, an object that names a member twice, and a number outside the
// range of a float64.
//
// The package does not decode, knows nothing of schemas, and never puts a
// piece of the text into an error.
//
// It is written by hand: encoding/json takes the last of two members of a name, replaces
// what is not UTF-8, and has no bound for depth or tokens.
package jsonguard

import (
	"bytes"
	"fmt"
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

// Limits bound the text that [Check] lets through. A field that is zero or
// negative stands for the same field of [Client]: there is no way to switch a
// limit off.
type Limits struct {
	// Bytes is the greatest length of the text.
	Bytes int
	// Depth is how many arrays and objects may be open at once.
	Depth int
	// Tokens is how many structural tokens, the six characters []{}:, of
	// RFC 8259 section 2 outside strings, the text may hold.
	Tokens int
	// Halves lets strings escape half of a surrogate pair, as those of a script may.
	Halves bool
}

// Client returns the limits for what clients send: 4 MiB, 32 levels, 50,000 tokens.
func Client() Limits { return Limits{Bytes: 4 << 20, Depth: 32, Tokens: 50_000} }

// withDefaults returns the limits with every absent one filled in.
func (l Limits) withDefaults() Limits {
	d := Client()
	d.Halves = l.Halves
	if l.Bytes > 0 {
		d.Bytes = l.Bytes
	}
	if l.Depth > 0 {
		d.Depth = l.Depth
	}
	if l.Tokens > 0 {
		d.Tokens = l.Tokens
	}
	return d
}

// Kind says what [Check] refused a text for.
type Kind int

// The kinds of refusal.
const (
	// Syntax: the text breaks the grammar of RFC 8259, or holds no value at all.
	Syntax Kind = iota + 1
	// TooLarge: the text is longer than [Limits].Bytes.
	TooLarge
	// TooDeep: more arrays and objects are open at once than [Limits].Depth.
	TooDeep
	// TooMany: the text holds more structural tokens than [Limits].Tokens.
	TooMany
	// BadUTF8: the text is not UTF-8 (RFC 3629), or an escape names half of a
	// surrogate pair (RFC 8259 section 8.2).
	BadUTF8
	// DuplicateKey: an object names a member twice (RFC 8259 section 4).
	DuplicateKey
	// Trailing: something other than white space follows the value.
	Trailing
	// BadNumber: a number is outside the range of a float64 (RFC 8259 section 6).
	BadNumber
)

// Error is a refusal by [Check].
type Error struct {
	// Kind says what was refused.
	Kind Kind
	// Offset counts the bytes before the place where the mistake was seen.
	Offset int
	// Limit is the limit that was passed, and 0 for kinds that have none.
	Limit int
	// Message says what is wrong. It never holds a piece of the text.
	Message string
}

// Error returns the message and the place.
func (e *Error) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Message, e.Offset) }

func syntax(at int, message string) *Error {
	return &Error{Kind: Syntax, Offset: at, Message: message}
}

func limited(kind Kind, at, limit int, format string) *Error {
	return &Error{Kind: kind, Offset: at, Limit: limit, Message: fmt.Sprintf(format, limit)}
}
