package compiler

import (
	"fmt"
	"strings"

	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// maxFullCheck is the maximum size of a script that is always compiled, so that all errors are
// reported at once. Compiling it costs little more than splitting it into tokens.
const maxFullCheck = 16 << 10

// checkTokens reports errors in the names and the shape of a large script that its tokens prove.
// Splitting into tokens is many times faster than compiling. It returns true if there are errors;
// others are reported once these are fixed.
func (c *compilation) checkTokens(f syntax.Features) (refused bool) {
	text := c.src.Text
	if len(text.Body()) <= maxFullCheck || len(f.Modules) > 0 {
		return false
	}
	s := c.scanTokens()
	if s == nil {
		return false
	}
	if c.checkPrivate(s) {
		return true
	}
	c.checkMembers(s.found)
	c.checkNames(s.found)
	if s.isFunctionOnly() {
		c.reportUncalled(file.Idx(s.start + 1))
	}
	if c.list.HasErrors() {
		return true
	}
	c.list = nil // the compiled script repeats the warnings
	return false
}

// scanTokens returns the uses of names in the tokens of the script; nil if it cannot be tokenized.
// Positions are offsets in the script.
func (c *compilation) scanTokens() *tokenScan {
	s := &tokenScan{Lexer: syntax.Lexer{Src: c.text, TypeScript: c.src.Language == source.TS}, isChecked: c.isChecked, found: analysisOf(nil), ambiguous: map[string]bool{}, private: map[string]syntax.Token{}, declaredPrivate: map[string]bool{}}
	if !s.run() {
		return nil
	}
	c.origin = Origin{text: c.src.Text, body: segment{length: len(c.text)}}
	return s
}

// isChecked reports whether the use of a name may be an error.
func (c *compilation) isChecked(name string) bool {
	if name == "vars" || isGranting(name) {
		return true
	}
	_, absent := c.unknownNameAdvice(name)
	return absent
}

// tokenScan finds the uses of checked names in the tokens of a script. A name is ambiguous, and not
// reported, if it may be declared, is an operand of typeof, or is part of a type.
type tokenScan struct {
	syntax.Lexer
	isChecked func(string) bool
	found     *analysis
	ambiguous map[string]bool
	// private are the first uses of names like #a, and declaredPrivate the names that a class
	// declares.
	private         map[string]syntax.Token
	declaredPrivate map[string]bool
	// previous are the tokens before the current one, last first.
	previous [3]syntax.Token
	// outer are the tokens outside of all brackets, up to one more than a function has. start is
	// the offset of the first token.
	outer []syntax.Token
	start int
}

// maxOuter is the number of tokens of async function* f(…) {…} outside of its brackets.
const maxOuter = 6

// run reports whether the script could be tokenized, without escapes in names.
func (s *tokenScan) run() bool {
	t := s.Next()
	for s.start = t.Start; t.Kind != syntax.End; {
		if t.Kind == syntax.Word && strings.Contains(t.Text, `\`) {
			return false
		}
		if len(s.Brackets) == 0 && len(s.outer) <= maxOuter {
			s.outer = append(s.outer, t)
		}
		depth, next := len(s.Brackets), s.Next()
		s.token(t, next, depth)
		s.previous[2], s.previous[1], s.previous[0] = s.previous[1], s.previous[0], t
		t = next
	}
	for name := range s.ambiguous {
		delete(s.found.refs, name)
	}
	return s.Err == nil
}

// token handles a token, given the next one and the number of brackets around it.
func (s *tokenScan) token(t, next syntax.Token, depth int) {
	switch {
	case t.Kind == syntax.Word && t.Text[0] == '#':
		s.privateName(t, next)
	case t.Member:
		s.member(t, next)
	case t.Text == "globalThis":
		s.found.refs[t.Text] = file.Idx(t.Start + 1)
	case t.Kind != syntax.Word && t.Kind != syntax.Keyword || !s.isChecked(t.Text):
	case next.Text != "(" && next.Text != "." && next.Text != "?.", !s.expression(t, next.Text == "(", depth):
		s.ambiguous[t.Text] = true
	default:
		if _, again := s.found.refs[t.Text]; !again {
			s.found.refs[t.Text] = file.Idx(t.Start + 1)
		}
	}
}

func (s *tokenScan) member(t, next syntax.Token) {
	object := s.previous[1]
	if object.Member || object.Text != "vars" && !isGranting(object.Text) {
		return
	}
	s.found.members = append(s.found.members, member{object.Text, t.Text, file.Idx(t.Start + 1), file.Idx(t.End + 1)})
	if syntax.Assigns(next.Text) {
		s.found.assigned[object.Text+"."+t.Text] = true
	}
}

// privateName records the private name of a member, after a dot or in a class.
func (s *tokenScan) privateName(t, next syntax.Token) {
	_, again := s.private[t.Text]
	switch {
	case !t.Member && next.Text != "in":
		s.declaredPrivate[t.Text] = true
	case !again:
		s.private[t.Text] = t
	}
}

// expression reports whether a name before a dot or, if called, a parenthesis can only be the start
// of an expression.
func (s *tokenScan) expression(t syntax.Token, called bool, depth int) bool {
	last, before := s.previous[0], s.previous[1]
	switch {
	case last.Member:
		return false
	case last.Kind == syntax.End || last.Kind == syntax.Semicolon:
		return !called || depth == 0
	case last.Text == "{" || last.Text == "}":
		return !called
	case last.Text == "await" || last.Text == "return" || last.Text == "throw":
		return true
	case last.Text == "(":
		return before.Member
	case last.Text == "=":
		return called || syntax.Declares(s.previous[2])
	case last.Kind == syntax.Close || last.Kind == syntax.Operand:
		return !called && t.Newline
	}
	return false
}

// isFunctionOnly reports whether the script is one function and nothing else. Plain functions are
// checked in the tree, which is correct for lowered scripts.
func (s *tokenScan) isFunctionOnly() bool {
	tokens := s.outer
	async := len(tokens) > 1 && tokens[0].Text == "async" && !tokens[1].Newline
	if async {
		tokens = tokens[1:]
	}
	if len(tokens) == 0 || tokens[0].Text != "function" {
		return len(tokens) == 3 && tokens[1].Text == "=>" && tokens[2].Text == "}"
	}
	tokens = tokens[1:]
	if len(tokens) > 0 && tokens[0].Text == "*" {
		tokens, async = tokens[1:], true
	}
	return async && len(tokens) == 3 && tokens[1].Text == ")" && tokens[2].Text == "}"
}

// checkPrivate reports the first private name that no class declares.
func (c *compilation) checkPrivate(s *tokenScan) bool {
	var first syntax.Token
	for name, use := range s.private {
		if !s.declaredPrivate[name] && (first.Text == "" || use.Start < first.Start) {
			first = use
		}
	}
	if first.Text == "" {
		return false
	}
	c.reject(diag.Diagnostic{
		Code: "script-syntax", Range: c.src.Text.Range(first.Start, first.End),
		Summary: fmt.Sprintf("private name %q must be declared in an enclosing class", first.Text),
		Detail:  "add " + first.Text + " to the class, or write the name without #",
	})
	return true
}
