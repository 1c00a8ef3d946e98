package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// wording is what is said in the place of a message of HCL's parser.
type wording struct {
	// of is how the message of the parser begins, and within is a part of its
	// detail that tells it from others that begin so.
	of, within      string
	summary, detail string
}

// wordings are in the words of a file of tools; the first that fits is used.
var wordings = []wording{
	{"Invalid block definition", "equals sign", noEqualsHere, `remove the "="`},
	{"Invalid block definition", "delimited by", `the "{" of a block stands on the line of its name`, `write the "{" at the end of this line`},
	{"Invalid single-argument block definition", "also be closed", `a block with an argument behind its "{" ends on the same line`,
		`add the "}" here, or begin a new line behind the "{"`},
	{"Invalid single-argument block definition", "", "a block on one line holds a single argument", `write a new line behind the "{", and each argument on a line of its own`},
	{"Argument definition required", "single-line block", "a block on one line holds a single argument", `write a new line behind the "{"`},
	{"Unterminated template string", "", "a block with a heredoc does not stand on one line", `write a new line behind the "{", and one in front of the "}"`},
	{"Invalid character", "Single quotes", "text does not stand in single quotes", `write "…"`},
	{"Invalid character", "Curly quotes", "these quotes are not straight", `write "…" with straight quotes`},
	{"Invalid character", `The ";" character`, `nothing ends with ";" here`, "remove it, and begin a new line"},
	{"Missing newline after argument", "", "something follows the argument on its line", `begin a new line; within a string a quote is written \"`},
	{"Missing argument separator", "", `a comma or ")" is missing here`, "write it in front of what stands here"},
	{"Missing item separator", "", `a comma or "]" is missing here`, "write it in front of what stands here"},
	{"Missing attribute separator", "", "a comma or a new line is missing here", "write it in front of what stands here"},
	{"Unclosed configuration block", "", "this block is never closed", `add the "}" that ends it, or the one that a block within it lacks`},
}

const (
	noEquals      = `an argument is set with "="`
	noEqualsHere  = `a block has no "="`
	noHeredoc     = "this is not how a heredoc begins"
	noHeredocHint = "write the tag right behind <<, without quotes: <<JS"
)

// withoutText removes what was found behind the first heredoc that begins
// wrong, where its text was read as HCL.
func withoutText(l diag.List) diag.List {
	l = l.Sort()
	if i := slices.IndexFunc(l, func(d diag.Diagnostic) bool { return d.Summary == noHeredoc }); i >= 0 {
		return l[:i+1]
	}
	return l
}

// reword says what HCL's parser has found in words of a file of tools.
func (f *File) reword(d *diag.Diagnostic, summary, detail string) {
	if bare := f.unquoted(d.Range.Start.Byte); bare != "" && summary == "Missing newline after argument" {
		d.Summary, d.Detail = "something follows the argument on its line", bare
		return
	}
	for _, w := range wordings {
		if strings.HasPrefix(summary, w.of) && strings.Contains(detail, w.within) {
			d.Summary, d.Detail = w.summary, w.detail
			return
		}
	}
	from, to := d.Range.Start.Byte, d.Range.End.Byte
	text, after := f.source[from:to], strings.TrimLeft(f.source[to:], " \t")
	switch {
	case summary == badEscape:
		d.Summary, d.Detail = "there is no escape "+text, escapeHint(text)
	case summary == "Invalid expression" && strings.HasPrefix(f.source[from:], "<<"):
		d.Summary, d.Detail = noHeredoc, noHeredocHint
	case summary == "Invalid expression" && strings.HasPrefix(detail, "Expected the start of an expression"):
		d.Summary, d.Detail = "no value stands here", "write text in quotes, a number such as 0.5, true, false, null, [ … ], { … } or var.NAME"
	case summary != "Argument or block definition required":
	case text == "}":
		d.Summary, d.Detail = `no block is open for this "}"`, "remove it, or the one above that ends a block too early"
	case strings.HasPrefix(after, ":"):
		d.Summary, d.Detail = noEquals, "write "+text+" = …, or "+text+" { … } for a block"
	default:
		d.Summary, d.Detail = "this begins neither an argument nor a block", "write name = …, or name { … }"
	}
}

// unquoted says how to write an argument in whose value HCL was lost at a
// byte, if the value begins as text or code that has no quotes does.
func (f *File) unquoted(at int) string {
	line := f.source[strings.LastIndexByte(f.source[:at], '\n')+1 : at]
	name, value, _ := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case name == "run":
		return "write run = <<JS … JS"
	case value == "" || !hclsyntax.ValidIdentifier(value):
		return ""
	}
	return fmt.Sprintf(`text stands in quotes: write %s = "…"`, name)
}

// escapeHint says how to write what a backslash may not begin.
func escapeHint(escape string) string {
	switch {
	case strings.HasPrefix(escape, `\u`), strings.HasPrefix(escape, `\U`):
		return `write \u and four hexadecimal digits, or \U and eight; for a backslash itself write ` + `\` + escape
	case escape == `\'`:
		return `write ' alone`
	case escape == `\$` || escape == `\%`:
		return fmt.Sprintf("write %[1]s alone, and %[1]s%[1]s{ where %[1]s{ is meant as it stands", escape[1:])
	}
	return fmt.Sprintf(`write \%s: in a quoted string a backslash stands twice`, escape)
}
