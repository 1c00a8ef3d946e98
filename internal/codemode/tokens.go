package codemode

import (
	"unicode"
	"unicode/utf8"
)

// The weights of [Tokens].
const (
	wordBytes  = 7 // letters of one part of a word, such as Customer in getCustomer
	digitRun   = 3 // digits
	signRun    = 2 // signs that stand together
	letterRun  = 2 // letters of other alphabets that stand together
	firstIdeog = 0x2E80
)

// Tokens estimates how many tokens a text is for a model. It is the same for a text
// everywhere, and no tokenizer's own count.
//
// A part of a word is one token for each seven letters or less: words are split where
// a capital letter follows a small one, and at every sign. Three digits are one, as
// are two signs that stand together, two letters of other alphabets than the Latin
// one, and each character of a script that does without spaces. A space in front of
// a word is part of it; other white space is one for each run.
func Tokens(text string) int {
	var c counter
	for _, r := range text {
		c.add(r)
	}
	c.end()
	return c.tokens
}

// class is what a character counts as.
type class int

const (
	blank class = iota
	small
	capital
	digit
	sign
	letter
	ideograph
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z':
		return small
	case 'A' <= r && r <= 'Z':
		return capital
	case '0' <= r && r <= '9':
		return digit
	case r == ' ' || r == '\n' || r == '\t' || r == '\r':
		return blank
	case r < utf8.RuneSelf:
		return sign
	case r >= firstIdeog || !unicode.IsLetter(r):
		return ideograph
	}
	return letter
}

// counter counts the tokens of a text from its first character to its last.
type counter struct {
	tokens int
	// class is that of the run that is open, and length how long it is.
	class  class
	length int
	// space says that the blank run is one space.
	space bool
}

func (c *counter) add(r rune) {
	next := classOf(r)
	if next != c.class && !(c.class == capital && next == small) {
		c.end()
		c.length = 0
	}
	if next == blank {
		c.space = c.length == 0 && r == ' '
	}
	c.class = next
	c.length++
}

// end counts the run that is open.
func (c *counter) end() {
	switch c.class {
	case blank:
		if c.length > 0 && !c.space {
			c.tokens++
		}
	case small, capital:
		c.tokens += runs(c.length, wordBytes)
	case digit:
		c.tokens += runs(c.length, digitRun)
	case sign:
		c.tokens += runs(c.length, signRun)
	case letter:
		c.tokens += runs(c.length, letterRun)
	case ideograph:
		c.tokens += c.length
	}
}

func runs(length, of int) int { return (length + of - 1) / of }
