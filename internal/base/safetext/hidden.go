package safetext

import (
	"errors"
	"iter"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Hides reports whether text contains invisible characters that ordinary text does not
// need: controls, bidirectional marks and overrides, zero-width characters, tags, runs
// of variation selectors, private and unassigned code points.
//
// Ordinary are line ends, tabs and spaces of any width; emoji with the selectors,
// joiners and tags that Unicode defines for them; U+200C and U+200D next to a letter of
// a joining script; U+200B between letters of a script without spaces; the selectors of
// Mongolian; up to eight combining marks on a letter.
func Hides(text string) bool {
	for range hidden(text) {
		return true
	}
	return false
}

// Escape returns text with an escape such as \u202e for each character that [Hides]
// reports.
func Escape(text string) string {
	var l line
	written := 0
	for i, r := range hidden(text) {
		l.WriteString(text[written:i])
		l.escape(r)
		written = i + utf8.RuneLen(r)
	}
	if written == 0 {
		return text
	}
	l.WriteString(text[written:])
	return l.String()
}

// HidesIn reports whether a decoded JSON value contains a string or member name that
// [Hides] reports. The depth of the value must be bounded.
func HidesIn(value any) bool {
	switch value := value.(type) {
	case string:
		return Hides(value)
	case []any:
		for _, item := range value {
			if HidesIn(item) {
				return true
			}
		}
	case map[string]any:
		for name, member := range value {
			if Hides(name) || HidesIn(member) {
				return true
			}
		}
	}
	return false
}

// errSameEscaped is the error of a value that cannot be escaped.
var errSameEscaped = errors.New("two of its members have the same name once invisible characters are escaped")

// EscapeIn returns a copy of a decoded JSON value with all strings and member names
// escaped by [Escape]. The depth of the value must be bounded.
func EscapeIn(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return Escape(value), nil
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			escaped, err := EscapeIn(item)
			if err != nil {
				return nil, err
			}
			list[i] = escaped
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(value))
		for name, member := range value {
			escaped, err := EscapeIn(member)
			if err != nil {
				return nil, err
			}
			object[Escape(name)] = escaped
		}
		if len(object) != len(value) {
			return nil, errSameEscaped
		}
		return object, nil
	}
	return value, nil
}

// maxStacked is the maximum number of combining marks on a letter: Myanmar and Tibetan
// need six.
const maxStacked = 8

// hidden yields the characters that [Hides] reports, with their offsets.
func hidden(text string) iter.Seq2[int, rune] {
	return func(yield func(int, rune) bool) {
		if !strings.ContainsFunc(text, func(r rune) bool { return suspect(r) || unicode.Is(unicode.M, r) }) {
			return
		}
		spans := sequences().FindAllStringIndex(text, -1)
		base, before := rune(0), rune(0) // the last letter, and the previous character
		marks := 0
		for i, r := range text {
			for len(spans) > 0 && spans[0][1] <= i {
				spans = spans[1:]
			}
			within := len(spans) > 0 && spans[0][0] <= i && !isBlankSign(r)
			_, size := utf8.DecodeRuneInString(text[i:])
			after, _ := utf8.DecodeRuneInString(text[i+size:])
			ordinary := within || !suspect(r) || needed(r, base, before, after)
			if !unicode.Is(unicode.M, r) {
				base, marks = r, 0
			} else if marks++; marks > maxStacked {
				ordinary = false
			}
			before = r
			if !ordinary && !yield(i, r) {
				return
			}
		}
	}
}

const brailleBlank = '\u2800'

// isBlankSign reports whether a character renders as nothing although Unicode
// classifies it as visible: the Braille blank, the null notehead and the Khitan filler.
func isBlankSign(r rune) bool { return r == brailleBlank || r == '\U0001d159' || r == '\U00016fe4' }

// suspect reports whether a character is invisible or moves others.
func suspect(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' ' && r != '\n' && r != '\t'
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Zl, unicode.Zp) || isBlankSign(r):
		return true
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r), r >= 0x1f000 && r <= 0x1faff: // including emoji of later Unicode versions
		return false
	}
	return !unicode.IsGraphic(r)
}

// needed reports whether text needs a suspect character at its position. base is the
// letter of the previous character before.
func needed(r, base, before, after rune) bool {
	switch r {
	case '\r':
		return after == '\n'
	case '\u200c', '\u200d':
		return !suspect(before) && !suspect(after) && (unicode.In(base, joining...) || unicode.In(after, joining...))
	case '\u200b':
		return unicode.In(base, unspaced...) && unicode.In(after, unspaced...) && !suspect(before)
	case '\u180b', '\u180c', '\u180d', '\u180f', '\u180e':
		return unicode.Is(unicode.Mongolian, before) && unicode.IsLetter(before)
	case brailleBlank:
		return before > brailleBlank && before <= 0x28ff || after > brailleBlank && after <= 0x28ff
	}
	return false
}

// joining lists scripts that use U+200D and U+200C to join letters or keep them apart
// (The Unicode Standard, 23.2), also at word ends and before words of other scripts.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mandaic, unicode.Mongolian, unicode.Adlam, unicode.Hanifi_Rohingya,
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
	unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese, unicode.Grantha, unicode.Newa,
}

// unspaced lists scripts that separate words by U+200B.
var unspaced = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// sequences matches emoji (UTS 51): joined signs, keycaps, and the three flags made of
// tags.
var sequences = sync.OnceValue(func() *regexp.Regexp {
	const flag = `\x{1f3f4}(?:\x{e0067}\x{e0062}(?:\x{e0065}\x{e006e}\x{e0067}|\x{e0073}\x{e0063}\x{e0074}|\x{e0077}\x{e006c}\x{e0073})\x{e007f})`
	return regexp.MustCompile(flag + "|" + emoji)
})

// withoutJoins returns text without the characters that only change the rendering of
// their neighbors. Where they would have no visible effect, they stay.
func withoutJoins(text string) string {
	return words().ReplaceAllStringFunc(signs.ReplaceAllStringFunc(text, drawn.Replace), joins.Replace)
}

// drawn removes joiners between signs, and joiners and non-joiners between letters.
var (
	drawn = strings.NewReplacer("\ufe0e", "", "\ufe0f", "", "\u20e3", "", "\u200d", "")
	joins = strings.NewReplacer("\u200c", "", "\u200d", "")
)

// signs matches [emoji].
var signs = regexp.MustCompile(emoji)

// emoji matches signs, each in text or color presentation, that are joined to others
// (UTS 51, ED-16), and keycaps.
const (
	sign  = `[\p{So}\x{1f000}-\x{1faff}‼⁉ℹ↔◻◼◽◾⤴⤵〰〽][\x{1f3fb}-\x{1f3ff}]?[\x{fe0e}\x{fe0f}]?`
	emoji = sign + `(?:\x{200d}` + sign + `)*|[0-9#*]\x{fe0f}?\x{20e3}`
)

// words matches words of scripts that use U+200D and U+200C (The Unicode Standard,
// 23.2): one of these between two letters of the script. It is compiled on first use,
// because compiling takes a large part of the start.
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
