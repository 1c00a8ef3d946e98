package scripting

import (
	"maps"
	"strings"
)

// patches are the texts of which something is left out, by the path of the
// imported file; that of the body is empty.
type patches map[string]*patch

// of returns what is compiled in place of a text.
func (p patches) of(file, text string) string {
	if patch := p[file]; patch != nil {
		return patch.text
	}
	return text
}

// clone returns patches that stay as they are.
func (p patches) clone() patches {
	c := patches{}
	for file, patch := range p {
		kept := *patch
		kept.words = maps.Clone(patch.words)
		c[file] = &kept
	}
	return c
}

// hide keeps from what was found all that a part that is left out may declare.
func (p patches) hide(found *analysis) {
	for _, patch := range p {
		for word := range patch.words {
			found.bound[word], found.again[word] = true, true
			delete(found.held, word)
			delete(found.settled, word)
		}
	}
}

// explain reports whether a mistake may be that something is left out which
// declares a name.
func (p patches) explain(summary string) bool {
	if len(p) == 0 {
		return false
	}
	if strings.Contains(summary, "matching export") || strings.Contains(summary, "not declared") || strings.Contains(summary, "rivate ") {
		for _, patch := range p {
			for word := range patch.words {
				if strings.Contains(summary, `"`+word+`"`) || strings.Contains(summary, `'`+word+`'`) || strings.HasSuffix(summary, word) {
					return true
				}
			}
		}
	}
	return false
}
