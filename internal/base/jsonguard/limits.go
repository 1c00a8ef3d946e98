package jsonguard

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
