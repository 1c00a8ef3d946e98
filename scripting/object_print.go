package scripting

import (
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

// opConsole is the operation by which a body says what it prints.
const opConsole = "console"

// printed is the payload of that. Trace is for the operator alone.
type printed struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	Trace   string `json:"trace,omitempty"`
}

// makePrinter makes console of code, whose methods all print.
func (r *run) makePrinter() *goja.Object {
	o := r.rt.NewObject()
	for _, name := range consoleMethods() {
		r.method(o, name, func(c goja.FunctionCall) goja.Value { return r.print(name, c.Arguments) })
	}
	return o
}

// print adds a line to what the call has printed. The line that is beyond its bound
// is cut, and says so; what comes behind it goes nowhere.
func (r *run) print(method string, values []goja.Value) goja.Value {
	r.proceed()
	left := r.limits.Stdout - r.stdout
	if left <= 0 {
		return goja.Undefined()
	}
	line := r.inspectLine(values, min(left, maxLogMessage))
	if len(line) >= left {
		line = truncate.Start(line, left-1) + cutMark(r.limits.Stdout)
		left = 0
	} else {
		left -= len(line) + len("\n")
	}
	r.stdout = r.limits.Stdout - left
	r.tellPrinted(mustJSON(printed{Level: consoleLevel(method), Message: line}), line+"\n")
	return goja.Undefined()
}

// cutMark is what the last line ends with when there is no room for more.
func cutMark(most int) string {
	return fmt.Sprintf(" … [cut: what code prints may have %d bytes]", most)
}

// inspectLine returns values as console shows them, side by side, in a little more
// than so many bytes.
func (r *run) inspectLine(values []goja.Value, most int) string {
	in := inspector{r: r, most: most}
	for i, v := range values {
		r.proceed()
		if i > 0 {
			in.out = append(in.out, ' ')
		}
		if _, text := v.(goja.String); text {
			in.shown(v)
		} else {
			in.value(v)
		}
		if in.full() {
			break
		}
	}
	return truncate.Text(strings.ToValidUTF8(string(in.out), "\uFFFD"), max(most+1, truncate.Least))
}
