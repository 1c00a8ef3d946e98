package scripting

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// maxLogMessage limits the message and the fields of one log record, in bytes each.
const maxLogMessage = 64 << 10

// maxTraces limits the number of errors with stacks in one record.
const maxTraces = 4

// Warn logs a warning for the operator.
func (r *execution) Warn(message string) {
	r.notifyHost(OpConsole, mustJSON(printed{Level: "warn", Message: message}))
}

func (r *execution) logRecord(level string, c goja.FunctionCall) []byte {
	record := struct {
		Level   string          `json:"level"`
		Message string          `json:"message"`
		Fields  json.RawMessage `json:"fields,omitempty"`
		Trace   string          `json:"trace,omitempty"`
	}{Level: level, Message: truncate.Text(r.displayText(c.Argument(0)), maxLogMessage), Trace: r.errorTraces(c.Arguments)}
	if fields := c.Argument(1); !builtins.IsNothing(fields) {
		record.Fields = r.encodePayload(fields)
	}
	return mustJSON(record)
}

// errorTraces returns the stacks of the errors among values, for the operator only.
func (r *execution) errorTraces(values []goja.Value) string {
	var stacks []string
	for _, v := range values {
		if o, ok := v.(*goja.Object); ok && o.ClassName() == "Error" && len(stacks) < maxTraces {
			stacks = append(stacks, FormatStack(r.causeFrames(o), ""))
		}
	}
	return truncate.Text(strings.Join(stacks, "\n"), maxLogMessage)
}

// encodePayload returns the JSON of a value for the host, within the limits of a log record. Values
// that JSON cannot hold are errors of the script.
func (r *execution) encodePayload(v goja.Value) []byte {
	e := jsvalue.NewEncoder(maxLogMessage, 16, r.Stopped)
	e.BigInts = true
	wrote, err := e.Encode(v)
	if err != nil {
		panic(r.Throwable(err))
	}
	if !wrote {
		return []byte("null")
	}
	return e.Out
}

func consoleLevel(name string) string {
	switch name {
	case "log":
		return "info"
	case "trace":
		return "debug"
	}
	return name
}

// consoleLine joins values like console.
func (r *execution) consoleLine(values []goja.Value) string {
	var b strings.Builder
	for i, v := range values {
		r.Proceed()
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(r.displayText(v))
		if b.Len() > maxLogMessage {
			break
		}
	}
	return truncate.Text(b.String(), maxLogMessage)
}

// displayText returns a value as text for people.
func (r *execution) displayText(v goja.Value) string {
	o, ok := v.(*goja.Object)
	if !ok {
		return builtins.TextOf(v)
	}
	if o.ClassName() == "Error" {
		return builtins.TextOf(o.Get("name")) + ": " + builtins.TextOf(o.Get("message"))
	}
	e := jsvalue.NewEncoder(maxLogMessage, 16, r.Stopped)
	e.BigInts = true
	if wrote, err := e.Encode(o); err != nil || !wrote {
		return "[" + o.ClassName() + "]"
	}
	return string(e.Out)
}

// progress is progress(done, total, message).
func (r *execution) progress(c goja.FunctionCall) goja.Value {
	done, ok := jsvalue.Finite(c.Argument(0))
	if !ok {
		panic(r.TypeError("progress(done, total, message): done must be a number"))
	}
	report := struct {
		Done    float64  `json:"done"`
		Total   *float64 `json:"total,omitempty"`
		Message string   `json:"message,omitempty"`
	}{Done: done}
	if total, ok := jsvalue.Finite(c.Argument(1)); ok {
		report.Total = &total
	}
	if message := c.Argument(2); !builtins.IsNothing(message) {
		report.Message = truncate.Text(r.displayText(message), maxLogMessage)
	}
	r.notifyHost(OpProgress, mustJSON(report))
	return goja.Undefined()
}

func (r *execution) disconnect(goja.FunctionCall) goja.Value {
	r.notifyHost(OpDisconnect, []byte("{}"))
	return goja.Undefined()
}

// printed is the payload of [OpConsole]. Trace is for the operator only.
type printed struct {
	Level   string `json:"level"`
	Message string `json:"message"`
	Trace   string `json:"trace,omitempty"`
}

// print adds a line to the output of the call. A line that exceeds the limit is truncated and
// marked; later lines are dropped.
func (r *execution) print(method string, values []goja.Value) goja.Value {
	r.Proceed()
	left := r.journal.limits.Stdout - r.stdout
	if left <= 0 {
		return goja.Undefined()
	}
	line := r.InspectLine(values, min(left, maxLogMessage))
	if len(line) >= left {
		line = truncate.Start(line, left-1) + truncationMark(r.journal.limits.Stdout)
		left = 0
	} else {
		left -= len(line) + len("\n")
	}
	r.stdout = r.journal.limits.Stdout - left
	r.notifyPrinted(mustJSON(printed{Level: consoleLevel(method), Message: line}), line+"\n")
	return goja.Undefined()
}

// truncationMark is the end of the last line if the output exceeds its limit.
func truncationMark(limit int) string {
	return fmt.Sprintf(" … [cut: what code prints may have %d bytes]", limit)
}
