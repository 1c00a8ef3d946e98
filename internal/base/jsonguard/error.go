package jsonguard

import "fmt"

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
