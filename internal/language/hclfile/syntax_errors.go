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

// badEscape is what HCL says of an escape that it does not know.
const badEscape = "Invalid escape sequence"

// syntaxProblems translates what HCL's parser reports beside a complete syntax
// tree: arguments that are set twice.
func (f *File) syntaxProblems(found hcl.Diagnostics) diag.List {
	var l diag.List
	for _, p := range found[:min(len(found), maxDiagnostics+1)] {
		l = append(l, f.syntaxProblem(p))
	}
	return l
}

// syntaxProblem translates what HCL's parser reports.
func (f *File) syntaxProblem(p *hcl.Diagnostic) diag.Diagnostic {
	d := diag.Diagnostic{
		Code: "syntax", Range: diag.Range{File: f.path},
		Summary: lowerFirst(p.Summary), Detail: lowerFirst(withoutPlaces(p.Detail)),
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

// explainDuplicate names the argument that is set twice, and its first place.
func (f *File) explainDuplicate(d *diag.Diagnostic, second *hcl.Range) {
	name := f.source[d.Range.Start.Byte:d.Range.End.Byte]
	d.Summary = fmt.Sprintf("the argument %q is set twice", name)
	d.Detail = "keep one of the two"
	if f.body == nil {
		return
	}
	if first, ok := bodyAt(f.body, second.Start.Byte).Attributes[name]; ok {
		d.Notes = []diag.Note{{Range: f.rng(first.NameRange), Message: "it is first set here"}}
	}
}

// bodyAt returns the innermost body that spans the offset.
func bodyAt(body *hclsyntax.Body, offset int) *hclsyntax.Body {
	for _, b := range body.Blocks {
		if b.OpenBraceRange.Start.Byte <= offset && offset < b.CloseBraceRange.End.Byte {
			return bodyAt(b.Body, offset)
		}
	}
	return body
}

// withoutPlaces removes " at :line,column-column": HCL counts lines without
// the text of heredocs, and the notes and ranges of a diagnostic say it better.
func withoutPlaces(s string) string {
	for {
		before, after, found := strings.Cut(s, " at :")
		if !found {
			return s
		}
		s = before + strings.TrimLeft(after, "0123456789,-")
	}
}

// lowerFirst brings a sentence of HCL's into the form of ours: it begins in
// lower case, and a single one has no period.
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
	{"Invalid block definition", "delimited by", `the "{" of a block stands on the line of its name`, `write the "{" at the end of this line, or "=" if it is an argument`},
	{"Invalid single-argument block definition", "also be closed", `a block with an argument behind its "{" ends on the same line`,
		`add the "}" here, or begin a new line behind the "{"`},
	{"Invalid single-argument block definition", "", "a block on one line holds a single argument", `write a new line behind the "{", and each argument on a line of its own`},
	{"Argument definition required", "single-line block", "a block on one line holds a single argument", `write a new line behind the "{"`},
	{"Invalid character", "Single quotes", "text does not stand in single quotes", `write "…"`},
	{"Invalid character", "Curly quotes", "these quotes are not straight", `write "…" with straight quotes`},
	{"Invalid character", `The ";" character`, `nothing ends with ";" here`, "remove it, and begin a new line"},
	{"Missing newline after block definition", "", `something follows the "}" of a block on its line`, "begin a new line"},
	{"Missing key/value separator", "", "an object holds name = value", `write "=" behind the name; if a block is meant, remove the "=" in front of its "{"`},
	{"Missing newline after argument", "", "something follows the argument on its line", `begin a new line; within a string a quote is written \"`},
	{"Missing argument separator", "", `a comma or ")" is missing here`, "write it in front of what stands here"},
	{"Missing item separator", "", `a comma or "]" is missing here`, "write it in front of what stands here"},
	{"Missing attribute separator", "", "a comma or a new line is missing here", "write it in front of what stands here"},
	{"Unclosed configuration block", "", "this block is never closed", `add the "}" that ends it, or the one that a block within it lacks`},
}

const (
	noEquals      = `an argument is set with "="`
	noEqualsHere  = `a block has no "="`
	notBegun      = "this begins neither an argument nor a block"
	notBegunHint  = "write name = …, or name { … }"
	noHeredoc     = "this is not how a heredoc begins"
	noHeredocHint = "write the tag right behind <<, without quotes: <<JS"
	// conflictMark begins a line of a merge that left both sides in the file.
	conflictMark = "<<<<<<< "
	conflictHint = "a merge left a conflict here: keep one side, and remove the other and the lines that begin with <<<<<<<, ======= and >>>>>>>"
)

// reword says what HCL's parser has found in words of a file of tools.
func (f *File) reword(d *diag.Diagnostic, summary, detail string) {
	if bare := f.unquoted(d.Range.Start.Byte); bare != "" && summary == "Missing newline after argument" {
		d.Summary, d.Detail = "something follows the argument on its line", bare
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
		d.Summary, d.Detail = "a block with a heredoc does not stand on one line", `write a new line behind the "{", and one in front of the "}"`
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
		d.Summary, d.Detail = "no value stands here", "write text in quotes, a number such as 0.5, true, false, null, [ … ], { … } or var.NAME"
	case summary != "Argument or block definition required":
	case text == "}":
		d.Summary, d.Detail = `no block is open for this "}"`, "remove it, or the one above that ends a block too early"
	case strings.HasPrefix(after, ":"):
		d.Summary, d.Detail = noEquals, equalsHint(text)
	default:
		d.Summary, d.Detail = notBegun, notBegunHint
	}
}

// endsHeredoc reports whether a place is on the line that ends a heredoc.
func (f *File) endsHeredoc(at int) bool {
	return slices.ContainsFunc(f.heredocs, func(h heredoc) bool { return h.end <= at && at <= h.end+lineLength([]byte(f.source[h.end:])) })
}

// equalsHint says how to write an argument, or a block if there is one of the name.
func equalsHint(name string) string {
	if rules[name] == nil {
		return "write " + name + " = …"
	}
	return "write " + name + " = …, or " + name + " { … } for a block"
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
