package lockfile

import "slices"

// Mode is what happens to tools of an upstream that the lock does not know.
type Mode int

// The modes.
const (
	// FirstUse takes in what an upstream lists when it is seen for the first time.
	FirstUse Mode = iota
	// Strict takes in nothing that nobody has accepted.
	Strict
)

// Verdict is what follows from a listing of an upstream.
type Verdict struct {
	// Served are the tools that may be served, sorted by name, each once.
	Served []Tool
	// Changes are the differences to the lock, sorted by name. Those that are not
	// [Removed] name the tools in quarantine.
	Changes []Change
	// First says that the upstream is seen for the first time and that its tools are taken
	// in: Served is for [Lock.Pin], before any of them is served.
	First bool
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
func (l *Lock) Check(upstream string, listed []Tool, mode Mode) Verdict {
	before, known := l.of(upstream)
	v := Verdict{First: !known && mode == FirstUse}
	for _, same := range groups(upstream, listed) {
		for len(before) > 0 && before[0].name < same[0].name {
			v.removed(before[0])
			before = before[1:]
		}
		var old Tool
		if len(before) > 0 && before[0].name == same[0].name {
			old, before = before[0], before[1:]
		}
		v.judge(old, same)
	}
	for _, old := range before {
		v.removed(old)
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

func (v *Verdict) removed(old Tool) {
	v.Changes = append(v.Changes, Change{Kind: Removed, Upstream: old.upstream, Name: old.name, Old: old})
}

// judge looks at the definitions that are listed under one name; old is the accepted one,
// or the zero Tool.
func (v *Verdict) judge(old Tool, same []Tool) {
	listed := same[0]
	switch {
	case len(same) == 1 && listed.Equal(old):
		v.Served = append(v.Served, old)
		return
	case len(same) == 1 && v.First && !listed.hides:
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
