package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Printer writes diagnostics the way a compiler does: the place, what is
// wrong, the source line with the range underlined, what to do, and notes.
//
//	tools.d/crm.hcl:3:3: error: a tool block has no argument "desciption"
//	  3 |   desciption = "Looks a customer up."
//	    |   ^^^^^^^^^^
//	    = did you mean "description"?
type Printer struct {
	// Sources maps files to their bytes. Of a file that it lacks, no line is shown.
	Sources map[string][]byte
	// Color asks for ANSI colours, for a terminal.
	Color bool
}

// ANSI sequences.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	blue   = "\x1b[1;34m"
	reset  = "\x1b[0m"
)

// Print writes the list in its order, a blank line between diagnostics. What
// a file holds cannot move the terminal: control and bidirectional characters
// are replaced.
func (p Printer) Print(w io.Writer, l List) error {
	var b bytes.Buffer
	for i, d := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.diagnostic(&b, d)
		if _, err := b.WriteTo(w); err != nil {
			return fmt.Errorf("print diagnostics: %w", err)
		}
	}
	return nil
}

func (p Printer) diagnostic(b *bytes.Buffer, d Diagnostic) {
	if where := d.Range.String(); where != "" {
		fmt.Fprintf(b, "%s: ", p.paint(bold, Printable(where)))
	}
	color := red
	if d.Severity == Warning {
		color = yellow
	}
	fmt.Fprintf(b, "%s %s\n", p.paint(color, d.Severity.String()+":"), p.paint(bold, PrintableLines(d.Summary, "    ")))
	gutter := len(fmt.Sprint(d.Range.Start.Line))
	if line, ok := cut(p.Sources[d.Range.File], d.Range); ok {
		fmt.Fprintf(b, "%s %s\n", p.paint(blue, fmt.Sprintf("  %*d |", gutter, d.Range.Start.Line)), line.text)
		fmt.Fprintf(b, "%s %s%s\n", p.paint(blue, fmt.Sprintf("  %*s |", gutter, "")), line.indent, p.paint(color, line.underline))
	}
	if d.Detail != "" {
		p.remark(b, gutter, d.Detail)
	}
	for _, n := range d.Notes {
		p.remark(b, gutter, note(n))
	}
}

func note(n Note) string {
	if where := n.Range.String(); where != "" {
		return fmt.Sprintf("note: %s: %s", where, n.Message)
	}
	return "note: " + n.Message
}

// remark writes text beside the gutter; its further lines stand below its first.
func (p Printer) remark(b *bytes.Buffer, gutter int, text string) {
	fmt.Fprintf(b, "  %*s %s %s\n", gutter, "", p.paint(blue, "="), PrintableLines(text, strings.Repeat(" ", gutter+5)))
}

func (p Printer) paint(color, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return color + s + reset
}
