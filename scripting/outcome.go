package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

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

// FailureKind says why a call has no result.
type FailureKind int

const (
	// Thrown is an exception that the body did not catch.
	Thrown FailureKind = iota
	// ToolError is an uncaught ToolError; Details may be set.
	ToolError
	// RPCError is an uncaught RpcError; RPCCode is set and Details may be.
	RPCError
	// Timeout is a deadline that passed.
	Timeout
	// Canceled is a call that nobody waits for any more.
	Canceled
	// Limit is a bound of [Limits] that was met; Limit names it.
	Limit
	// HostPanic is a Host.Do that panicked.
	HostPanic
	// Nondeterministic is a replay that asked for something else than its journal holds.
	Nondeterministic
	// CapabilityError is an uncaught CapabilityError: the body asked what no
	// client of the call can answer. Details is {"requiredCapabilities": {…}}.
	CapabilityError
	// AskDenied is an uncaught AskDenied: who was asked declined or dismissed
	// the question. Details is {"reason": "declined"} or {"reason": "cancelled"}.
	AskDenied
)

// Failure is why a call has no result. As an error it is the operator's: it
// tells the places of the stack.
type Failure struct {
	Kind FailureKind
	// Message is, for what was thrown, exactly its message; otherwise a sentence that names the limit or the reason.
	Message string
	// Details is JSON, or nil.
	Details []byte
	// RPCCode is the JSON-RPC code of an RpcError.
	RPCCode int
	// Stack is where the error was made, innermost frame first, in places of
	// the author's files.
	Stack []Frame
	// Limit names the bound that was met, such as "output".
	Limit string
	// Name is what the error calls itself that code threw, such as TypeError. Tool is
	// the tool whose call has failed, and Code why, when that is what was thrown.
	// Failures of others have none of them.
	Name, Tool, Code string
}

// Error returns the message and the stack, innermost frame first.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Message)
	for _, frame := range f.Stack {
		b.WriteString("\n" + frame.Trace("    "))
	}
	return b.String()
}

// RequiredCapabilities returns those that the details of a CapabilityError name,
// as a JSON object.
func (f *Failure) RequiredCapabilities() json.RawMessage {
	var details struct{ RequiredCapabilities json.RawMessage }
	if json.Unmarshal(f.Details, &details) != nil || details.RequiredCapabilities == nil {
		return json.RawMessage("{}")
	}
	return details.RequiredCapabilities
}

// Frame is one call on the stack of a failure.
type Frame struct {
	// Function is empty for the body itself.
	Function string
	Range    diag.Range
	// Excerpt is the line that the author wrote and one that underlines the
	// place in it, for the innermost frame of a body, and else empty.
	Excerpt string
}

// StackOf returns the stack of the script failure that an error wraps, innermost frame
// first. It is nil if the error wraps no [*Failure].
func StackOf(err error) []Frame {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Stack
	}
	return nil
}

// Trace returns the frame as people read it, each line behind the indent.
func (f Frame) Trace(indent string) string {
	function := f.Function
	if function == "" {
		function = "body"
	}
	text := fmt.Sprintf("%sat %s (%s)", indent, function, f.Range)
	if f.Excerpt == "" {
		return text
	}
	indent += "  "
	return text + "\n" + indent + strings.ReplaceAll(f.Excerpt, "\n", "\n"+indent)
}

// Traces returns frames as people read them, one behind the other.
func Traces(frames []Frame, indent string) string {
	lines := make([]string, len(frames))
	for i, frame := range frames {
		lines[i] = frame.Trace(indent)
	}
	return strings.Join(lines, "\n")
}

// String returns the name of the kind.
func (k FailureKind) String() string {
	names := [...]string{"Thrown", "ToolError", "RPCError", "Timeout", "Canceled", "Limit", "HostPanic", "Nondeterministic", "CapabilityError", "AskDenied"}
	if k < 0 || int(k) >= len(names) {
		return "Unknown"
	}
	return names[k]
}

// The binary form of an outcome is a tag, and for a result its kind, the value,
// and the content with their lengths in front; for what is rarer, JSON.
const (
	outcomeResult = iota
	outcomeFailure
	outcomeSuspended
)

// errOutcome says that bytes are no outcome. It repeats none of them.
var errOutcome = errors.New("not an outcome")

// AppendBinary appends the outcome as bytes.
func (o Outcome) AppendBinary(dst []byte) ([]byte, error) {
	if r := o.Result; r != nil {
		w := journalWriter{out: append(dst, outcomeResult)}
		w.numbers(int(r.Kind), len(r.JSON))
		w.out = append(w.out, r.JSON...)
		return append(w.out, r.Content...), nil
	}
	tag, value := byte(outcomeSuspended), any(o.Suspended)
	if o.Failure != nil {
		tag, value = outcomeFailure, o.Failure
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode an outcome: %w", err)
	}
	return append(append(dst, tag), text...), nil
}

// OutcomeJSON returns the JSON that [Outcome.UnmarshalBinary] would decode, which who
// does not trust data lets through a gate before: nil where there is none.
func OutcomeJSON(data []byte) []byte {
	if len(data) > 0 && (data[0] == outcomeFailure || data[0] == outcomeSuspended) {
		return data[1:]
	}
	return nil
}

// UnmarshalBinary makes the outcome what [Outcome.AppendBinary] has appended.
// That what is JSON is JSON is for others to check. The outcome keeps data.
func (o *Outcome) UnmarshalBinary(data []byte) error {
	if len(data) == 0 {
		return errOutcome
	}
	var read Outcome
	switch tag, rest := data[0], data[1:]; tag {
	case outcomeResult:
		r := journalReader{rest: rest}
		kind, ok := r.number(int(Content))
		value, has := r.text(math.MaxInt32)
		if !ok || !has {
			return errOutcome
		}
		read.Result = &Result{Kind: ResultKind(kind), JSON: value}
		if read.Result.Kind == Content {
			read.Result.Content = r.rest
		}
	case outcomeFailure:
		read.Failure = &Failure{}
		if json.Unmarshal(rest, read.Failure) != nil || len(read.Failure.Stack) > maxFrames {
			return errOutcome
		}
	case outcomeSuspended:
		if json.Unmarshal(rest, &read.Suspended) != nil || len(read.Suspended) == 0 {
			return errOutcome
		}
	default:
		return errOutcome
	}
	*o = read
	return nil
}

var errBlocks = errors.New("its blocks change while they are read")

// areTyped reports whether each of an array of blocks names its type.
func areTyped(content []byte) bool {
	var blocks []struct{ Type string }
	if json.Unmarshal(content, &blocks) != nil {
		return false
	}
	return !slices.ContainsFunc(blocks, func(b struct{ Type string }) bool { return b.Type == "" })
}

// structured is what content.structured returned: a value beside its blocks.
type structured struct {
	value  goja.Value
	blocks goja.Value
}

var errBytes = errors.New("it is bytes; return content.image, content.audio or content.resource of them, or Array.from(bytes)")

// result makes the call's result of what the body returned.
func (r *run) result(value goja.Value) (result *Result, failure *Failure) {
	problem := r.guarded("the result cannot be returned", func() (err error) {
		result, err = r.read(value)
		return err
	})
	if problem != nil {
		return nil, problem
	}
	return result, nil
}

// guarded runs f, which may run user code, and makes a failure of what it
// throws and of what it returns; what says what cannot be done then.
func (r *run) guarded(what string, f func() error) *Failure {
	var err error
	var thrown *goja.Exception
	failure := r.safely(func() {
		thrown = r.Runtime.Try(func() { err = f() })
	})
	var unfit *jsvalue.EncodeError
	switch {
	case failure != nil:
		return failure
	case thrown != nil:
		return r.thrownAt(thrown.Value(), thrown.Stack())
	case r.failure != nil:
		return r.failure
	case errors.As(err, &unfit) && unfit.Limit != "":
		return limitFailure(unfit.Limit, "the result is too large: "+unfit.Message)
	case errors.Is(err, jsvalue.ErrStopped):
		return Over(r.ctx)
	case err != nil:
		return &Failure{Kind: Thrown, Message: what + ": " + err.Error()}
	}
	return nil
}

func (r *run) read(value goja.Value) (*Result, error) {
	if rich, ok := r.richOf(value); ok {
		return r.readRich(rich)
	}
	if lifted, ok := r.lift(value); ok {
		return r.readRich(lifted)
	}
	if _, bytes := r.BytesOf(value); bytes {
		// As JSON it would be an object with a member for each byte.
		return nil, errBytes
	}
	out, err := r.Encode(value, r.Program.Source.BigIntResult)
	if err != nil {
		return nil, err
	}
	switch {
	case out == nil:
		return &Result{Kind: Nothing}, nil
	case out[0] == '"':
		return &Result{Kind: Text, JSON: out}, nil
	}
	return &Result{Kind: Value, JSON: out}, nil
}

// richOf returns the content that the value is: what content.structured
// returned, one block, or an array of blocks.
func (r *run) richOf(value goja.Value) (structured, bool) {
	o, ok := value.(*goja.Object)
	if !ok || r.blocks == nil && r.rich == nil {
		return structured{}, false
	}
	if rich, ok := r.rich[o]; ok {
		return rich, true
	}
	if r.isOwnBlock(o) || r.onlyBlocks(o) {
		return structured{blocks: value}, true
	}
	return structured{}, false
}

// onlyBlocks reports whether o is an array of blocks, and not empty.
func (r *run) onlyBlocks(o *goja.Object) bool {
	if jsvalue.KindOf(o) != jsvalue.Array {
		return false
	}
	length := jsvalue.LengthOf(o)
	if length == 0 || length > int64(r.book.limits.Output) {
		return false
	}
	for i := range length {
		r.Proceed()
		block, ok := o.Get(builtins.Index(i)).(*goja.Object)
		if !ok || !r.isOwnBlock(block) {
			return false
		}
	}
	return true
}

// isOwnBlock reports whether an object is a block that the body made, or that a tool
// has answered and code has left one.
func (r *run) isOwnBlock(o *goja.Object) bool {
	return r.blocks[o] && (r.Program.Kind != Code || isBlock(o))
}

func (r *run) readRich(rich structured) (*Result, error) {
	content, err := r.JSON(rich.blocks)
	if err != nil {
		return nil, err
	}
	if content == nil {
		content = []byte("[]")
	}
	if content[0] == '{' {
		content = append(append([]byte{'['}, content...), ']')
	}
	if r.Program.Kind == Code && !areTyped(content) {
		return nil, errBlocks
	}
	result := &Result{Kind: Content, Content: content}
	if rich.value != nil {
		result.JSON, err = r.Encode(rich.value, r.Program.Source.BigIntResult)
	}
	return result, err
}
