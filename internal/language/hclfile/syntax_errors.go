package hclfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// badEscape is HCL's message for an unknown escape.
const badEscape = "Invalid escape sequence"

// syntaxProblems converts the errors of HCL's parser for a complete syntax tree: arguments that
// are set twice.
func (f *File) syntaxProblems(found hcl.Diagnostics) diag.List {
	var l diag.List
	for _, p := range found[:min(len(found), maxDiagnostics+1)] {
		l = append(l, f.syntaxProblem(p))
	}
	return l
}

// syntaxProblem converts an error of HCL's parser.
func (f *File) syntaxProblem(p *hcl.Diagnostic) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: "syntax", Range: diag.Range{File: f.path},
		Summary: lowerFirst(p.Summary), Detail: lowerFirst(withoutPositions(p.Detail)),
	}
	if p.Severity == hcl.DiagWarning {
		d.Severity = diag.Warning
	}
	if p.Subject == nil {
		return d
	}
	d.Range = f.rng(*p.Subject)
	if p.Summary == "Attribute redefined" {
		d.Code = "duplicate"
		f.explainDuplicate(&d, p.Subject)
		return d
	}
	f.reword(&d, p.Summary, p.Detail)
	return d
}

// explainDuplicate names the argument that is set twice and its first position.
func (f *File) explainDuplicate(d *diag.Diagnostic, second *hcl.Range) {
	name := f.source[d.Range.Start.Byte:d.Range.End.Byte]
	d.Summary = fmt.Sprintf("the argument %q is set twice", name)
	d.Detail = "keep one of them"
	if f.body == nil {
		return
	}
	if first, ok := bodyAt(f.body, second.Start.Byte).Attributes[name]; ok {
		d.Notes = []diag.Note{{Range: f.rng(first.NameRange), Message: "it is first set here"}}
	}
}

// bodyAt returns the innermost body at an offset.
func bodyAt(body *hclsyntax.Body, offset int) *hclsyntax.Body {
	for _, b := range body.Blocks {
		if b.OpenBraceRange.Start.Byte <= offset && offset < b.CloseBraceRange.End.Byte {
			return bodyAt(b.Body, offset)
		}
	}
	return body
}

// withoutPositions removes " at :line,column-column". HCL's lines exclude heredoc text, and the
// diagnostic has correct ranges.
func withoutPositions(s string) string {
	for {
		before, after, found := strings.Cut(s, " at :")
		if !found {
			return s
		}
		s = before + strings.TrimLeft(after, "0123456789,-")
	}
}

// lowerFirst adapts a message of HCL to our form: it starts in lower case, and a single
// sentence has no period.
func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	next, _ := utf8.DecodeRuneInString(s[size:])
	if unicode.IsUpper(r) && !unicode.IsUpper(next) {
		s = string(unicode.ToLower(r)) + s[size:]
	}
	if !strings.Contains(s, ". ") {
		s = strings.TrimSuffix(s, ".")
	}
	return s
}

// wording replaces a message of HCL's parser.
type wording struct {
	// of is the prefix of the message, and within a distinctive part of its detail.
	of, within      string
	summary, detail string
}

// wordings are the messages for authors; the first match is used.
var wordings = []wording{
	{"Invalid block definition", "equals sign", noEqualsHere, `remove the "="`},
	{"Invalid block definition", "delimited by", `the "{" of a block must be on the line of its name`, `write the "{" at the end of this line, or "=" if it is an argument`},
	{"Invalid single-argument block definition", "also be closed", `a block with an argument after its "{" must end on the same line`,
		`add the "}" here, or start a new line after the "{"`},
	{"Invalid single-argument block definition", "", "a block on one line can have only one argument", `start a new line after the "{" and after each argument`},
	{"Argument definition required", "single-line block", "a block on one line can have only one argument", `start a new line after the "{"`},
	{"Invalid character", "Single quotes", "text cannot be in single quotes", `write "…"`},
	{"Invalid character", "Curly quotes", "these quotes are not straight", `write "…" with straight quotes`},
	{"Invalid character", `The ";" character`, `";" is not allowed here`, "remove it, and start a new line"},
	{"Missing newline after block definition", "", `there is text after the "}" of a block`, "start a new line"},
	{"Missing key/value separator", "", "an object needs name = value", `write "=" after the name, or, for a block, remove the "=" before its "{"`},
	{"Missing newline after argument", "", "there is text after the argument", `start a new line; in a string, write \" for a quote`},
	{"Missing argument separator", "", `a comma or ")" is missing here`, "write it before this text"},
	{"Missing item separator", "", `a comma or "]" is missing here`, "write it before this text"},
	{"Missing attribute separator", "", "a comma or a new line is missing here", "write it before this text"},
	{"Unclosed configuration block", "", "this block is not closed", `add its "}", or the missing "}" of a nested block`},
}

const (
	noEquals      = `an argument needs "="`
	noEqualsHere  = `a block has no "="`
	notBegun      = "this is not an argument or a block"
	notBegunHint  = "write name = …, or name { … }"
	noHeredoc     = "this is not a valid start of a heredoc"
	noHeredocHint = "write the tag directly after <<, without quotes: <<JS"
	// conflictMark starts a line of an unresolved merge conflict.
	conflictMark = "<<<<<<< "
	conflictHint = "resolve the merge conflict: keep one side, and remove the lines that start with <<<<<<<, ======= and >>>>>>>"
)

// reword sets the message for an error of HCL's parser.
func (f *File) reword(d *diag.Diagnostic, summary, detail string) {
	if bare := f.unquoted(d.Range.Start.Byte); bare != "" && summary == "Missing newline after argument" {
		d.Summary, d.Detail = "there is text after the argument", bare
		return
	}
	line := f.source[strings.LastIndexByte(f.source[:d.Range.Start.Byte], '\n')+1:]
	if strings.Contains(detail, "delimited by") {
		line = strings.TrimLeft(line, " \t")
		switch word, labels, _ := heading([]byte(line)); {
		case rules[word] != nil:
		case labels > 1:
			d.Summary, d.Detail = notBegun, notBegunHint
			return
		default:
			start := len(f.source) - len(line)
			d.Range, d.Summary, d.Detail = f.span(start, start+len(word)), noEquals, equalsHint(word)
			return
		}
	}
	if strings.HasPrefix(summary, "Invalid single-argument") && f.endsHeredoc(d.Range.Start.Byte) {
		d.Summary, d.Detail = "a block with a heredoc cannot be on one line", `start a new line after the "{" and before the "}"`
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
	case strings.HasPrefix(line, conflictMark):
		d.Summary, d.Detail, _ = strings.Cut(conflictHint, ": ")
	case summary == badEscape:
		d.Summary, d.Detail = "there is no escape "+text, escapeHint(text)
	case summary == "Invalid expression" && strings.HasPrefix(f.source[from:], "<<"):
		d.Summary, d.Detail = noHeredoc, noHeredocHint
	case summary == "Invalid expression" && strings.HasPrefix(detail, "Expected the start of an expression"):
		d.Summary, d.Detail = "the value is missing", "write text in quotes, a number such as 0.5, true, false, null, [ … ], { … } or var.NAME"
	case summary != "Argument or block definition required":
	case text == "}":
		d.Summary, d.Detail = `this "}" closes no block`, `remove it, or an earlier "}" that closes a block too soon`
	case strings.HasPrefix(after, ":"):
		d.Summary, d.Detail = noEquals, equalsHint(text)
	default:
		d.Summary, d.Detail = notBegun, notBegunHint
	}
}

// endsHeredoc reports whether an offset is on the closing line of a heredoc.
func (f *File) endsHeredoc(at int) bool {
	return slices.ContainsFunc(f.heredocs, func(h heredoc) bool { return h.end <= at && at <= h.end+lineLength([]byte(f.source[h.end:])) })
}

// equalsHint returns how to write an argument, or a block if the name is a block type.
func equalsHint(name string) string {
	if rules[name] == nil {
		return "write " + name + " = …"
	}
	return "write " + name + " = …, or " + name + " { … } for a block"
}

// unquoted returns how to write an argument if its value looks like text or code without
// quotes. at is the offset of HCL's error.
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
	return fmt.Sprintf(`put the text in quotes: write %s = "…"`, name)
}

// escapeHint returns how to write an invalid escape.
func escapeHint(escape string) string {
	switch {
	case strings.HasPrefix(escape, `\u`), strings.HasPrefix(escape, `\U`):
		return `write \u and four hexadecimal digits, or \U and eight; for a backslash, write ` + `\` + escape
	case escape == `\'`:
		return `write ' without a backslash`
	case escape == `\$` || escape == `\%`:
		return fmt.Sprintf("write %[1]s without a backslash, and %[1]s%[1]s{ for a literal %[1]s{", escape[1:])
	}
	return fmt.Sprintf(`write \%s: in a quoted string, write a backslash twice`, escape)
}
