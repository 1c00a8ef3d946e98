package scripting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

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

// ofLists are members that lists have and texts do not.
var ofLists = []string{"entries", "every", "filter", "find", "findIndex", "flat", "flatMap", "forEach", "join", "keys", "map", "push", "reduce", "reverse", "some", "sort", "values"}

// methodsElsewhere are methods that other languages have, and what is written instead.
var methodsElsewhere = map[string]string{
	"append": "push(x)", "extend": "push(...list)", "format": "a template, `text ${x}`", "items": "Object.entries(x)", "get": "x[name]",
	"upper": "toUpperCase()", "lower": "toLowerCase()", "strip": "trim()", "startswith": "startsWith(x)", "endswith": "endsWith(x)",
	"splitlines": "split(\"\\n\")", "contains": "includes(x)",
}
