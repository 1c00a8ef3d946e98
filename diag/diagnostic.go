// Package diag describes mistakes in the files that people write.
//
// A [Diagnostic] says what is wrong, where, and what to do; a [List] holds all
// of them, in stable order; a [Text] is a piece of source, such as a script
// body, that stands inside a larger file and knows the place of each of its
// bytes there. The package knows nothing of HCL, JavaScript or CEL: the
// packages that do translate their own errors into diagnostics.
package diag

import (
	"cmp"
	"encoding/json"
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
	text := d.Severity.String() + ": " + d.Summary
	if where := d.Range.String(); where != "" {
		text = where + ": " + text
	}
	if d.Detail != "" {
		text += "; " + d.Detail
	}
	return text
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

// MarshalJSON encodes the diagnostic for machines: severity, code, summary and
// detail always, the place when it is known, notes when there are any. Lines
// and columns count from 1; columns count code points.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	out := struct {
		Severity string `json:"severity"`
		Code     string `json:"code"`
		Summary  string `json:"summary"`
		Detail   string `json:"detail"`
		jsonRange
		Notes []jsonNote `json:"notes,omitempty"`
	}{
		Severity: d.Severity.String(), Code: d.Code, Summary: d.Summary, Detail: d.Detail,
		jsonRange: newJSONRange(d.Range),
	}
	for _, n := range d.Notes {
		out.Notes = append(out.Notes, jsonNote{n.Message, newJSONRange(n.Range)})
	}
	return json.Marshal(out)
}

// MarshalJSON encodes the list as an array, also when it is empty.
func (l List) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Diagnostic(l))
}

type jsonPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

type jsonRange struct {
	File  string   `json:"file,omitempty"`
	Start *jsonPos `json:"start,omitempty"`
	End   *jsonPos `json:"end,omitempty"`
}

type jsonNote struct {
	Message string `json:"message"`
	jsonRange
}

func newJSONRange(r Range) jsonRange {
	out := jsonRange{File: r.File}
	if r.Start.Line > 0 {
		out.Start = &jsonPos{r.Start.Line, r.Start.Column}
		out.End = &jsonPos{r.End.Line, r.End.Column}
	}
	return out
}

// OncePerPlace joins diagnostics of one kind that point at the same place, as
// when a policy is wrong for each of many tools: the first is kept, and its
// detail counts the others.
func (l List) OncePerPlace() List {
	type place struct {
		where Range
		code  string
	}
	var joined List
	first, others := map[place]int{}, map[place]int{}
	for _, d := range l {
		at := place{d.Range, d.Code}
		if _, told := first[at]; told {
			others[at]++
			continue
		}
		first[at] = len(joined)
		joined = append(joined, d)
	}
	for at, n := range others {
		d := &joined[first[at]]
		d.Detail = strings.TrimPrefix(fmt.Sprintf("%s (and the same for %d more)", d.Detail, n), " ")
	}
	return joined
}
