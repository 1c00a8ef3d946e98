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
