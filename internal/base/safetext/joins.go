package safetext

import (
	"regexp"
	"strings"
	"sync"
)

// withoutJoins returns text without the characters that are not seen themselves, but in how
// others next to them are drawn. Where they would change nothing that is seen they stay.
func withoutJoins(text string) string {
	return words().ReplaceAllStringFunc(signs.ReplaceAllStringFunc(text, drawn.Replace), joins.Replace)
}

// drawn leaves out what joins signs, and joins what joins letters or keeps them apart.
var (
	drawn = strings.NewReplacer("\ufe0e", "", "\ufe0f", "", "\u20e3", "", "\u200d", "")
	joins = strings.NewReplacer("\u200c", "", "\u200d", "")
)

// signs matches what [emoji] does.
var signs = regexp.MustCompile(emoji)

// emoji matches signs, each drawn as text or in colour, that are joined to others (UTS 51,
// ED-16), and keys of telephones.
const (
	sign  = `[\p{So}\x{1f000}-\x{1faff}‼⁉ℹ↔◻◼◽◾⤴⤵〰〽][\x{1f3fb}-\x{1f3ff}]?[\x{fe0e}\x{fe0f}]?`
	emoji = sign + `(?:\x{200d}` + sign + `)*|[0-9#*]\x{fe0f}?\x{20e3}`
)

// words matches words of scripts that join letters, or keep them apart, by U+200D and U+200C
// (The Unicode Standard, 23.2): one of these between two letters of the script. It is made
// when it is needed first, which takes as long as much else of a start.
var words = sync.OnceValue(func() *regexp.Regexp {
	kinds := []string{
		"Arabic", "Syriac", "Nko", "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Khmer",
	}
	for i, script := range kinds {
		part := `\p{` + script + `}[\p{` + script + `}\p{M}]*`
		kinds[i] = part + `(?:[\x{200c}\x{200d}]` + part + `)+`
	}
	return regexp.MustCompile(strings.Join(kinds, "|"))
})
