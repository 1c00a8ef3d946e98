package lsp

import (
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/wildcard"
)

// toolReferences edits the references to the tool in a tool file or the config file.
func (r *renaming) toolReferences(s *source) {
	s.root.each(func(b *block) {
		r.codeInTest(s, b)
		if b == r.tool.block {
			r.edit(s, b.labels[0].start, b.labels[0].end, r.to)
		}
		if b.kind == "mock" && len(b.labels) == 2 && b.name() == "tools" && b.labels[1].text == r.from {
			r.edit(s, b.labels[1].start, b.labels[1].end, r.to)
		}
		for i := range b.arguments {
			switch a := &b.arguments[i]; {
			case b.kind == "expect" && a.name == "calls":
				for _, q := range s.strings(a) {
					if q.text == "tools "+r.from {
						r.edit(s, q.start+len("tools "), q.end, r.to)
					}
				}
			case nameKind(b, a.name) == "tool", b.kind == "audit" && a.name == "capture":
				r.toolNames(s, b, a)
			default:
				r.toolsInCode(s, b, a)
			}
		}
	})
}

// toolNames edits the name in an argument that names tools. It fails if a pattern or an expression
// decides which tools the argument names.
func (r *renaming) toolNames(s *source, b *block, a *argument) {
	r.computedNames(s, a)
	for _, q := range s.strings(a) {
		switch {
		case strings.Contains(q.text, "${") || strings.Contains(q.text, "%{") || strings.Contains(q.text, `\`):
			r.fail(s, q.start, "the name of a tool is computed here")
		case q.text == r.from:
			if b.kind == "audit" && len(r.index.named("resource", r.from))+len(r.index.named("prompt", r.from)) > 0 {
				r.fail(s, q.start, "%s is also the name of a resource or a prompt", r.from)
			}
			r.edit(s, q.start, q.end, r.to)
		case wildcard.Matches(q.text, r.from) && !wildcard.Matches(q.text, r.to):
			r.fail(s, q.start, "the pattern %s matches %s, but not %s", q.text, r.from, r.to)
		case wildcard.Matches(q.text, r.to) && !wildcard.Matches(q.text, r.from):
			r.fail(s, q.start, "%s matches %s, but not %s", q.text, r.to, r.from)
		}
	}
}

// computedNames fails if the value of an argument is an expression that may have the name: one with a
// variable or a function, or with a local value if the name or a pattern is among the local values.
func (r *renaming) computedNames(s *source, a *argument) {
	tokens := s.valueTokens(a)
	for i, t := range tokens {
		if t.kind != wordToken || t.member {
			continue
		}
		isLocal := t.text == "local" && i+1 < len(tokens) && tokens[i+1].text == "."
		if isLocal && !r.inLocals() {
			continue
		}
		r.fail(s, t.start, "the names of tools are computed here")
	}
}

// inLocals reports whether a local value may have the name of the tool.
func (r *renaming) inLocals() bool {
	for _, d := range r.index.declarations("locals") {
		for i := range d.block.arguments {
			for _, q := range d.source.strings(&d.block.arguments[i]) {
				if q.text == r.from || q.text == r.to || wildcard.Is(q.text) || strings.Contains(q.text, "${") {
					return true
				}
			}
			if slices.ContainsFunc(d.source.valueTokens(&d.block.arguments[i]), func(t token) bool { return t.kind == wordToken && !t.member && t.text != "local" }) {
				return true
			}
		}
	}
	return false
}

// toolsInCode edits the references to the tool in the code of an argument, or in its script file.
func (r *renaming) toolsInCode(s *source, b *block, a *argument) {
	if script, ok := r.scriptOf(s, b, a); ok {
		r.toolsInScript(script)
		return
	}
	c, ok := s.codeOf(b, a)
	if !ok || c.language != cel {
		return
	}
	deciding := slices.Contains([]string{"allow", "deny", "requires_approval", "when"}, a.name)
	// The caller may be a tool that the policy or limit does not cover.
	decides := map[string]bool{"tool": deciding && r.covered(s, b), "call": deciding}
	if !c.literal {
		text := s.text[c.start:c.end]
		if decides["tool"] && hasWord(text, "tool") || decides["call"] && hasWord(text, "call") {
			r.fail(s, c.start, "%s may stand in a template or behind an escape here", r.from)
		} else if strings.Contains(text, r.from) && (strings.Contains(text, "tool.name") || strings.Contains(text, "call.parent")) {
			r.fail(s, c.start, "%s stands in a template or behind an escape here", r.from)
		}
		return
	}
	tokens, _ := tokensOf(s.text, c.start, c.end, cel)
	for i, t := range tokens {
		if decides[t.text] && t.kind == wordToken && isRoot(tokens, i) && !isPlainlyRead(tokens, i) {
			r.fail(s, t.start, "%s is used as a whole here, which has the name of a tool", t.text)
		}
		if !t.member || t.text != "name" && t.text != "parent" || i < 2 {
			continue
		}
		if root := tokens[i-2]; root.member || t.text == "name" && root.text != "tool" || t.text == "parent" && root.text != "call" {
			continue
		}
		r.comparedNames(s, tokens, i, decides[tokens[i-2].text])
	}
}

// isRoot reports whether a word of CEL is a variable, also with a leading dot, not a member.
func isRoot(tokens []token, at int) bool {
	if !tokens[at].member || at < 2 {
		return true
	}
	before := tokens[at-2]
	return before.text == "in" || before.kind != wordToken && before.kind != stringToken && !slices.Contains([]string{")", "]", "}"}, before.text)
}

// isPlainlyRead reports whether CEL reads a member of a variable as in tool.name.
func isPlainlyRead(tokens []token, at int) bool {
	return !tokens[at].member && at+2 < len(tokens) && tokens[at+1].text == "." && tokens[at+2].kind == wordToken && tokens[at+2].member
}

// The tokens that may stand before and after a comparison whose operands are whole. The tokenizer
// gives && and || as two tokens.
var (
	beforeComparison = []string{"", "&", "|", "&&", "||", "(", "[", "{", ",", "?", ":"}
	afterComparison  = []string{"", "&", "|", "&&", "||", ")", "]", "}", ",", "?", ":"}
)

// comparedNames edits the strings that an expression compares with the name of the tool: with == or
// !=, or in a list. It fails for other uses of the name if the expression decides about calls.
func (r *renaming) comparedNames(s *source, tokens []token, at int, decides bool) {
	text := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return tokens[i].text
	}
	var compared []token
	first, last := at-2, at // the comparison
	switch {
	case (text(at+1) == "=" || text(at+1) == "!") && text(at+2) == "=" && at+3 < len(tokens):
		compared, last = tokens[at+3:at+4], at+3
	case text(at-3) == "=" && (text(at-4) == "=" || text(at-4) == "!") && at >= 5:
		compared, first = tokens[at-5:at-4], at-5
	case text(at+1) == "in" && text(at+2) == "[":
		for last = at + 3; last < len(tokens) && tokens[last].text != "]"; last++ {
			if tokens[last].text != "," {
				compared = append(compared, tokens[last])
			}
		}
	case decides:
		r.fail(s, tokens[at].start, "the name of the tool is used here, not compared with one")
	}
	if len(compared) > 0 && (!slices.Contains(beforeComparison, text(first-1)) || !slices.Contains(afterComparison, text(last+1))) {
		r.fail(s, tokens[at].start, "the name of the tool is compared with an expression here")
	}
	for _, t := range compared {
		switch name, ok := unquote(t); {
		case !ok:
			r.fail(s, t.start, "the name of the tool is compared with an expression here")
		case name == r.from:
			r.edit(s, t.start+1, t.end-1, r.to)
		case name == r.to:
			r.fail(s, t.start, "%s is the name of another tool here", r.to)
		}
	}
}

// unquote returns the text of a string token without prefix and escapes.
func unquote(t token) (text string, ok bool) {
	if t.kind != stringToken || len(t.text) < 2 || t.text[0] != t.text[len(t.text)-1] || strings.ContainsAny(t.text[1:len(t.text)-1], "\\\"'`") || strings.Contains(t.text, "${") {
		return "", false
	}
	return t.text[1 : len(t.text)-1], true
}

// codeInTest fails if a test gives a tool that is not in the files, such as run_code, a text that has
// the name of the tool: the text may be code that calls it.
func (r *renaming) codeInTest(s *source, b *block) {
	if b.kind != "test" || b.outer.outer != nil {
		return
	}
	called, a := s.literal(b, "tool"), b.argument("input")
	if a == nil || called == "" || len(r.index.named("tool", called)) > 0 {
		return
	}
	for _, t := range s.valueTokens(a) {
		if t.kind == stringToken && hasWord(t.text, r.tool.name()) {
			r.fail(s, t.start, "the test gives %s a text with the name %s", called, r.tool.name())
		}
	}
}

// hasWord reports whether a text has a word that is not part of a longer one.
func hasWord(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(word)
		if (start == 0 || !isWordByte(text[start-1])) && (end == len(text) || !isWordByte(text[end])) {
			return true
		}
		at = end
	}
}

// invalidInput edits the pointers to the input in the expected message of a test. The messages of
// INVALID_INPUT come from mcpd, and name inputs as in "/id is missing".
func (r *renaming) invalidInput(s *source, test *block) {
	for _, b := range test.blocks {
		a := b.argument("message_matches")
		if b.kind != "expect" || a == nil || s.literal(b, "error") != "INVALID_INPUT" {
			continue
		}
		for _, q := range s.strings(a) {
			for at := 0; ; {
				i := strings.Index(q.text[at:], "/"+r.from)
				if i < 0 {
					break
				}
				start := at + i + 1
				at = start + len(r.from)
				if at == len(q.text) || !isWordByte(q.text[at]) {
					r.edit(s, q.start+start, q.start+at, r.to)
				}
			}
		}
	}
}

// inputReferences edits the references to the input in a tool file or the config file.
func (r *renaming) inputReferences(s *source) {
	s.root.each(func(b *block) {
		if b == r.input {
			r.edit(s, b.labels[0].start, b.labels[0].end, r.to)
		}
		r.codeInTest(s, b)
		if b.kind == "test" && b.outer.outer == nil && s.literal(b, "tool") == r.tool.name() {
			r.invalidInput(s, b)
			if a := b.argument("input"); a != nil {
				r.testInput(s, a)
			}
		}
		for i := range b.arguments {
			a := &b.arguments[i]
			if script, ok := r.scriptOf(s, b, a); ok {
				r.inputInScript(script)
			} else if c, ok := s.codeOf(b, a); ok && c.language == cel && r.covered(s, b) {
				r.inputInCEL(s, b, c)
			}
		}
	})
}

// covered reports whether CEL in a block may read the arguments of the tool.
func (r *renaming) covered(s *source, b *block) bool {
	for ; b != nil; b = b.outer {
		switch b.kind {
		case "tool":
			return b == r.tool.block
		case "policy", "limit":
			return slices.ContainsFunc(r.coveredTools(s, b), func(d declared) bool { return d.block == r.tool.block })
		}
	}
	return false
}

// coveredTools returns the tools of a policy or limit.
func (r *renaming) coveredTools(s *source, b *block) (tools []declared) {
	if b.argument("tools") == nil {
		if b.argument("resources") != nil || b.argument("prompts") != nil {
			return nil
		}
		return r.index.declarations("tool")
	}
	if a := b.argument("tools"); slices.ContainsFunc(s.valueTokens(a), func(t token) bool { return t.kind == wordToken }) {
		return r.index.declarations("tool") // computed
	}
	for _, pattern := range s.stringsOf(b, "tools") {
		tools = append(tools, r.index.named("tool", pattern)...)
	}
	return tools
}

// inputInCEL edits args.NAME in an expression.
func (r *renaming) inputInCEL(s *source, b *block, c code) {
	text := s.text[c.start:c.end]
	if !strings.Contains(text, "args") {
		return
	}
	if !c.literal {
		if strings.Contains(text, r.from) {
			r.fail(s, c.start, "%s stands in a template or behind an escape here", r.from)
		}
		return
	}
	tokens, _ := tokensOf(s.text, c.start, c.end, cel)
	for i, t := range tokens {
		if t.text != "args" || t.kind != wordToken || t.member {
			continue
		}
		name, kind := r.memberAfter(tokens, i)
		if i > 1 && tokens[i-1].text == "in" && kind == unknownMember { // "x" in args
			if quoted, ok := unquote(tokens[i-2]); ok {
				name, kind = token{text: quoted, start: tokens[i-2].start + 1, end: tokens[i-2].end - 1}, quotedMember
			}
		}
		switch {
		case kind == unknownMember:
			r.fail(s, t.start, "all arguments are used here, which may include %s", r.from)
		case name.text != r.from:
		case r.shared(s, b):
			r.fail(s, t.start, "args.%s is here an argument of other tools, too", r.from)
		default:
			r.edit(s, name.start, name.end, r.to)
		}
	}
}

// shared reports whether a policy or limit covers another tool with an input of the same name.
func (r *renaming) shared(s *source, b *block) bool {
	if b.enclosing("tool") != nil {
		return false
	}
	return slices.ContainsFunc(r.coveredTools(s, b), func(d declared) bool {
		return d.block != r.tool.block && (d.block.argument("input_schema") != nil || slices.ContainsFunc(inputsOf(d), func(f field) bool { return f.name() == r.from }))
	})
}

// memberKind says how code reads a member of an object.
type memberKind int

const (
	unknownMember memberKind = iota // the object as a whole, or a computed member
	dotMember
	quotedMember
)

// memberAfter returns the member that follows an object: object.name, object?.name or object["name"].
// The token has the range of the name, without quotes.
func (r *renaming) memberAfter(tokens []token, at int) (name token, kind memberKind) {
	rest := tokens[at+1:]
	for len(rest) > 0 && rest[0].kind == commentToken {
		rest = rest[1:]
	}
	switch {
	case len(rest) > 1 && (rest[0].text == "." || rest[0].text == "?.") && rest[1].text != "[":
		return rest[1], dotMember
	case len(rest) > 2 && rest[0].text == "[" && rest[2].text == "]":
		if text, ok := unquote(rest[1]); ok {
			return token{text: text, start: rest[1].start + 1, end: rest[1].end - 1}, quotedMember
		}
	}
	return token{}, unknownMember
}

// testInput edits the key in the input of a test.
func (r *renaming) testInput(s *source, a *argument) {
	tokens := s.valueTokens(a)
	if len(tokens) == 0 || tokens[0].text != "{" {
		r.fail(s, a.start, "the input of the test is computed here")
		return
	}
	depth, isKey := 0, false
	for i, t := range tokens {
		switch t.text {
		case "{", "[", "(":
			if depth == 1 && t.text == "(" && isKey {
				r.fail(s, t.start, "a key of the input is computed here")
			}
			depth++
			isKey = depth == 1
			continue
		case "}", "]", ")":
			depth--
			continue
		case ",":
			isKey = depth == 1
			continue
		}
		if depth != 1 || t.kind == commentToken {
			continue
		}
		if !isKey && i > 0 && strings.Contains(s.text[tokens[i-1].end:t.start], "\n") && i+1 < len(tokens) && (tokens[i+1].text == "=" || tokens[i+1].text == ":") {
			isKey = true
		}
		if !isKey {
			continue
		}
		isKey = false
		switch name, quoted := unquote(t); {
		case quoted && name == r.from:
			r.edit(s, t.start+1, t.end-1, r.to)
		case t.text == r.from:
			r.edit(s, t.start, t.end, r.to)
		case t.kind == stringToken && !quoted:
			r.fail(s, t.start, "a key of the input is computed here")
		}
	}
}
