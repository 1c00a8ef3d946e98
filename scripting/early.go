package scripting

import (
	"fmt"
	"strings"

	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
)

// maxThorough is the size of a body of which everything is told at once,
// whatever its tokens show: compiling it costs little more than they do.
const maxThorough = 16 << 10

// early reports errors in the names and the shape of a large body that its
// tokens prove, before the body is compiled: compiling takes many times as long
// as cutting into tokens. It returns true if there are any; other errors are
// reported once these are fixed.
func (c *compilation) early(f features) (refused bool) {
	text := c.src.Text
	if len(text.Body()) <= maxThorough || len(f.modules) > 0 {
		return false
	}
	s := c.scan()
	if s == nil {
		return false
	}
	if c.checkPrivate(s) {
		return true
	}
	c.checkMembers(s.found)
	c.checkNames(s.found)
	if s.uncalled() {
		c.uncalled(file.Idx(s.start + 1))
	}
	if c.list.HasErrors() {
		return true
	}
	c.list = nil // the compiled body repeats the warnings
	return false
}

// scan returns what the tokens of the body say about names, or nil if it cannot
// be read. Positions are those in the body itself.
func (c *compilation) scan() *scan {
	s := &scan{lexer: lexer{src: c.text, ts: c.src.Language == TS}, watched: c.watched, found: analyse(nil), doubtful: map[string]bool{}, private: map[string]lexeme{}, owned: map[string]bool{}}
	if !s.run() {
		return nil
	}
	c.origin = origin{text: c.src.Text, body: segment{length: len(c.text)}}
	return s
}

// watched reports whether a body may be refused because of how it uses a name.
func (c *compilation) watched(name string) bool {
	if name == "vars" || isGranting(name) {
		return true
	}
	_, absent := c.absent(name)
	return absent
}

// scan finds the uses of watched names in the tokens of a body. A name that
// stands anywhere where it may be declared, asked for with typeof, or a part of
// a type, is doubtful, and nothing is said of it.
type scan struct {
	lexer
	watched  func(string) bool
	found    *analysis
	doubtful map[string]bool
	// private are the first uses of names like #a, and owned those that some
	// class declares.
	private map[string]lexeme
	owned   map[string]bool
	// past are the tokens before the present one, the last of them first.
	past [3]lexeme
	// outer are the tokens outside of all brackets, at most one more than a
	// function has, and start is where the first token of all begins.
	outer []lexeme
	start int
}

// maxOuter is how many tokens of async function* f(…) {…} stand outside of its brackets.
const maxOuter = 6

// run reports whether the body could be read, with names that are what they
// look like.
func (s *scan) run() bool {
	t := s.next()
	for s.start = t.start; t.kind != tokenEnd; {
		if t.kind == tokenWord && strings.Contains(t.text, `\`) {
			return false
		}
		if len(s.braces) == 0 && len(s.outer) <= maxOuter {
			s.outer = append(s.outer, t)
		}
		depth, next := len(s.braces), s.next()
		s.token(t, next, depth)
		s.past[2], s.past[1], s.past[0] = s.past[1], s.past[0], t
		t = next
	}
	for name := range s.doubtful {
		delete(s.found.refs, name)
	}
	return s.err == nil
}

// token notices a token that has another behind it and so many brackets around it.
func (s *scan) token(t, next lexeme, depth int) {
	switch {
	case t.kind == tokenWord && t.text[0] == '#':
		s.hidden(t, next)
	case t.member:
		s.member(t, next)
	case t.text == "globalThis":
		s.found.refs[t.text] = file.Idx(t.start + 1)
	case t.kind != tokenWord && t.kind != tokenKeyword || !s.watched(t.text):
	case next.text != "(" && next.text != "." && next.text != "?.", !s.expression(t, next.text == "(", depth):
		s.doubtful[t.text] = true
	default:
		if _, again := s.found.refs[t.text]; !again {
			s.found.refs[t.text] = file.Idx(t.start + 1)
		}
	}
}

func (s *scan) member(t, next lexeme) {
	object := s.past[1]
	if object.member || object.text != "vars" && !isGranting(object.text) {
		return
	}
	s.found.members = append(s.found.members, member{object.text, t.text, file.Idx(t.start + 1), file.Idx(t.end + 1)})
	if assigns(next.text) {
		s.found.assigned[object.text+"."+t.text] = true
	}
}

// hidden notices the private name of a member, behind a dot or in a class.
func (s *scan) hidden(t, next lexeme) {
	_, again := s.private[t.text]
	switch {
	case !t.member && next.text != "in":
		s.owned[t.text] = true
	case !again:
		s.private[t.text] = t
	}
}

// expression reports whether a name in front of a dot or, where it is called, a
// parenthesis can be nothing but the beginning of an expression.
func (s *scan) expression(t lexeme, called bool, depth int) bool {
	last, before := s.past[0], s.past[1]
	switch {
	case last.member:
		return false
	case last.kind == tokenEnd || last.kind == tokenSemicolon:
		return !called || depth == 0
	case last.text == "{" || last.text == "}":
		return !called
	case last.text == "await" || last.text == "return" || last.text == "throw":
		return true
	case last.text == "(":
		return before.member
	case last.text == "=":
		return called || declares(s.past[2])
	case last.kind == tokenClose || last.kind == tokenOperand:
		return !called && t.newline
	}
	return false
}

// uncalled reports whether the body is one function, and nothing else. Plain
// functions are left to the tree, which knows what lowering makes of them.
func (s *scan) uncalled() bool {
	tokens := s.outer
	async := len(tokens) > 1 && tokens[0].text == "async" && !tokens[1].newline
	if async {
		tokens = tokens[1:]
	}
	if len(tokens) == 0 || tokens[0].text != "function" {
		return len(tokens) == 3 && tokens[1].text == "=>" && tokens[2].text == "}"
	}
	tokens = tokens[1:]
	if len(tokens) > 0 && tokens[0].text == "*" {
		tokens, async = tokens[1:], true
	}
	return async && len(tokens) == 3 && tokens[1].text == ")" && tokens[2].text == "}"
}

// checkPrivate reports the first private name that no class declares.
func (c *compilation) checkPrivate(s *scan) bool {
	var first lexeme
	for name, use := range s.private {
		if !s.owned[name] && (first.text == "" || use.start < first.start) {
			first = use
		}
	}
	if first.text == "" {
		return false
	}
	c.reject(diag.Diagnostic{
		Code: "script-syntax", Range: c.src.Text.Range(first.start, first.end),
		Summary: fmt.Sprintf("private name %q must be declared in an enclosing class", first.text),
		Detail:  "add " + first.text + " to the class, or write the name without #",
	})
	return true
}
