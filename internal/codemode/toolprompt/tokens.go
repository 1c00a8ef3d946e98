package toolprompt

import (
	"unicode"
	"unicode/utf8"
)

// The weights of [Tokens].
const (
	wordRun    = 6 // letters of one part of a word, such as Customer in getCustomer
	digitRun   = 3 // digits
	signRun    = 3 // signs that stand together
	letterRun  = 2 // letters of other alphabets that stand together
	firstIdeog = 0x2E80
)

// Tokens estimates how many tokens a text is for a model. It is the same for a text
// everywhere, and no tokenizer's own count: of declarations, schemas, code and prose in
// English it is within a tenth of what the vocabulary o200k_base makes of them.
//
// A part of a word is one token for each six letters or less; words are split where
// a capital letter follows a small one. Three digits are one token, as are three
// signs that stand together, of which the last is part of the word behind them, and
// two letters of other alphabets than the Latin one. Each character of a script that
// does without spaces is one. A space is part of what follows it, and a line break of
// the signs before it; of other white space each run is one.
func Tokens(text string) int {
	var c counter
	for _, r := range text {
		c.add(r)
	}
	c.end(blank)
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
	// behind is the class of the run before it, and first its first character.
	behind class
	first  rune
}

func (c *counter) add(r rune) {
	next := classOf(r)
	if next != c.class && !(c.class == capital && next == small) {
		c.end(next)
		c.behind, c.length, c.first = c.class, 0, r
	}
	c.class = next
	c.length++
}

// end counts the run that is open, behind which one of a class begins.
func (c *counter) end(next class) {
	switch c.class {
	case blank:
		spaces := c.length - 1
		if c.behind == sign && c.first == '\n' {
			spaces--
		}
		c.tokens += min(1, max(0, spaces))
	case small, capital:
		c.tokens += runs(c.length, wordRun)
	case digit:
		c.tokens += runs(c.length, digitRun)
	case sign:
		if next == small || next == capital {
			c.length--
		}
		c.tokens += runs(c.length, signRun)
	case letter:
		c.tokens += runs(c.length, letterRun)
	case ideograph:
		c.tokens += c.length
	}
}

func runs(length, of int) int { return (length + of - 1) / of }
