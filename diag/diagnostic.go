package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity tells a mistake that keeps a file from loading from one that does not.
type Severity int

const (
	// Error keeps the files from being loaded.
	Error Severity = iota
	// Warning is printed and does not keep anything from loading.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Pos is one place in a file.
type Pos struct {
	// Line counts from 1. Zero means that the place is not known.
	Line int
	// Column counts Unicode code points from 1.
	Column int
	// Byte counts bytes from the start of the file, from 0.
	Byte int
}

// Range is a run of bytes in a file, from Start up to but not including End.
// The zero Range means that no place is known.
type Range struct {
	// File is the path as the reader would name it, with forward slashes.
	File       string
	Start, End Pos
}

// String returns "file:line:column", or the file alone when the line is not known.
func (r Range) String() string {
	if r.Start.Line == 0 {
		return r.File
	}
	return fmt.Sprintf("%s:%d:%d", r.File, r.Start.Line, r.Start.Column)
}

// Note points at a second place that explains a diagnostic.
type Note struct {
	Range   Range
	Message string
}

// Diagnostic is one mistake, told to the author of the file.
type Diagnostic struct {
	Severity Severity
	// Code is a stable name for the kind of mistake, in kebab case.
	Code string
	// Summary says in one line what is wrong.
	Summary string
	// Detail says what to do. It may be empty.
	Detail string
	// Range is what to underline.
	Range Range
	// Notes name other places that matter, in the order to read them.
	Notes []Note
}

// String returns the diagnostic on one line, without the source.
func (d Diagnostic) String() string {
	var b strings.Builder
	if where := d.Range.String(); where != "" {
		b.WriteString(where)
		b.WriteString(": ")
	}
	b.WriteString(d.Severity.String())
	b.WriteString(": ")
	b.WriteString(d.Summary)
	if d.Detail != "" {
		b.WriteString("; ")
		b.WriteString(d.Detail)
	}
	return b.String()
}

// List is a set of diagnostics. The zero List means that nothing is wrong.
type List []Diagnostic

// HasErrors reports whether any diagnostic is an [Error].
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Err returns the list as an error when it holds one, and nil otherwise.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return l
}

// Error returns all diagnostics, one a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the list by file (bytewise), place, severity, summary and
// detail, and drops exact repetitions, so that the same mistakes always print
// alike. It returns the sorted list, which shares the memory of l.
func (l List) Sort() List {
	slices.SortStableFunc(l, compare)
	return slices.CompactFunc(l, func(a, b Diagnostic) bool { return compare(a, b) == 0 })
}

func compare(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Range.File, b.Range.File),
		cmp.Compare(a.Range.Start.Line, b.Range.Start.Line),
		cmp.Compare(a.Range.Start.Column, b.Range.Start.Column),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Summary, b.Summary),
		cmp.Compare(a.Detail, b.Detail),
	)
}
