package scripting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// maxExplained limits the errors that are shown to an agent at once.
const maxExplained = 10

// Explain formats the errors in a list for the agent that wrote the code: the code and position of
// each, the message, the line with the range underlined, and the advice. It names no file and shows
// at most ten errors.
func Explain(code diag.Text, list diag.List) string {
	var b strings.Builder
	count, more := 0, 0
	for _, d := range list {
		switch {
		case d.Severity != diag.Error:
			continue
		case count == maxExplained:
			more++
			continue
		}
		count++
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

// Explain formats the failure for the agent that wrote the code: the name of the error and its
// message, the line with the range underlined, and the positions of the call stack. It names no
// file.
func (f *Failure) Explain() string {
	var b strings.Builder
	if f.Name != "" {
		b.WriteString(f.Name + ": ")
	}
	b.WriteString(f.Message)
	if f.Code != "" {
		b.WriteString(" (" + f.Code + " of " + f.Tool + ")")
	}
	b.WriteString(f.memberAdvice())
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

// memberAdvice returns advice for a missing method: of another language, of objects, or of a list in
// the text that a tool returned.
func (f *Failure) memberAdvice() string {
	_, member, _ := strings.Cut(f.Message, "has no member '")
	member, _, found := strings.Cut(member, "'")
	switch instead := foreignMethods[member]; {
	case !found:
		return ""
	case instead != "":
		return "; write " + instead
	case member == "keys" || member == "values" || member == "entries":
		return "; of an object write Object." + member + "(x), and of text that holds JSON JSON.parse(…) first"
	case slices.Contains(listMembers, member):
		return "; if it is text that holds JSON, write JSON.parse(…) first"
	}
	return ""
}

// listMembers are members of lists that strings lack.
var listMembers = []string{"entries", "every", "filter", "find", "findIndex", "flat", "flatMap", "forEach", "join", "keys", "map", "push", "reduce", "reverse", "some", "sort", "values"}

// foreignMethods maps methods of other languages to JavaScript.
var foreignMethods = map[string]string{
	"append": "push(x)", "extend": "push(...list)", "format": "a template, `text ${x}`", "items": "Object.entries(x)", "get": "x[name]",
	"upper": "toUpperCase()", "lower": "toLowerCase()", "strip": "trim()", "startswith": "startsWith(x)", "endswith": "endsWith(x)",
	"splitlines": "split(\"\\n\")", "contains": "includes(x)",
}
