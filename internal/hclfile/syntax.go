package hclfile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// syntaxProblems translates what HCL's parser found.
func (f *File) syntaxProblems(problems hcl.Diagnostics) diag.List {
	var l diag.List
	for _, p := range problems {
		if len(l) > maxDiagnostics {
			break
		}
		d := f.syntaxProblem(p)
		if n := len(l); n > 0 && d.Severity == l[n-1].Severity && d.Range.Start == l[n-1].Range.Start {
			continue // what the lexer refuses, the parser refuses again
		}
		l = append(l, d)
	}
	return l
}

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
	if p.Summary == "Invalid escape sequence" {
		d.Detail = escapeHint(f.source[d.Range.Start.Byte:d.Range.End.Byte])
	}
	if p.Summary == "Attribute redefined" {
		d.Code = "duplicate"
		f.explainDuplicate(&d, p.Subject)
	}
	return d
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
