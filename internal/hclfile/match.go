package hclfile

import (
	"slices"
	"strings"
)

// Matches reports whether the name, or the pattern in which * stands for any
// run of characters, fits a name. It takes time linear in name for each star.
func (n Name) Matches(name string) bool {
	prefix, rest, star := strings.Cut(n.Text, "*")
	if !star {
		return n.Text == name
	}
	if !strings.HasPrefix(name, prefix) {
		return false
	}
	name = name[len(prefix):]
	pieces := strings.Split(rest, "*")
	last := pieces[len(pieces)-1]
	for _, piece := range pieces[:len(pieces)-1] {
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name = name[i+len(piece):]
	}
	return strings.HasSuffix(name, last)
}

// Covers reports whether a list of names and patterns covers a name; a nil
// list covers all.
func Covers(names []Name, name string) bool {
	return names == nil || slices.ContainsFunc(names, func(n Name) bool { return n.Matches(name) })
}

// IsName reports whether a definition may have the name: 1 to 64 letters,
// digits, dots, dashes and underscores.
func IsName(name string) bool { return isName(name) }
