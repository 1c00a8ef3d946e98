package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printer prints diagnostics like a compiler: the position, the summary and the code, the source
// line with the range underlined, the detail, and the notes.
//
//	tools.d/crm.hcl:3:3: error: a tool block has no argument "desciption" [unknown-argument]
//	  3 |   desciption = "Looks a customer up."
//	    |   ^^^^^^^^^^
//	    = did you mean "description"?
type Printer struct {
	// Sources maps file names to contents. Without an entry, Print omits the source line.
	Sources map[string][]byte
	// Color enables ANSI colors.
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

// Print writes the list in order, with a blank line between diagnostics. It replaces control
// and bidirectional characters, so that file contents cannot control the terminal.
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
	summary, more, _ := strings.Cut(PrintableLines(d.Summary, "    "), "\n")
	fmt.Fprintf(b, "%s %s", p.paint(color, d.Severity.String()+":"), p.paint(bold, summary))
	if d.Code != "" {
		fmt.Fprintf(b, " [%s]", Printable(d.Code))
	}
	b.WriteByte('\n')
	if more != "" {
		b.WriteString(p.paint(bold, more) + "\n")
	}
	gutter := len(fmt.Sprint(d.Range.Start.Line))
	if line, ok := cut(p.Sources[d.Range.File], d.Range); ok {
		fmt.Fprintf(b, "%s %s\n", p.paint(blue, fmt.Sprintf("  %*d |", gutter, d.Range.Start.Line)), line.text)
		fmt.Fprintf(b, "%s %s%s\n", p.paint(blue, fmt.Sprintf("  %*s |", gutter, "")), line.indent, p.paint(color, line.underline))
	}
	if d.Detail != "" {
		p.detailLine(b, gutter, d.Detail)
	}
	for _, n := range d.Notes {
		p.detailLine(b, gutter, note(n))
	}
}

func note(n Note) string {
	if where := n.Range.String(); where != "" {
		return fmt.Sprintf("note: %s: %s", where, n.Message)
	}
	return "note: " + n.Message
}

// detailLine writes text next to the gutter. Its further lines are indented to its first.
func (p Printer) detailLine(b *bytes.Buffer, gutter int, text string) {
	fmt.Fprintf(b, "  %*s %s %s\n", gutter, "", p.paint(blue, "="), PrintableLines(text, strings.Repeat(" ", gutter+5)))
}

func (p Printer) paint(color, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return color + s + reset
}

// contextBefore and contextAfter bound the part of a line that an excerpt shows, in code points
// before and after the start of the range.
const (
	contextBefore = 80
	contextAfter  = 120
)

// excerpt is a source line and the underline to print below it.
type excerpt struct {
	text, indent, underline string
}

// Excerpt returns the line that holds the byte at start, with its line number in the file, and
// below it a line that underlines the bytes up to end. Control characters are replaced, so that
// the text cannot control the terminal. The result is empty if t is zero.
func (t Text) Excerpt(start, end int) string {
	line := t.Pos(start).Line
	shown, ok := cut([]byte(t.body), Range{Start: Pos{Line: line, Byte: start}, End: Pos{Line: line, Byte: end}})
	if !ok {
		return ""
	}
	gutter := len(fmt.Sprint(line))
	return fmt.Sprintf("%d | %s\n%*s | %s%s", line, shown.text, gutter, "", shown.indent, shown.underline)
}

// cut returns the line of src at the start of r. It returns false if src has no such position.
func cut(src []byte, r Range) (excerpt, bool) {
	at := r.Start.Byte
	if r.Start.Line == 0 || len(src) == 0 || at < 0 || at > len(src) {
		return excerpt{}, false
	}
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	end := len(src)
	if i := bytes.IndexByte(src[at:], '\n'); i >= 0 {
		end = at + i
	}
	if end > at && src[end-1] == '\r' {
		end--
	}
	before, from := clipLeft(src[start:at])
	after, to := clipRight(src[at:end])
	marked := after[:max(0, min(len(after), r.End.Byte-at))]
	x := excerpt{
		text:      from + Printable(string(before)) + Printable(string(after)) + to,
		indent:    blank(from) + blank(Printable(string(before))),
		underline: strings.Repeat("^", max(1, width(Printable(string(marked))))),
	}
	return x, true
}

func clipLeft(b []byte) ([]byte, string) {
	rest := b
	for range contextBefore {
		_, size := utf8.DecodeLastRune(rest)
		rest = rest[:len(rest)-size]
	}
	if len(rest) == 0 {
		return b, ""
	}
	return b[len(rest):], "…"
}

func clipRight(b []byte) ([]byte, string) {
	rest := b
	for range contextAfter {
		_, size := utf8.DecodeRune(rest)
		rest = rest[size:]
	}
	if len(rest) == 0 {
		return b, ""
	}
	return b[:len(b)-len(rest)], "…"
}

// Printable makes a line of untrusted text safe for a terminal: it replaces control and
// bidirectional characters.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) || r == '\u2028' || r == '\u2029' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// PrintableLines is like [Printable] for text of several lines. It keeps line ends and indents
// each line after the first, so that the line cannot pass for other output.
func PrintableLines(s, indent string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n"+indent)
}

// blank returns white space as wide as s. Tabs are kept.
func blank(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteString(strings.Repeat(" ", runeWidth(r)))
		}
	}
	return b.String()
}

func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// wide lists the scripts and symbols that take two terminal cells.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f900, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

// runeWidth returns the number of terminal cells of a rune.
func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	default:
		return 1
	}
}
