package toolprompt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord bounds the bytes of a word. What is behind them is passed over.
const maxWord = 48

// splitWords calls yield with each word of a text, in small letters, until it returns
// false. Words are letters and digits that stand together; a capital letter behind a
// small one begins a word, as does the last of several capitals in front of a small
// one. In scripts that do without spaces each character is a word.
func splitWords(text string, yield func(word string) bool) {
	var word strings.Builder
	flush := func() bool {
		if word.Len() == 0 {
			return true
		}
		w := word.String()
		word.Reset()
		return yield(w)
	}
	last := rune(0) // the character before, 0 where no word goes on
	for i, r := range text {
		single := standsAlone(r)
		if last != 0 && (single || !isLetter(r) || turns(last, r, text[i:])) {
			if !flush() {
				return
			}
			last = 0
		}
		if !isLetter(r) {
			continue
		}
		if word.Len() < maxWord {
			word.WriteRune(unicode.ToLower(r))
		}
		last = r
		if single {
			if !flush() {
				return
			}
			last = 0
		}
	}
	flush()
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return isAlphanumeric(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// standsAlone reports whether a character is a word by itself.
func standsAlone(r rune) bool {
	return r >= firstIdeog && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// turns reports whether a word begins at r, which rest begins with, behind last. The s
// of a plural such as IDs begins none.
func turns(last, r rune, rest string) bool {
	if !unicode.IsUpper(r) {
		return false
	}
	if !unicode.IsUpper(last) {
		return true
	}
	behind := rest[utf8.RuneLen(r):]
	if behind == "" || behind[0] < 'a' || behind[0] > 'z' {
		return false
	}
	return behind[0] != 's' || len(behind) > 1 && isAlphanumeric(behind[1])
}

// common are words that tell nothing of a tool.
var common = set("a an and as at by for from in into is it of on or that the this to with")

// fold returns a word without the ending of an English plural.
func fold(word string) string {
	switch n := len(word); {
	case n > 4 && strings.HasSuffix(word, "ies"):
		return word[:n-3] + "y"
	case n > 4 && (hasAnySuffix(word, "sses", "shes", "ches", "xes", "zes")):
		return word[:n-2]
	case n > 2 && word[n-1] == 's' && !hasAnySuffix(word, "ss", "us", "is"):
		return word[:n-1]
	}
	return word
}

func hasAnySuffix(word string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(word, suffix) {
			return true
		}
	}
	return false
}
