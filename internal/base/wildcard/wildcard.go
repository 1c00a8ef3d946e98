// Package wildcard matches names with patterns in which * matches any run of characters
// and nothing else is special.
package wildcard

import "strings"

// Is reports whether a text is a pattern instead of a name.
func Is(text string) bool { return strings.Contains(text, "*") }

// Matches reports whether a name or a pattern matches a name. It takes time linear in
// name for each star.
func Matches(pattern, name string) bool {
	prefix, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, prefix) {
		return false
	}
	name = name[len(prefix):]
	for {
		piece, further, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, piece)
		}
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(piece):], further
	}
}
