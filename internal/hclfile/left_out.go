package hclfile

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// leftOut is what a file holds that could not be read.
type leftOut struct {
	// broken: the file has mistakes of syntax.
	broken bool
	// unread is the text of what was left out, and pieces are its places.
	unread []byte
	pieces []struct{ from, to int }
	// vague are the bodies that hold something of which not even the name is known.
	vague map[*hclsyntax.Body]bool
}

// leaveOut notes that a part of the source could not be read. Where it begins
// like the one before it, the two are one.
func (l *leftOut) leaveOut(source string, from, to int) {
	if n := len(l.pieces); n > 0 && l.pieces[n-1].from == from && l.pieces[n-1].to <= to {
		l.unread = append(l.unread, source[l.pieces[n-1].to:to]...)
		l.pieces[n-1].to = to
		return
	}
	l.unread = append(append(l.unread, source[from:to]...), '\n')
	l.pieces = append(l.pieces, struct{ from, to int }{from, to})
}

// beVague notes that a body may hold anything beside what is known of it.
func (l *leftOut) beVague(body *hclsyntax.Body) {
	if l.vague == nil {
		l.vague = map[*hclsyntax.Body]bool{}
	}
	l.vague[body] = true
}

// withoutConsequences removes what was found in pieces that were left out: the
// mistake of syntax there is told, and the rest was presumed. What a block
// lacks is told at its heading, also when that has a mistake.
func (f *File) withoutConsequences(l diag.List) diag.List {
	if len(f.left.pieces) == 0 {
		return l
	}
	return slices.DeleteFunc(l, func(d diag.Diagnostic) bool {
		return d.Range.File == f.path && d.Range.Start.Line > 0 && d.Code != "missing-argument" &&
			slices.ContainsFunc(f.left.pieces, func(p struct{ from, to int }) bool { return p.from <= d.Range.Start.Byte && d.Range.Start.Byte < p.to })
	})
}

// isUnread reports whether x stands in the place of an expression that could
// not be read.
func isUnread(x hclsyntax.Expression) bool {
	literal, ok := x.(*hclsyntax.LiteralValueExpr)
	return ok && !literal.Val.IsKnown()
}

// Unread returns the text of what was left out.
func (f *File) Unread() string { return string(f.left.unread) }
