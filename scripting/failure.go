package scripting

import (
	"errors"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

// maxFrames bounds the stack of a failure.
const maxFrames = 32

// maxName bounds the bytes of the name of an error.
const maxName = 100

// maxMessage bounds the bytes of a thrown message.
const maxMessage = 64 << 10

func limitFailure(name, message string) *Failure {
	return &Failure{Kind: Limit, Limit: name, Message: message}
}

// failed makes a failure of an error that the engine returned.
func (r *run) failed(err error) *Failure {
	if failure := r.uncatchable(err); failure != nil {
		return failure
	}
	var exception *goja.Exception
	if errors.As(err, &exception) {
		return r.thrownAt(exception.Value(), exception.Stack())
	}
	return &Failure{Kind: Thrown, Message: err.Error()}
}

// uncatchable makes a failure of an error that no script can catch; nil for others.
func (r *run) uncatchable(err error) *Failure {
	var interrupted *goja.InterruptedError
	var overflow *goja.StackOverflowError
	var failure *Failure
	switch {
	case errors.As(err, &interrupted):
		if failure = r.failure; failure == nil {
			failure = Over(r.ctx)
		}
		if failure != nil && failure.Stack == nil {
			failure.Stack = r.frames(interrupted.Stack())
		}
	case errors.As(err, &overflow):
		failure = limitFailure("call_stack", "calls nest deeper than "+strconv.Itoa(r.limits.CallStack))
		failure.Stack = r.frames(overflow.Stack())
	}
	return failure
}

// thrown makes a failure of what a promise was rejected with.
func (r *run) thrown(value goja.Value) *Failure { return r.thrownAt(value, r.stackOf(value)) }

// stackOf returns where an error was made: thrown again, it shows the stack that it has.
func (r *run) stackOf(value goja.Value) []goja.StackFrame {
	return r.rt.Try(func() { panic(value) }).Stack()
}

// causedAt returns the frames of an error, which its author wrote.
func (r *run) causedAt(o *goja.Object) []Frame {
	if frames := r.frames(r.stackOf(o)); len(frames) > 0 {
		return frames
	}
	return r.frames(r.stacks[o])
}

// thrownAt makes a failure of what was thrown. Of a call that is over it is that: loops of the
// engine end by throwing then.
func (r *run) thrownAt(value goja.Value, stack []goja.StackFrame) *Failure {
	if r.failure == nil && r.stopped() {
		if over := Over(r.ctx); over != nil {
			over.Stack = r.frames(stack)
			return over
		}
	}
	failure := &Failure{Kind: Thrown, Stack: r.frames(stack)}
	problem := r.safely(func() { r.describe(failure, value) })
	if problem != nil {
		return problem
	}
	failure.Message = truncate.Text(failure.Message, maxMessage)
	return failure
}

// safely runs f, which may run user code. What that throws becomes the failure.
func (r *run) safely(f func()) (failure *Failure) {
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
	if exception := r.rt.Try(f); exception != nil {
		return &Failure{Kind: Thrown, Message: "an exception whose message cannot be read", Stack: r.frames(exception.Stack())}
	}
	return nil
}

// describe fills in what the thrown value says.
func (r *run) describe(failure *Failure, value goja.Value) {
	o, ok := value.(*goja.Object)
	if !ok {
		failure.Message = textOf(value)
		return
	}
	if len(failure.Stack) == 0 {
		failure.Stack = r.frames(r.stacks[o])
	}
	made, _ := r.states[o].(*scriptError)
	if r.program.kind == Code && o.ClassName() == "Error" {
		failure.Name = truncate.Start(textOf(o.Get("name")), maxName)
	}
	switch {
	case made != nil:
		failure.Tool, failure.Code = made.tool, made.refusal
		failure.Kind, failure.RPCCode = made.kind, made.code
		failure.Details = r.details(o, made)
		failure.Message = textOf(o.Get("message"))
	case o.ClassName() == "Error":
		failure.Message = nullish(textOf(o.Get("message")))
		if failure.Message == "" {
			failure.Message = textOf(o.Get("name"))
		}
	default:
		failure.Message = r.brief(o)
	}
}

// nullish mends the engine's message about a member of nothing, which says
// undefined also where the value is null, and the one that shows its own structures.
func nullish(message string) string {
	if strings.HasPrefix(message, "Could not convert ") && strings.HasSuffix(message, " to primitive") {
		return "an object cannot be converted to text or a number" // without where it is in memory
	}
	if strings.HasPrefix(message, "Cannot read property '") && strings.HasSuffix(message, "' of undefined") {
		return message + " or null"
	}
	return message
}

// details returns the JSON of the details of an error, nil when it has none.
func (r *run) details(o *goja.Object, made *scriptError) []byte {
	if !made.details {
		return nil
	}
	e := newEncoder(r.limits.Output, r.limits.Depth, r.stopped)
	wrote, err := e.encode(o.Get(made.member))
	details := e.out
	if err != nil || !wrote {
		details = nil
	}
	if made.kind == CapabilityError && (len(details) == 0 || details[0] != '{') {
		details = []byte("{}") // clients are promised an object
	}
	if made.within == "" || details == nil {
		return details
	}
	return []byte(`{"` + made.within + `":` + string(details) + `}`)
}

// brief returns a thrown value that is no error as text: its message if it
// has one, or else its JSON.
func (r *run) brief(o *goja.Object) string {
	if message, ok := o.Get("message").(goja.String); ok {
		return message.String()
	}
	e := newEncoder(maxMessage, 16, r.stopped)
	if wrote, err := e.encode(o); err != nil || !wrote {
		return "an object that is no error"
	}
	return string(e.out)
}

// textOf returns a value as text. Symbols, which refuse to become text, are described.
func textOf(v goja.Value) string {
	if v == nil {
		return ""
	}
	return v.String()
}

// frames returns the frames that the author wrote, innermost first.
func (r *run) frames(stack []goja.StackFrame) []Frame {
	var frames []Frame
	from := &r.program.origin
	for i := range stack {
		f := &stack[i]
		if len(frames) >= maxFrames {
			break
		}
		at, ok := from.located(f.Position())
		if !ok {
			continue
		}
		frame := Frame{Function: functionName(f.FuncName()), Range: at.Range()}
		if len(frames) == 0 {
			frame.Excerpt = at.text.Excerpt(at.start, at.end)
		}
		frames = append(frames, frame)
	}
	return frames
}

func functionName(name string) string {
	if name == "<anonymous>" {
		return ""
	}
	return name
}

// at returns the place in the author's files where the script is now.
func (r *run) at() []goja.StackFrame { return r.rt.CaptureCallStack(maxFrames, nil) }
