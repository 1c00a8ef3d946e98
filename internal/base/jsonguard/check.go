// Package jsonguard validates untrusted JSON text before any decoder sees it.
//
// [Check] scans the text once, without recursion and without building a value. It
// rejects, with an [Error], everything that a decoder might fail on or interpret
// differently from another decoder: text above the [Limits], text that is not exactly
// one JSON value of RFC 8259, invalid UTF-8, duplicate member names, and numbers
// outside the range of a float64.
//
// The package does not decode, knows no schemas, and never includes the text in an
// error.
//
// It is written by hand because encoding/json accepts duplicate names, replaces invalid
// UTF-8, and has no limit for depth or tokens.
package jsonguard

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Check returns nil if data is exactly one JSON value within the limits, and otherwise
// an [*Error] for the first problem. It takes time linear in the length of data, and
// does not allocate for objects with up to 16 names without escapes.
//
// All decoders read accepted text in the same way: it is valid UTF-8 without lone
// surrogates, no member name occurs twice (compared after unescaping), and no number
// overflows a float64. A number too small for a float64 is accepted: every decoder
// reads zero.
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

// invalidAt returns the offset of the first invalid UTF-8 byte.
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

// IsObject reports whether raw is a JSON object.
func IsObject(raw []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) }

// Limits bound the text that [Check] accepts. A zero or negative field means the value
// of [Client]; a limit cannot be disabled.
type Limits struct {
	// Bytes is the maximum length of the text.
	Bytes int
	// Depth is the maximum nesting of arrays and objects.
	Depth int
	// Tokens is the maximum number of structural characters []{}:, outside of strings
	// (RFC 8259 section 2).
	Tokens int
	// Halves permits escapes of lone surrogates, which scripts can produce.
	Halves bool
}

// Client returns the limits for client input: 4 MiB, 32 levels, 50,000 tokens.
func Client() Limits { return Limits{Bytes: 4 << 20, Depth: 32, Tokens: 50_000} }

// withDefaults returns the limits with defaults for unset fields.
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

// Kind is the reason for a rejection by [Check].
type Kind int

// Kinds of errors.
const (
	// Syntax: the text violates the grammar of RFC 8259, or has no value.
	Syntax Kind = iota + 1
	// TooLarge: the text is longer than [Limits].Bytes.
	TooLarge
	// TooDeep: arrays and objects are nested deeper than [Limits].Depth.
	TooDeep
	// TooMany: the text has more structural characters than [Limits].Tokens.
	TooMany
	// BadUTF8: the text is not UTF-8 (RFC 3629), or an escape is a lone surrogate (RFC
	// 8259 section 8.2).
	BadUTF8
	// DuplicateKey: an object has two members with one name (RFC 8259 section 4).
	DuplicateKey
	// Trailing: the value is followed by something other than white space.
	Trailing
	// BadNumber: a number is outside the range of a float64 (RFC 8259 section 6).
	BadNumber
)

// Error is an error of [Check].
type Error struct {
	// Kind is the reason.
	Kind Kind
	// Offset is the number of bytes before the problem.
	Offset int
	// Limit is the exceeded limit, or 0 for kinds without one.
	Limit int
	// Message describes the problem. It never contains the text.
	Message string
}

// Error returns the message and the offset.
func (e *Error) Error() string { return fmt.Sprintf("%s (at byte %d)", e.Message, e.Offset) }

func syntax(at int, message string) *Error {
	return &Error{Kind: Syntax, Offset: at, Message: message}
}

func limited(kind Kind, at, limit int, format string) *Error {
	return &Error{Kind: kind, Offset: at, Limit: limit, Message: fmt.Sprintf(format, limit)}
}
