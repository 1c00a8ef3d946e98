package scripting

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
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
		failure = limitFailure("call_stack", "calls nest deeper than "+strconv.Itoa(r.book.limits.CallStack))
		failure.Stack = r.frames(overflow.Stack())
	}
	return failure
}

// thrown makes a failure of what a promise was rejected with.
func (r *run) thrown(value goja.Value) *Failure { return r.thrownAt(value, r.stackOf(value)) }

// stackOf returns where an error was made: thrown again, it shows the stack that it has.
func (r *run) stackOf(value goja.Value) []goja.StackFrame {
	return r.Runtime.Try(func() { panic(value) }).Stack()
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
	if r.failure == nil && r.Stopped() {
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
	if exception := r.Runtime.Try(f); exception != nil {
		return &Failure{Kind: Thrown, Message: "an exception whose message cannot be read", Stack: r.frames(exception.Stack())}
	}
	return nil
}

func (r *run) describe(failure *Failure, value goja.Value) {
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
		failure.Message = nullish(builtins.TextOf(o.Get("message")))
		if failure.Message == "" {
			failure.Message = builtins.TextOf(o.Get("name"))
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
	e := jsvalue.NewEncoder(r.book.limits.Output, r.book.limits.Depth, r.Stopped)
	wrote, err := e.Encode(o.Get(made.member))
	details := e.Out
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
	e := jsvalue.NewEncoder(maxMessage, 16, r.Stopped)
	if wrote, err := e.Encode(o); err != nil || !wrote {
		return "an object that is no error"
	}
	return string(e.Out)
}

// frames returns the frames that the author wrote, innermost first.
func (r *run) frames(stack []goja.StackFrame) []Frame {
	var frames []Frame
	from := &r.Program.Origin
	for i := range stack {
		f := &stack[i]
		if len(frames) >= maxFrames {
			break
		}
		at, ok := from.Located(f.Position())
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
	if name == "<anonymous>" {
		return ""
	}
	return name
}

// at returns the place in the author's files where the script is now.
func (r *run) at() []goja.StackFrame { return r.Runtime.CaptureCallStack(maxFrames, nil) }

// maxExplained bounds the mistakes that an agent is told at once.
const maxExplained = 10

// Explain returns the errors in a list as text for the agent that wrote the code:
// of each its kind and place, what is wrong, the line with the place underlined, and
// what to do. It names no file. Ten are told at most.
func Explain(code diag.Text, list diag.List) string {
	var b strings.Builder
	told, more := 0, 0
	for _, d := range list {
		switch {
		case d.Severity != diag.Error:
			continue
		case told == maxExplained:
			more++
			continue
		}
		told++
		b.WriteString(d.Code)
		if at := d.Range.Start; at.Line > 0 {
			fmt.Fprintf(&b, " at %d:%d", at.Line, at.Column)
		}
		b.WriteString(": " + diag.Printable(d.Summary) + "\n")
		first := code.Pos(0).Byte
		if shown := code.Excerpt(d.Range.Start.Byte-first, d.Range.End.Byte-first); shown != "" {
			b.WriteString("  " + strings.ReplaceAll(shown, "\n", "\n  ") + "\n")
		}
		if d.Detail != "" {
			b.WriteString("  " + diag.Printable(d.Detail) + "\n")
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Explain returns the failure as text for the agent whose code has failed: the name
// of the error and its message, the line with the place underlined, and through
// which lines it came there. It names no file.
func (f *Failure) Explain() string {
	var b strings.Builder
	if f.Name != "" {
		b.WriteString(f.Name + ": ")
	}
	b.WriteString(f.Message)
	if f.Code != "" {
		b.WriteString(" (" + f.Code + " of " + f.Tool + ")")
	}
	b.WriteString(f.ofMember())
	for i, frame := range f.Stack {
		at := frame.Range.Start
		fmt.Fprintf(&b, "\n  at %d:%d", at.Line, at.Column)
		if frame.Function != "" {
			b.WriteString(" in " + diag.Printable(frame.Function))
		}
		if i == 0 && frame.Excerpt != "" {
			b.WriteString("\n    " + strings.ReplaceAll(frame.Excerpt, "\n", "\n    "))
		}
	}
	return b.String()
}

// ofLists are members that lists have and texts do not.
var ofLists = []string{"entries", "every", "filter", "find", "findIndex", "flat", "flatMap", "forEach", "join", "keys", "map", "push", "reduce", "reverse", "some", "sort", "values"}

// methodsElsewhere are methods that other languages have, and what is written instead.
var methodsElsewhere = map[string]string{
	"append": "push(x)", "extend": "push(...list)", "format": "a template, `text ${x}`", "items": "Object.entries(x)", "get": "x[name]",
	"upper": "toUpperCase()", "lower": "toLowerCase()", "strip": "trim()", "startswith": "startsWith(x)", "endswith": "endsWith(x)",
	"splitlines": "split(\"\\n\")", "contains": "includes(x)",
}

// ofMember says what to write instead of a method that is not there: of another language, of
// objects, or of a list that text of a tool holds.
func (f *Failure) ofMember() string {
	_, member, _ := strings.Cut(f.Message, "has no member '")
	member, _, found := strings.Cut(member, "'")
	switch instead := methodsElsewhere[member]; {
	case !found:
		return ""
	case instead != "":
		return "; write " + instead
	case member == "keys" || member == "values" || member == "entries":
		return "; of an object write Object." + member + "(x), and of text that holds JSON JSON.parse(…) first"
	case slices.Contains(ofLists, member):
		return "; if it is text that holds JSON, write JSON.parse(…) first"
	}
	return ""
}
