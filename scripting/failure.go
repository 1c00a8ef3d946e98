package scripting

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/compiler"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// FailureKind is the reason why a call has no result.
type FailureKind int

const (
	// Thrown is an exception that the script did not catch.
	Thrown FailureKind = iota
	// ToolError is an uncaught ToolError; Details may be set.
	ToolError
	// RPCError is an uncaught RpcError; RPCCode is set and Details may be.
	RPCError
	// Timeout is an exceeded deadline.
	Timeout
	// Canceled is a canceled call.
	Canceled
	// Limit is an exceeded limit of [Limits]. Failure.Limit names it.
	Limit
	// HostPanic is a Host.Do that panicked.
	HostPanic
	// Nondeterministic is a replay that deviated from its journal.
	Nondeterministic
	// CapabilityError is an uncaught CapabilityError: no client of the call has a capability that
	// the script requires. Details is {"requiredCapabilities": {…}}.
	CapabilityError
	// AskDenied is an uncaught AskDenied: the user declined or dismissed the request. Details is
	// {"reason": "declined"} or {"reason": "cancelled"}.
	AskDenied
)

// String returns the name of the kind.
func (k FailureKind) String() string {
	names := [...]string{"Thrown", "ToolError", "RPCError", "Timeout", "Canceled", "Limit", "HostPanic", "Nondeterministic", "CapabilityError", "AskDenied"}
	if k < 0 || int(k) >= len(names) {
		return "Unknown"
	}
	return names[k]
}

// Failure describes why a call has no result. Its Error is for operators: it has the positions of
// the stack.
type Failure struct {
	// Kind is the reason.
	Kind FailureKind
	// Message is exactly the message of a thrown error. For other kinds it is a sentence with the
	// limit or the reason.
	Message string
	// Details is JSON, or nil.
	Details []byte
	// RPCCode is the JSON-RPC code of an RpcError.
	RPCCode int
	// Stack is the call stack of the error, innermost frame first, in the files of the author.
	Stack []Frame
	// Limit names the exceeded limit, such as "output".
	Limit string
	// Name is the name of an error that agent code threw, such as TypeError. If a call of a tool
	// failed, Tool is the tool and Code the error code. Other failures have none of them.
	Name, Tool, Code string
}

// Error returns the message and the stack, innermost frame first.
func (f *Failure) Error() string {
	var b strings.Builder
	b.WriteString(f.Message)
	for _, frame := range f.Stack {
		b.WriteString("\n" + frame.Format("    "))
	}
	return b.String()
}

// RequiredCapabilities returns the capabilities in the details of a CapabilityError, as a JSON
// object.
func (f *Failure) RequiredCapabilities() json.RawMessage {
	var details struct{ RequiredCapabilities json.RawMessage }
	if json.Unmarshal(f.Details, &details) != nil || details.RequiredCapabilities == nil {
		return json.RawMessage("{}")
	}
	return details.RequiredCapabilities
}

// Frame is one call on the stack of a failure.
type Frame struct {
	// Function is empty for the script itself, which Format shows as body.
	Function string
	Range    diag.Range
	// Excerpt is the source line and a line that underlines the range, for the innermost frame of a
	// script; otherwise empty.
	Excerpt string
}

// Format returns the frame as text, each line indented.
func (f Frame) Format(indent string) string {
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

// FormatStack returns frames as text, one after the other.
func FormatStack(frames []Frame, indent string) string {
	lines := make([]string, len(frames))
	for i, frame := range frames {
		lines[i] = frame.Format(indent)
	}
	return strings.Join(lines, "\n")
}

// StackOf returns the stack of the script failure that an error wraps, innermost frame
// first. It is nil if the error wraps no [*Failure].
func StackOf(err error) []Frame {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Stack
	}
	return nil
}

// maxFrames limits the stack of a failure.
const maxFrames = 32

// maxName limits the name of an error, in bytes.
const maxName = 100

// maxMessage limits a thrown message, in bytes.
const maxMessage = 64 << 10

func limitFailure(name, message string) *Failure {
	return &Failure{Kind: Limit, Limit: name, Message: message}
}

// failureOfError returns the failure for an error of the engine.
func (r *execution) failureOfError(err error) *Failure {
	if failure := r.uncatchable(err); failure != nil {
		return failure
	}
	var exception *goja.Exception
	if errors.As(err, &exception) {
		return r.failureAt(exception.Value(), exception.Stack())
	}
	return &Failure{Kind: Thrown, Message: err.Error()}
}

// uncatchable returns the failure for an error that no script can catch; nil for others.
func (r *execution) uncatchable(err error) *Failure {
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	var failure *Failure
	switch {
	case errors.As(err, &interrupted):
		if failure = r.failure; failure == nil {
			failure = ContextFailure(r.ctx)
		}
		if failure != nil && failure.Stack == nil {
			failure.Stack = r.frames(interrupted.Stack())
		}
	case errors.As(err, &overflow):
		failure = limitFailure("call_stack", "calls nest deeper than "+strconv.Itoa(r.journal.limits.CallStack))
		failure.Stack = r.frames(overflow.Stack())
	}
	return failure
}

// failureOf returns the failure for the reason of a rejected promise.
func (r *execution) failureOf(value goja.Value) *Failure { return r.failureAt(value, r.stackOf(value)) }

// stackOf returns the stack of an error. Throwing it again reveals its stack.
func (r *execution) stackOf(value goja.Value) []goja.StackFrame {
	return r.Runtime.Try(func() { panic(value) }).Stack()
}

// causeFrames returns the frames of an error in the files of the author.
func (r *execution) causeFrames(o *goja.Object) []Frame {
	if frames := r.frames(r.stackOf(o)); len(frames) > 0 {
		return frames
	}
	return r.frames(r.stacks[o])
}

// failureAt returns the failure for a thrown value. If the call has ended, it returns the failure
// of the context: loops of the engine end by throwing then.
func (r *execution) failureAt(value goja.Value, stack []goja.StackFrame) *Failure {
	if r.failure == nil && r.Stopped() {
		if over := ContextFailure(r.ctx); over != nil {
			over.Stack = r.frames(stack)
			return over
		}
	}
	failure := &Failure{Kind: Thrown, Stack: r.frames(stack)}
	problem := r.catchThrow(func() { r.describe(failure, value) })
	if problem != nil {
		return problem
	}
	failure.Message = truncate.Text(failure.Message, maxMessage)
	return failure
}

// catchThrow runs f, which may run user code. It returns the failure for an exception.
func (r *execution) catchThrow(f func()) (failure *Failure) {
	defer func() {
		bug := recover()
		if bug == nil {
			return
		}
		err, ok := bug.(error)
		if ok {
			failure = r.uncatchable(err)
		}
		if failure == nil {
			panic(bug)
		}
	}()
	if exception := r.Runtime.Try(f); exception != nil {
		return &Failure{Kind: Thrown, Message: "an exception with an unreadable message", Stack: r.frames(exception.Stack())}
	}
	return nil
}

func (r *execution) describe(failure *Failure, value goja.Value) {
	o, ok := value.(*goja.Object)
	if !ok {
		failure.Message = builtins.TextOf(value)
		return
	}
	if len(failure.Stack) == 0 {
		failure.Stack = r.frames(r.stacks[o])
	}
	made, _ := r.States[o].(*scriptError)
	if r.Program.Kind == Code && o.ClassName() == "Error" {
		failure.Name = truncate.Start(builtins.TextOf(o.Get("name")), maxName)
	}
	switch {
	case made != nil:
		failure.Tool, failure.Code = made.tool, made.refusal
		failure.Kind, failure.RPCCode = made.kind, made.code
		failure.Details = r.details(o, made)
		failure.Message = builtins.TextOf(o.Get("message"))
	case o.ClassName() == "Error":
		failure.Message = fixNullMessage(builtins.TextOf(o.Get("message")))
		if failure.Message == "" {
			failure.Message = builtins.TextOf(o.Get("name"))
		}
	default:
		failure.Message = r.thrownText(o)
	}
}

// fixNullMessage corrects two messages of the engine: one says undefined even if the value is null,
// and one shows internal structures of the engine.
func fixNullMessage(message string) string {
	if strings.HasPrefix(message, "Could not convert ") && strings.HasSuffix(message, " to primitive") {
		return "an object cannot be converted to text or a number" // without the memory address
	}
	if strings.HasPrefix(message, "Cannot read property '") && strings.HasSuffix(message, "' of undefined") {
		return message + " or null"
	}
	return message
}

// details returns the details of an error as JSON; nil if there are none.
func (r *execution) details(o *goja.Object, made *scriptError) []byte {
	if !made.details {
		return nil
	}
	e := jsvalue.NewEncoder(r.journal.limits.Output, r.journal.limits.Depth, r.Stopped)
	wrote, err := e.Encode(o.Get(made.member))
	details := e.Out
	if err != nil || !wrote {
		details = nil
	}
	if made.kind == CapabilityError && (len(details) == 0 || details[0] != '{') {
		details = []byte("{}") // the contract with clients requires an object
	}
	if made.nestedIn == "" || details == nil {
		return details
	}
	return []byte(`{"` + made.nestedIn + `":` + string(details) + `}`)
}

// thrownText returns the text for a thrown value that is not an Error: its message if it has one,
// or its JSON.
func (r *execution) thrownText(o *goja.Object) string {
	if message, ok := o.Get("message").(goja.String); ok {
		return message.String()
	}
	e := jsvalue.NewEncoder(maxMessage, 16, r.Stopped)
	if wrote, err := e.Encode(o); err != nil || !wrote {
		return "an object that is not an Error"
	}
	return string(e.Out)
}

// frames returns the frames in the files of the author, innermost first.
func (r *execution) frames(stack []goja.StackFrame) []Frame {
	var frames []Frame
	from := &r.Program.Origin
	for i := range stack {
		f := &stack[i]
		if len(frames) >= maxFrames {
			break
		}
		at, ok := from.Locate(f.Position())
		if !ok {
			continue
		}
		frame := Frame{Function: functionName(f.FuncName()), Range: at.Range()}
		if len(frames) == 0 {
			frame.Excerpt = at.Text.Excerpt(at.Start, at.End)
		}
		frames = append(frames, frame)
	}
	return frames
}

func functionName(name string) string {
	if name == "<anonymous>" || name == compiler.MainName {
		return ""
	}
	return name
}

// callStack returns the current call stack of the script.
func (r *execution) callStack() []goja.StackFrame { return r.Runtime.CaptureCallStack(maxFrames, nil) }
