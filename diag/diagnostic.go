// Package diag reports errors and warnings in the files of authors and operators.
//
// A [Diagnostic] has a problem, its position and its fix. A [List] holds diagnostics in a stable
// order, and is an error. A [Printer] prints a list like a compiler, with the source lines:
//
//	report, err := server.Load(ctx) // the report is valid with an error, too
//	printErr := diag.Printer{Sources: report.Shown()}.Print(os.Stderr, report.Problems)
//	return errors.Join(err, printErr) // err is a diag.List if the files have errors
//
// A [Text] is source embedded in a file, such as a script in a tool file, and maps each byte to its
// position in that file. [Suggest] finds the name that a misspelled name probably means.
//
// The package does not depend on HCL, JavaScript or CEL: their packages convert their errors to
// diagnostics.
package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Severity separates errors, which prevent a load, from warnings.
type Severity int

const (
	// Error prevents the files from being loaded.
	Error Severity = iota
	// Warning is printed and does not prevent a load.
	Warning
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Pos is a position in a file.
type Pos struct {
	// Line counts from 1. Zero means that the position is unknown.
	Line int
	// Column counts Unicode code points from 1.
	Column int
	// Byte counts bytes from the start of the file, from 0.
	Byte int
}

// Range is a range of bytes in a file: Start is inclusive, End is exclusive. The zero Range
// means that the position is unknown.
type Range struct {
	// File is the path to show to the reader, with forward slashes.
	File       string
	Start, End Pos
}

// String returns "file:line:column", or only the file if the line is unknown.
func (r Range) String() string {
	if r.Start.Line == 0 {
		return r.File
	}
	return fmt.Sprintf("%s:%d:%d", r.File, r.Start.Line, r.Start.Column)
}

// Note points to another position that explains a diagnostic.
type Note struct {
	Range   Range
	Message string
}

// Diagnostic reports one error or warning to the author of a file.
type Diagnostic struct {
	Severity Severity
	// Code is a stable identifier for the kind of diagnostic, in kebab case.
	Code string
	// Summary states the problem in one line.
	Summary string
	// Detail says how to fix it. It may be empty.
	Detail string
	// Range is the source to underline.
	Range Range
	// Notes point to related positions, in reading order.
	Notes []Note
	// Stack is the stack trace of a panic, which is a bug in mcpd. Only the log shows it: neither
	// the [Printer] nor the JSON has it.
	Stack string
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

// List is a list of diagnostics. An empty List means that nothing is wrong.
type List []Diagnostic

// HasErrors reports whether any diagnostic has severity [Error].
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Err returns the list as an error if it has errors, and nil otherwise.
func (l List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return l
}

// Error returns all diagnostics, one per line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// Sort orders the list by file (bytewise), position, severity, summary and detail, and removes
// exact duplicates. It sorts in place: the returned list shares the memory of l.
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

// MarshalJSON encodes the severity, code, summary and detail; the position if it is known; and
// the notes if there are any. Lines and columns count from 1; columns count code points.
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

// MarshalJSON encodes the list as an array, even if it is nil.
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

// OncePerPlace merges diagnostics of the same kind and position, such as a policy that is
// invalid for each of many tools. It keeps the first one, and its detail counts the others.
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
