package hclfile

import (
	"slices"

	"github.com/mcpd/mcpd/internal/wildcard"
)

// Matches reports whether the name, or the pattern in which * stands for any
// run of characters, fits a name.
func (n Name) Matches(name string) bool { return wildcard.Matches(n.Text, name) }

// Covers reports whether a list of names and patterns covers a name; a nil
// list covers all.
func Covers(names []Name, name string) bool {
	return names == nil || slices.ContainsFunc(names, func(n Name) bool { return n.Matches(name) })
}

// IsToolName reports whether a tool or a prompt may have the name here that a server
// offers: 1 to 128 letters, digits, dots, dashes, underscores and slashes.
func IsToolName(name string) bool { return isToolName(name) }

// IsName reports whether a definition may have the name: 1 to 64 letters,
// digits, dots, dashes and underscores.
func IsName(name string) bool { return isName(name) }
