package scripting

import "time"

// Outcome is how a call ended: exactly one of Result, Failure and Suspended is set.
type Outcome struct {
	Result  *Result
	Failure *Failure
	// Suspended are the asks without whose answers the body cannot go on, in the
	// order of asking. Everything else that the body started has ended, and the
	// journal of the call holds it. [Journal.Answer] takes the answers; a Run
	// with that journal goes on from there.
	Suspended []Ask
	// Stdout is what code has printed in this run and those before it, however the
	// call ended: lines that end with a newline, within [Limits.Stdout]. Others print
	// nothing.
	Stdout string
}

// ResultKind tells the results that callers treat differently apart.
type ResultKind int

const (
	// Nothing is undefined: the body returned no value.
	Nothing ResultKind = iota
	// Text is a string.
	Text
	// Value is any other JSON value.
	Value
	// Content is rich content, with or without a structured value.
	Content
)

// Result is what a body returned.
type Result struct {
	Kind ResultKind
	// JSON is the value: a JSON string for Text, any other JSON for Value, the
	// structured value or nil for Content, nil for Nothing.
	JSON []byte
	// Content is a JSON array of MCP content blocks; only for Content.
	Content []byte
	// TTL is how long whoever made the result says that it stays so; 0 where nobody does.
	// Bodies in JavaScript do not.
	TTL time.Duration
}

// Ask is an ask that waits for its answer.
type Ask struct {
	// Seq is the number of the host call, which [Journal.Answer] takes.
	Seq int
	// Payload is that of the operation ask (see the package documentation).
	Payload []byte
}
