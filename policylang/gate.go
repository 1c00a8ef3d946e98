package policylang

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// What an expression may have at most. CEL's parser and checker are recursive
// and slow down faster than their input grows, so they never see more.
const (
	maxBytes = 16 << 10
	// maxTokens counts everything, maxParts all but literals and commas: a
	// list of values may be long.
	maxTokens   = 2000
	maxParts    = 600
	maxNesting  = 24
	maxPrefixes = 8
	maxChoices  = 24
)

// complaint is a mistake before its place is known.
type complaint struct {
	summary, detail string
}

// gate cuts an expression into tokens and refuses, in linear time, what CEL's
// parser should not see. The complaint is about the last token.
func gate(src string) ([]token, *complaint) {
	if len(src) > maxBytes {
		return []token{{tokenEOF, 0, 0}}, tooMuch("is longer than", maxBytes, "bytes")
	}
	if !utf8.ValidString(src) {
		return []token{{tokenEOF, 0, 0}}, &complaint{"the expression is not valid UTF-8", "save the file as UTF-8"}
	}
	g := gatekeeper{lexer: lexer{src: src}}
	for {
		tok, mistake := g.lexer.next()
		g.tokens = append(g.tokens, tok)
		if mistake == nil {
			mistake = g.admit(tok)
		}
		if mistake != nil || tok.kind == tokenEOF {
			return g.tokens, mistake
		}
	}
}

type gatekeeper struct {
	lexer    lexer
	tokens   []token
	open     []token
	parts    int
	prefixes int
	choices  int
}

func (g *gatekeeper) text(t token) string { return g.lexer.src[t.start:t.end] }

func (g *gatekeeper) admit(tok token) *complaint {
	if len(g.tokens) > maxTokens {
		return tooMuch("has more than", maxTokens, "words and signs")
	}
	if tok.kind == tokenIdent || tok.kind == tokenOperator && g.text(tok) != "," {
		if g.parts++; g.parts > maxParts {
			return tooMuch("has more than", maxParts, "names and operators")
		}
	}
	switch tok.kind {
	case tokenEOF:
		return g.end()
	case tokenIdent:
		if mistake := g.foreignWord(tok); mistake != nil {
			return mistake
		}
	case tokenOperator:
		return g.operator(tok)
	}
	g.prefixes = 0
	return nil
}

// foreignWord knows what other languages write for CEL's operators.
func (g *gatekeeper) foreignWord(tok token) *complaint {
	afterOperand := len(g.tokens) > 1 && g.endsOperand(g.tokens[len(g.tokens)-2])
	switch word := g.text(tok); {
	case afterOperand && g.text(g.tokens[len(g.tokens)-2]) == "not":
		g.tokens = g.tokens[:len(g.tokens)-1]
		return &complaint{"there is no operator \"not\"", "write ! instead"}
	case word == "and" && afterOperand:
		return &complaint{"there is no operator \"and\"", "write && instead"}
	case word == "or" && afterOperand:
		return &complaint{"there is no operator \"or\"", "write || instead"}
	case afterOperand && word != "in":
		return &complaint{
			fmt.Sprintf("unexpected %s after %s", shorten(word), shorten(g.text(g.tokens[len(g.tokens)-2]))),
			"an operator is missing between the two, such as &&, || or ==",
		}
	}
	return nil
}

func (g *gatekeeper) endsOperand(t token) bool {
	switch t.kind {
	case tokenNumber, tokenString:
		return true
	case tokenIdent:
		return g.text(t) != "in"
	}
	switch g.text(t) {
	case ")", "]", "}":
		return true
	}
	return false
}

func (g *gatekeeper) operator(tok token) *complaint {
	text := g.text(tok)
	switch text {
	case "!", "-":
		if g.prefixes++; g.prefixes > maxPrefixes {
			return tooMuch("has a run of more than", maxPrefixes, "of the signs ! and -")
		}
		return nil
	case "(", "[", "{":
		if g.open = append(g.open, tok); len(g.open) > maxNesting {
			return tooMuch("nests brackets deeper than", maxNesting, "levels")
		}
	case ")", "]", "}":
		return g.close(text)
	case "?":
		if g.choices++; g.choices > maxChoices {
			return tooMuch("has more than", maxChoices, "of the signs ?")
		}
	}
	g.prefixes = 0
	return nil
}

func (g *gatekeeper) close(text string) *complaint {
	g.prefixes = 0
	if len(g.open) == 0 {
		return &complaint{fmt.Sprintf("this %s closes nothing", quote(text)), "remove it, or add what it should close"}
	}
	opened := g.open[len(g.open)-1]
	g.open = g.open[:len(g.open)-1]
	if want := closer(g.text(opened)); want != text {
		return &complaint{
			fmt.Sprintf("this %s does not close the %s before it", quote(text), quote(g.text(opened))),
			fmt.Sprintf("write %s", quote(want)),
		}
	}
	return nil
}

// end complains of a bracket that is still open, at the bracket.
func (g *gatekeeper) end() *complaint {
	if len(g.tokens) == 1 {
		return &complaint{"the expression is empty", "write a CEL expression, such as args.amount <= 5000"}
	}
	if len(g.open) == 0 {
		return nil
	}
	opened := g.open[len(g.open)-1]
	g.tokens = append(g.tokens, opened)
	return &complaint{
		fmt.Sprintf("this %s is never closed", quote(g.text(opened))),
		fmt.Sprintf("add %s", quote(closer(g.text(opened)))),
	}
}

func closer(opened string) string {
	switch opened {
	case "(":
		return ")"
	case "[":
		return "]"
	default:
		return "}"
	}
}

func tooMuch(what string, limit int, unit string) *complaint {
	return &complaint{
		fmt.Sprintf("the expression %s %d %s", what, limit, unit),
		"split it into several policies, or compare with a list",
	}
}

func quote(s string) string { return strconv.Quote(s) }
