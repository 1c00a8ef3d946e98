package privdiff

import (
	"slices"
	"strings"
)

// key names the facts that come and go together.
type key struct{ of, part string }

// parent returns what the group is a part of: the granted object, or the value
// of a schema that holds this one.
func (k key) parent() (key, bool) {
	switch {
	case k.part == "":
		return k, false
	case k.of != "":
		return key{of: k.of}, true
	}
	what, path, inner := strings.Cut(strings.TrimSuffix(k.part, `"`), ` "`)
	if !inner {
		return k, false
	}
	if at := strings.LastIndexAny(path, ".["); at > 0 {
		return key{part: what + ` "` + path[:at] + `"`}, true
	}
	return key{part: what}, true
}

// group is the facts of one object or part.
type group struct {
	key
	// there says that the group is something that comes and goes; nil otherwise.
	there *fact
	facts []fact
}

// groups are those of one definition, in the order of their first facts.
type groups struct {
	list []group
	at   map[key]int
}

// groupsOf returns facts by what they are of.
func groupsOf(facts []fact) *groups {
	all := &groups{at: map[key]int{}}
	for _, f := range facts {
		k := key{f.Of, f.Part}
		n, known := all.at[k]
		if !known {
			n = len(all.list)
			all.at[k], all.list = n, append(all.list, group{key: k})
		}
		g := &all.list[n]
		if f.Option == "" && k != (key{}) {
			g.there = &f
			continue
		}
		g.facts = append(g.facts, f)
	}
	return all
}

// find returns the group of a key, or nil.
func (all *groups) find(k key) *group {
	n, known := all.at[k]
	if !known {
		return nil
	}
	return &all.list[n]
}

// within reports whether a group belongs to one that is here and not among others.
func (all *groups) within(others *groups, k key) bool {
	for k, ok := k.parent(); ok; k, ok = k.parent() {
		if g := all.find(k); g != nil && g.there != nil && others.find(k) == nil {
			return true
		}
	}
	return false
}

// what names a group, and an option of it.
func (k key) what(option string) string {
	return strings.Join(slices.DeleteFunc([]string{k.of, k.part, option}, func(s string) bool { return s == "" }), " ")
}
