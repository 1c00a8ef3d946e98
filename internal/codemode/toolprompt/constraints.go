package toolprompt

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxNumber bounds a shown number, and maxNote another shown value, in bytes.
	maxNumber = 24
	maxNote   = 80
)

// comment returns the comment for a schema, with a line break at its end; "" if there is none, or
// no room for it.
func (p *printer) comment(n *node, indent string) string {
	if p.remaining < 0 || p.comments < 0 {
		return ""
	}
	text := comment(p.docLines(n), indent)
	p.comments -= len(text)
	return text
}

// docLines returns the comment lines for a schema, which state what its type does not.
func (p *printer) docLines(n *node) []string {
	var lines []string
	if p.detail < WithoutMembers {
		lines = commentLines(strings.Join([]string{usefulTitle(n.stringMember("title")), n.stringMember("description")}, "\n"), maxMemberLines)
	}
	if p.detail >= WithoutConstraints {
		return lines
	}
	noted := strings.Join(p.constraintNotes(n), ", ")
	switch {
	case noted == "":
		return lines
	case len(lines) == 1:
		return []string{lines[0] + " (" + noted + ")"}
	}
	return append(lines, noted)
}

// maxMemberLines bounds the lines that describe a member.
const maxMemberLines = 8

// usefulTitle returns a title with at least three words. Shorter ones are often generated from
// names.
func usefulTitle(title string) string {
	if strings.Count(strings.TrimSpace(title), " ") < 2 {
		return ""
	}
	return title
}

// constraintNotes returns the constraints of a schema, of its items, and of its only
// alternative to null.
func (p *printer) constraintNotes(n *node) []string {
	noted := p.constraints(n)
	if items := n.memberOfKind(objectKind, "items"); items != nil {
		if each := p.constraints(items); len(each) > 0 {
			noted = append(noted, "each "+strings.Join(each, ", "))
		}
	}
	if one := nonNullAlternative(n); one != nil {
		noted = append(noted, p.constraints(one)...)
	}
	return noted
}

// nonNullAlternative returns the only alternative to null in a schema, or nil.
func nonNullAlternative(n *node) *node {
	for _, keyword := range alternatives {
		choices := n.memberOfKind(listKind, keyword)
		if choices == nil || len(choices.items) != 2 {
			continue
		}
		a, b := &choices.items[0], &choices.items[1]
		if a.stringMember("type") == "null" {
			a, b = b, a
		}
		if b.stringMember("type") == "null" {
			return a
		}
	}
	return nil
}

func (p *printer) constraints(n *node) []string {
	var c []string
	add := func(name string, format string) {
		if m := n.member(name); m != nil && !isSafeInteger(n, m) && (m.kind == numberKind || m.kind == textKind) {
			c = append(c, fmt.Sprintf(format, scalarText(m)))
		}
	}
	if t := n.stringMember("type"); t == "integer" || t == "bigint" {
		c = append(c, "integer")
	}
	add("minimum", ">= %s")
	add("exclusiveMinimum", "> %s")
	add("maximum", "<= %s")
	add("exclusiveMaximum", "< %s")
	add("multipleOf", "a multiple of %s")
	c = append(c, countRange(n, "minLength", "maxLength", "character")...)
	add("pattern", "pattern %s")
	add("format", "format %s")
	add("contentEncoding", "in %s")
	c = append(c, countRange(n, "minItems", "maxItems", "item")...)
	if n.isTrue("uniqueItems") {
		c = append(c, "all different")
	}
	c = append(c, countRange(n, "minProperties", "maxProperties", "member")...)
	if values := n.memberOfKind(listKind, "enum"); values != nil && len(values.items) > p.limits.literals {
		c = append(c, fmt.Sprintf("%d of %d values are shown", p.limits.literals, len(values.items)))
	}
	if value := n.member("default"); value != nil && value.kind != nullKind {
		c = append(c, "default "+singleLine(value.raw, maxNote))
	}
	if examples := n.memberOfKind(listKind, "examples"); examples != nil && len(examples.items) > 0 {
		c = append(c, "such as "+singleLine(examples.items[0].raw, maxNote))
	}
	if n.isTrue("deprecated") {
		c = append(c, "deprecated")
	}
	return c
}

// isSafeInteger reports whether m is a bound that every integer in TypeScript satisfies.
func isSafeInteger(n, m *node) bool {
	return n.stringMember("type") == "integer" && strings.TrimPrefix(m.raw, "-") == "9007199254740991"
}

// scalarText returns a scalar value for a comment.
func scalarText(v *node) string {
	if v.kind == textKind {
		return singleLine(v.text, maxNote)
	}
	return singleLine(v.raw, maxNumber)
}

// countRange formats the minimum and maximum count of a noun.
func countRange(n *node, least, max, noun string) []string {
	low, some := n.count(least)
	high, bounded := n.count(max)
	switch {
	case bounded && low == high:
		return []string{plural(low, noun)}
	case bounded && low > 0:
		return []string{fmt.Sprintf("%d to %s", low, plural(high, noun))}
	case bounded:
		return []string{"at most " + plural(high, noun)}
	case some && low > 0:
		return []string{"at least " + plural(low, noun)}
	}
	return nil
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// count returns a member that is an integer of at most nine digits.
func (n *node) count(name string) (int, bool) {
	m := n.memberOfKind(numberKind, name)
	if m == nil || len(m.raw) > 9 {
		return 0, false
	}
	count, err := strconv.Atoi(m.raw)
	return count, err == nil && count >= 0
}

// maxWord bounds a word, in bytes; the rest is ignored.
const maxWord = 48

// splitWords calls yield with each word of a text, in lower case, until it returns false. Words
// are sequences of letters and digits; an upper-case letter after a lower-case one starts a
// word, as does the last of several upper-case letters before a lower-case one. In scripts
// without spaces each character is a word.
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
	last := rune(0) // the previous character of the current word, or 0
	for i, r := range text {
		single := isIdeograph(r)
		if last != 0 && (single || !isLetter(r) || startsWord(last, r, text[i:])) {
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

// isIdeograph reports whether a character is a word by itself.
func isIdeograph(r rune) bool {
	return r >= firstIdeog && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// startsWord reports whether r, the start of rest, starts a word after last. The plural s in
// IDs does not.
func startsWord(last, r rune, rest string) bool {
	if !unicode.IsUpper(r) {
		return false
	}
	if !unicode.IsUpper(last) {
		return true
	}
	next := rest[utf8.RuneLen(r):]
	if next == "" || next[0] < 'a' || next[0] > 'z' {
		return false
	}
	return next[0] != 's' || len(next) > 1 && isAlphanumeric(next[1])
}

// stopWords are words without meaning for the search.
var stopWords = set("a an and as at by for from in into is it of on or that the this to with")

// stem removes an English plural ending.
func stem(word string) string {
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
