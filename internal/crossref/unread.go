package crossref

import (
	"slices"
	"strings"
)

// longestName is more bytes than a name, a URI or a pattern of either has.
const longestName = 4 << 10

// unread are the texts that could not be understood: what may be defined there
// is not reported as missing. Each is gone through once, however many names are
// looked for.
type unread struct {
	texts []string
	// quoted is what stands there between two quotes, nil until it is asked for.
	quoted map[string]bool
	// held are the answers of holds.
	held map[string]bool
}

// quotes reports whether a name stands between quotes, as a definition has it.
func (u *unread) quotes(name string) bool {
	if u.quoted == nil {
		u.quoted = map[string]bool{}
		for _, text := range u.texts {
			u.index(text)
		}
	}
	return u.quoted[name]
}

// index adds what stands between the quotes of a text.
func (u *unread) index(text string) {
	_, text, _ = strings.Cut(text, `"`)
	for {
		name, rest, closed := strings.Cut(text, `"`)
		if !closed {
			return
		}
		if len(name) <= longestName {
			u.quoted[name] = true
		}
		text = rest
	}
}

// holds reports whether a word stands there.
func (u *unread) holds(word string) bool {
	found, known := u.held[word]
	if !known {
		found = slices.ContainsFunc(u.texts, func(text string) bool { return strings.Contains(text, word) })
		if u.held == nil {
			u.held = map[string]bool{}
		}
		u.held[word] = found
	}
	return found
}
