package hclfile

import (
	"regexp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

const (
	// maxRecoveries is how many blocks with mistakes of syntax are left out of a file.
	maxRecoveries = 8
	// maxRecovered is the length of a text that is parsed again without them.
	maxRecovered = 32 << 10
)

// heading is the first line of a block, where blocks stand that nothing encloses.
var heading = regexp.MustCompile(`(?m)^[a-z_]+([ \t]+"[^"\n]*")*[ \t]*\{`)

// parseText parses what HCL may see of a file. A block with a mistake of syntax
// is left out, so that what is wrong with the others is told beside it. There
// is no body when that does not help.
func (f *File) parseText(text []byte) (problems diag.List) {
	for range maxRecoveries {
		parsed, found := hclsyntax.ParseConfig(text, "", hcl.InitialPos)
		f.body = parsed.Body.(*hclsyntax.Body)
		first := firstFatal(found)
		if first < 0 {
			return append(problems, f.syntaxProblems(found)...)
		}
		from, to := f.enclosing(text, first)
		if from < 0 {
			f.body = nil
			return append(problems, f.syntaxProblems(found)...)
		}
		within := slices.DeleteFunc(slices.Clone(found), func(p *hcl.Diagnostic) bool {
			return p.Subject == nil || p.Subject.Start.Byte < from || p.Subject.Start.Byte >= to
		})
		problems = append(problems, f.syntaxProblems(within)...)
		f.unread += string(text[from:to])
		for i := from; i < to; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	f.body = nil
	return problems
}

// firstFatal returns the offset of the first mistake that leaves the syntax
// tree incomplete, or -1.
func firstFatal(found hcl.Diagnostics) int {
	first := -1
	for _, p := range found {
		if p.Severity == hcl.DiagError && p.Summary != "Attribute redefined" && p.Subject != nil && (first < 0 || p.Subject.Start.Byte < first) {
			first = p.Subject.Start.Byte
		}
	}
	return first
}

// enclosing returns where the block begins that holds the offset, and where the
// next one does; or -1 when the file is nothing without it.
func (f *File) enclosing(text []byte, at int) (from, to int) {
	if f.kind != ToolsKind || len(text) > maxRecovered {
		return -1, -1
	}
	from, to = -1, len(text)
	for _, h := range heading.FindAllIndex(text, -1) {
		if h[0] > at {
			to = h[0]
			break
		}
		from = h[0]
	}
	if from >= 0 && string(text[from:min(from+6, len(text))]) == "locals" {
		return -1, -1
	}
	return from, to
}

// Unread returns the text of the blocks that were left out.
func (f *File) Unread() string { return f.unread }
