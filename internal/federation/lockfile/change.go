package lockfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Kind is what became of a tool.
type ChangeKind int

const (
	// Added is a tool that is listed, and that nobody has accepted.
	Added ChangeKind = iota + 1
	// Changed is a tool that is listed otherwise than it was accepted.
	Changed
	// Removed is a tool that was accepted, and is not listed. It stays accepted as it was.
	Removed
)

func (k ChangeKind) String() string { return [...]string{"none", "added", "changed", "removed"}[k] }

// Change is a difference between what was accepted and what is listed.
type Change struct {
	Kind           ChangeKind
	Upstream, Name string
	// Old was accepted; it is the zero Tool for [Added].
	Old Tool
	// New is listed; it is the zero Tool for [Removed].
	New Tool
}

// The bounds of what [Change.Diff] shows.
const (
	maxDiffLines = 2000
	maxDiffLine  = 400 // characters
)

// Diff returns the change as a unified diff of the two definitions, which ends with a line
// end. It is fit for a terminal: each character of the texts shows, or is an escape, and
// lines end where sentences do. Commas at ends of lines are left out, so that only lines
// differ that say something else. What is longer than 2,000 lines is cut, as is a line of
// more than 400 characters, and says so; [Change.Whole] reports whether anything is.
//
// Letters that look alike are not told apart, and letters that are written to the left
// may stand in another order within their line.
func (c Change) Diff() string {
	var b strings.Builder
	b.WriteString("--- " + fileHeader(c.Old, "nothing accepted") + "\n")
	b.WriteString("+++ " + fileHeader(c.New, "not listed") + "\n")
	lines := c.lines()
	for _, line := range lines[:min(len(lines), maxDiffLines)] {
		b.WriteString(truncateLine(line) + "\n")
	}
	if left := len(lines) - maxDiffLines; left > 0 {
		fmt.Fprintf(&b, "… and %d more lines, which are not shown: who accepts the change accepts them unseen\n", left)
	}
	return b.String()
}

// Whole reports whether [Change.Diff] shows all of the change.
func (c Change) Complete() bool {
	lines := c.lines()
	return len(lines) <= maxDiffLines && !slices.ContainsFunc(lines, func(line string) bool { return truncateLine(line) != line })
}

func (c Change) lines() []string {
	text := string(diff.Diff("", diffText(c.Old), "", diffText(c.New)))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[min(len(lines), 3):] // without the names of the files
}

// textOf returns the lines of a definition, without commas at their ends.
func diffText(t Tool) []byte {
	if t == (Tool{}) {
		return nil
	}
	lines := strings.Split(string(appendPretty(nil, t)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, ",") + "\n"
	}
	return []byte(strings.Join(lines, ""))
}

func fileHeader(t Tool, none string) string {
	if t == (Tool{}) {
		return none
	}
	return fmt.Sprintf("%s sha256 %s", label(t.upstream, t.name), t.Hash())
}

// shortened cuts a line, which only a number can make as long.
func truncateLine(line string) string {
	count := 0
	for i := range line {
		if count++; count > maxDiffLine {
			return fmt.Sprintf("%s… and %d more bytes", line[:i], len(line)-i)
		}
	}
	return line
}

// Mode is what happens to tools of an upstream that the lock does not know.
type Mode int

const (
	// FirstUse takes in what an upstream lists when it is seen for the first time.
	FirstUse Mode = iota
	// Strict takes in nothing that nobody has accepted.
	Strict
)

// Verdict is what follows from a listing of an upstream.
type CheckResult struct {
	// Served are the tools that may be served, sorted by name, each once.
	Served []Tool
	// Changes are the differences to the lock, sorted by name. Those that are not
	// [Removed] name the tools in quarantine.
	Changes []Change
	// First says that the upstream is seen for the first time and that its tools are taken
	// in: Served is for [Lock.Pin], before any of them is served.
	FirstUse bool
}

// Check compares what an upstream lists, all of it, with what was accepted. Tools of other
// upstreams among it are neither served nor told of.
//
// A tool that [Tool.Hides] something is in quarantine until it is accepted, also when its
// upstream is seen for the first time.
//
// A name that is listed with several definitions is in quarantine whatever the mode and the
// lock say, since nobody knows which of them a call reaches; its Change has the first that
// was not accepted, in the order of their texts.
func (l *Lock) Check(upstream string, listed []Tool, mode Mode) CheckResult {
	before, known := l.toolsOf(upstream)
	v := CheckResult{FirstUse: !known && mode == FirstUse}
	for _, same := range groups(upstream, listed) {
		for len(before) > 0 && before[0].name < same[0].name {
			v.addRemoved(before[0])
			before = before[1:]
		}
		var old Tool
		if len(before) > 0 && before[0].name == same[0].name {
			old, before = before[0], before[1:]
		}
		v.compare(old, same)
	}
	for _, old := range before {
		v.addRemoved(old)
	}
	return v
}

// groups returns the tools of an upstream, sorted, those of one name together, and each
// definition once.
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

func (v *CheckResult) addRemoved(old Tool) {
	v.Changes = append(v.Changes, Change{Kind: Removed, Upstream: old.upstream, Name: old.name, Old: old})
}

// judge looks at the definitions that are listed under one name; old is the accepted one,
// or the zero Tool.
func (v *CheckResult) compare(old Tool, same []Tool) {
	listed := same[0]
	switch {
	case len(same) == 1 && listed.Equal(old):
		v.Served = append(v.Served, old)
		return
	case len(same) == 1 && v.FirstUse && !listed.hides:
		v.Served = append(v.Served, listed)
		return
	}
	if listed.Equal(old) {
		listed = same[1]
	}
	kind := Changed
	if old == (Tool{}) {
		kind = Added
	}
	v.Changes = append(v.Changes, Change{Kind: kind, Upstream: listed.upstream, Name: listed.name, Old: old, New: listed})
}
