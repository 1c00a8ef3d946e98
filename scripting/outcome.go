package scripting

import "time"

// Outcome is the end of a call: exactly one of Result, Failure and Suspended is set.
type Outcome struct {
	// Result is the result of a body that succeeded.
	Result *Result
	// Failure is the reason why the call has no result.
	Failure *Failure
	// Suspended are the asks without which the script cannot continue, in order. Everything else
	// that the script started has ended, and is recorded in the journal. [Journal.Answer] takes the
	// responses; a Run with this journal continues the call.
	Suspended []Ask
	// Stdout is the output of agent code in this run and earlier runs, however the call ended. Each
	// line ends with a newline; [Limits.Stdout] limits the total. Other kinds have no output.
	Stdout string
	// Ran has a bit for each statement of a program with coverage, by its number: bit 0 of byte 0
	// belongs to statement 0. It is set if the statement ran, and may be too short.
	Ran []byte
}

// HasRun reports whether the statement with a number ran.
func (o *Outcome) HasRun(statement int) bool {
	return statement/8 < len(o.Ran) && o.Ran[statement/8]&(1<<(statement%8)) != 0
}

// ResultKind is the kind of a result, for callers that treat kinds differently.
type ResultKind int

const (
	// Nothing is undefined: the script returned no value.
	Nothing ResultKind = iota
	// Text is a string.
	Text
	// Value is any other JSON value.
	Value
	// Content is content blocks, with or without a structured value.
	Content
)

// Result is the result of a script.
type Result struct {
	Kind ResultKind
	// JSON is the value: a JSON string for Text, any other JSON for Value, the structured value or
	// nil for Content, nil for Nothing.
	JSON []byte
	// Content is a JSON array of MCP content blocks; only for Content.
	Content []byte
	// TTL is how long the result stays valid, as declared by its producer; 0 if undeclared. Scripts
	// do not set it.
	TTL time.Duration
}

// Ask is an ask without a response.
type Ask struct {
	// Seq is the number of the host call, for [Journal.Answer].
	Seq int
	// Payload is the payload of the operation ask (see the package documentation).
	Payload []byte
}
