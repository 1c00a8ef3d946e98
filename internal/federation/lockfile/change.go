package lockfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// ChangeKind is the kind of a change.
type ChangeKind int

const (
	// Added is a listed tool that is not accepted.
	Added ChangeKind = iota + 1
	// Changed is a tool listed with another definition than the accepted one.
	Changed
	// Removed is an accepted tool that is not listed. It stays accepted.
	Removed
)

func (k ChangeKind) String() string { return [...]string{"none", "added", "changed", "removed"}[k] }

// Change is a difference between the accepted and the listed tools.
type Change struct {
	Kind           ChangeKind
	Upstream, Name string
	// Old is the accepted tool; the zero Tool for [Added].
	Old Tool
	// New is the listed tool; the zero Tool for [Removed].
	New Tool
}

// The limits of [Change.Diff].
const (
	maxDiffLines = 2000
	maxDiffLine  = 400 // characters
)

// Diff returns the change as a unified diff of the two definitions. It ends with a line end. It
// is safe for terminals: every character is visible or escaped, and long texts are split into
// sentences. For a changed tool, commas at line ends are omitted, so that only lines with different
// content differ.
// Output beyond 2,000 lines and lines beyond 400 characters are truncated with a note;
// [Change.Complete] reports whether that happens.
//
// Letters that look alike are not distinguished. Right-to-left letters may be reordered within
// their line.
func (c Change) Diff() string {
	var b strings.Builder
	b.WriteString("--- " + fileHeader(c.Old, "nothing accepted") + "\n")
	b.WriteString("+++ " + fileHeader(c.New, "not listed") + "\n")
	lines := c.lines()
	for _, line := range lines[:min(len(lines), maxDiffLines)] {
		b.WriteString(truncateLine(line) + "\n")
	}
	if left := len(lines) - maxDiffLines; left > 0 {
		fmt.Fprintf(&b, "… and %d more lines, not shown; accepting the change accepts them too\n", left)
	}
	return b.String()
}

// Complete reports whether [Change.Diff] shows the change in full.
func (c Change) Complete() bool {
	lines := c.lines()
	return len(lines) <= maxDiffLines && !slices.ContainsFunc(lines, func(line string) bool { return truncateLine(line) != line })
}

func (c Change) lines() []string {
	commas := c.Old == (Tool{}) || c.New == (Tool{})
	text := string(diff.Diff("", diffText(c.Old, commas), "", diffText(c.New, commas)))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[min(len(lines), 3):] // without the file names
}

// diffText returns the lines of a definition, with or without commas at line ends.
func diffText(t Tool, commas bool) []byte {
	if t == (Tool{}) {
		return nil
	}
	text := append(appendPretty(nil, t), '\n')
	if !commas {
		text = bytes.ReplaceAll(text, []byte(",\n"), []byte("\n"))
	}
	return text
}

func fileHeader(t Tool, none string) string {
	if t == (Tool{}) {
		return none
	}
	return fmt.Sprintf("%s sha256 %s", label(t.upstream, t.name), t.Hash())
}

// truncateLine truncates a line; only numbers make lines that long.
func truncateLine(line string) string {
	count := 0
	for i := range line {
		if count++; count > maxDiffLine {
			return fmt.Sprintf("%s… and %d more bytes", line[:i], len(line)-i)
		}
	}
	return line
}

// Mode decides about the tools of an upstream that is not in the lock.
type Mode int

const (
	// FirstUse accepts the tools of an upstream when it is first seen.
	FirstUse Mode = iota
	// Strict accepts no tool automatically.
	Strict
)

// CheckResult is the result of checking a listing.
type CheckResult struct {
	// Served are the tools that may be served, sorted by name, without duplicates.
	Served []Tool
	// Changes are the differences from the lock, sorted by name. All but [Removed] ones name
	// quarantined tools.
	Changes []Change
	// FirstUse reports whether the upstream is new and its tools are accepted: pass Served to
	// [Lock.WithTools] before serving any of them.
	FirstUse bool
}

// Check compares the full listing of an upstream with the accepted tools. It ignores tools of
// other upstreams.
//
// A tool with invisible characters ([Tool.Hides]) is quarantined until it is accepted, even on
// first use.
//
// A name that is listed with several definitions is quarantined in any mode, because it is
// unknown which one a call reaches. Its Change has the first definition that was not accepted,
// in text order.
func (l *Lock) Check(upstream string, listed []Tool, mode Mode) CheckResult {
	before, known := l.toolsOf(upstream)
	r := CheckResult{FirstUse: !known && mode == FirstUse}
	for _, same := range groups(upstream, listed) {
		for len(before) > 0 && before[0].name < same[0].name {
			r.addRemoved(before[0])
			before = before[1:]
		}
		var old Tool
		if len(before) > 0 && before[0].name == same[0].name {
			old, before = before[0], before[1:]
		}
		r.compare(old, same)
	}
	for _, old := range before {
		r.addRemoved(old)
	}
	return r
}

// groups groups the tools of an upstream by name, sorted and without duplicate definitions.
func groups(upstream string, listed []Tool) [][]Tool {
	sorted := slices.DeleteFunc(slices.Clone(listed), func(t Tool) bool { return t.upstream != upstream })
	slices.SortFunc(sorted, byName)
	sorted = slices.Compact(sorted)
	var list [][]Tool
	from := 0
	for i := range sorted {
		if i+1 == len(sorted) || sorted[i+1].name != sorted[i].name {
			list = append(list, sorted[from:i+1])
			from = i + 1
		}
	}
	return list
}

func (r *CheckResult) addRemoved(old Tool) {
	r.Changes = append(r.Changes, Change{Kind: Removed, Upstream: old.upstream, Name: old.name, Old: old})
}

// compare checks the definitions that are listed under one name. old is the accepted one, or
// the zero Tool.
func (r *CheckResult) compare(old Tool, same []Tool) {
	listed := same[0]
	switch {
	case len(same) == 1 && listed.Equal(old):
		r.Served = append(r.Served, old)
		return
	case len(same) == 1 && r.FirstUse && !listed.hides:
		r.Served = append(r.Served, listed)
		return
	}
	if listed.Equal(old) {
		listed = same[1]
	}
	kind := Changed
	if old == (Tool{}) {
		kind = Added
	}
	r.Changes = append(r.Changes, Change{Kind: kind, Upstream: listed.upstream, Name: listed.name, Old: old, New: listed})
}
