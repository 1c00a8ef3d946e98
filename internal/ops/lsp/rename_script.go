package lsp

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/wildcard"
)

// renamedScript is a script in a tool file or a file of its own, or a file that it imports.
type renamedScript struct {
	*source
	tokens []token
	// block has the script.
	block *block
	owner *source
	// input and context are the names of the input and of the context; context is "" in an inline
	// script. A module has both names and the names of globals.
	input, context string
	// parameters and body are the indexes of the first parameter of a module, and of the token after
	// all of them. They are 0 for other scripts.
	parameters, body int
	imported         bool
}

// maxImports bounds the files that one script imports.
const maxImports = 100

// scriptOf returns the script of an argument.
func (r *renaming) scriptOf(s *source, b *block, a *argument) (script *renamedScript, ok bool) {
	if path := s.fileOf(a); path != "" && languageOf(b, a.name, "").isScript() {
		l := scriptLanguage(path)
		file := r.file(path)
		if l == noCode || file == nil {
			return nil, false
		}
		script = &renamedScript{source: file, block: b, owner: s}
		r.tokenize(script, 0, len(file.text), l)
		return script, true
	}
	if a.value == a.valueEnd || !languageOf(b, a.name, s.text[a.value:a.valueEnd]).isScript() {
		return nil, false
	}
	script = &renamedScript{source: s, block: b, owner: s}
	c, isCode := s.codeOf(b, a)
	if !isCode || !c.literal {
		if strings.Contains(s.text[a.value:a.valueEnd], r.from) {
			r.fail(s, a.start, "%s stands in a computed script here, in a template or behind an escape", r.from)
		}
		return script, true
	}
	r.tokenize(script, c.start, c.end, c.language)
	return script, true
}

// scriptRange is the start of a script in a source, and tokenized its tokens without comments.
type (
	scriptRange struct {
		source *source
		start  int
	}
	tokenized struct {
		all      []token
		complete bool
	}
)

// tokenize sets the tokens of a script, without comments.
func (r *renaming) tokenize(script *renamedScript, start, end int, l language) {
	key := scriptRange{script.source, start}
	tokens, known := r.tokens[key]
	if !known {
		all, complete := tokensOf(script.text, start, end, l)
		tokens = tokenized{slices.DeleteFunc(all, func(t token) bool { return t.kind == commentToken }), complete}
		r.tokens[key] = tokens
	}
	script.tokens = tokens.all
	if !tokens.complete && strings.Contains(script.text[start:end], r.from) {
		r.fail(script.source, start, "this script has a syntax error, so its references to %s are unknown", r.from)
	}
	if start == 0 && script.source != script.owner && !script.imported {
		script.input, script.context, _ = parameters(script.tokens)
		script.parameters, script.body = parameterRange(script.tokens)
	}
}

// parameterRange returns the indexes of the first parameter of the default export, and of the token
// after all of them; 0 if there are none.
func parameterRange(tokens []token) (start, end int) {
	at := slices.IndexFunc(tokens, func(t token) bool { return t.text == "default" && t.kind == keywordToken })
	if at < 1 || tokens[at-1].text != "export" {
		return 0, 0
	}
	depth := 0
	for i := at + 1; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case t.text == "(":
			if depth++; start == 0 {
				start = i + 1
			}
		case t.text == ")":
			if depth--; depth == 0 {
				return start, i + 1
			}
		case t.text == "=>" && depth == 0: // the only parameter has no parentheses
			return i - 1, i
		case (t.text == "{" || t.text == ";") && depth == 0:
			return 0, 0
		}
	}
	return 0, 0
}

// isParameter reports whether a token is among the parameters of a module.
func (s *renamedScript) isParameter(i int) bool { return s.parameters <= i && i < s.body }

// imports calls visit for a script and the files that it imports.
func (r *renaming) imports(script *renamedScript, visit func(*renamedScript)) {
	known, waiting := map[string]bool{script.path: true}, []*renamedScript{script}
	for len(waiting) > 0 && len(known) <= maxImports {
		current := waiting[0]
		waiting = waiting[1:]
		visit(current)
		for i, t := range current.tokens {
			name, ok := unquote(t)
			if !ok || i == 0 || current.tokens[i-1].text != "from" && current.tokens[i-1].text != "import" || !strings.HasPrefix(name, ".") {
				continue
			}
			path := filepath.Join(filepath.Dir(current.path), filepath.FromSlash(name))
			l := scriptLanguage(path)
			if known[path] || l == noCode {
				continue
			}
			known[path] = true
			file := r.file(path)
			if file == nil {
				continue
			}
			imported := &renamedScript{source: file, block: script.block, owner: script.owner, imported: true}
			r.tokenize(imported, 0, len(file.text), l)
			waiting = append(waiting, imported)
		}
	}
	if len(known) > maxImports {
		r.fail(script.source, 0, "this script imports more than %d files", maxImports)
	}
}

// calls reports whether a script has a grant to call the tool.
func (r *renaming) calls(script *renamedScript) bool {
	return slices.ContainsFunc((&cursor{owner: script.owner, index: r.index, block: script.block}).grants(), func(g declared) bool {
		return g.block.kind == "call" && slices.ContainsFunc(g.stringsOf(g.block, "tools"), func(pattern string) bool {
			return wildcard.Matches(pattern, r.tool.name())
		})
	})
}

// toolsInScript edits tools.NAME in a script that may call the tool.
func (r *renaming) toolsInScript(script *renamedScript) {
	mayCall := r.calls(script)
	r.imports(script, func(s *renamedScript) {
		if slices.ContainsFunc(s.tokens, func(t token) bool { return t.member && (t.text == "tool" || t.text == "parent") }) {
			for _, t := range s.tokens {
				if text, ok := unquote(t); ok && text == r.from {
					r.fail(s.source, t.start, "the name %s may be compared with the tool of a call here", r.from)
				}
			}
		}
		if !mayCall {
			return
		}
		r.eachTool(s, func(name token, kind memberKind, at int) {
			if name.text == r.from {
				r.editMember(s, name, kind, at)
			}
		})
	})
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// editMember renames a member. at is the index of its object.
func (r *renaming) editMember(s *renamedScript, name token, kind memberKind, at int) {
	if kind == quotedMember || identifier.MatchString(r.to) {
		r.edit(s.source, name.start, name.end, r.to)
		return
	}
	dot := s.tokens[at+1]
	brackets := "['" + r.to + "']"
	if dot.text == "?." {
		brackets = "?." + brackets
	}
	r.edit(s.source, dot.start, name.end, brackets)
}

// eachTool calls visit for each tools.NAME of a script. It fails where the script uses the object of
// the tools in another way.
func (r *renaming) eachTool(s *renamedScript, visit func(name token, kind memberKind, at int)) {
	for i, t := range s.tokens {
		switch {
		case t.kind != wordToken || s.isParameter(i):
			continue
		case s.context != "" && t.text == s.context && !t.member && !s.isKey(i):
			if _, kind := r.memberAfter(s.tokens, i); kind != dotMember {
				r.fail(s.source, t.start, "the context is passed on here, so that other code may call %s", r.tool.name())
			}
			continue
		case t.text != "tools" || s.isKey(i):
			continue
		case t.member && (s.context == "" || i < 2 || s.tokens[i-2].text != s.context || s.tokens[i-2].member):
			continue
		}
		name, kind := r.memberAfter(s.tokens, i)
		if kind == unknownMember {
			r.fail(s.source, t.start, "the name of the tool is computed here, or tools is passed on")
			continue
		}
		visit(name, kind, i)
	}
}

// maxKeyDistance bounds the tokens between a key and the start of its object.
const maxKeyDistance = 1000

// isKey reports whether a word is the key of an object, as in { tools: 1 }.
func (s *renamedScript) isKey(i int) bool {
	if i == 0 || i+1 >= len(s.tokens) || s.tokens[i+1].text != ":" || s.tokens[i-1].text != "{" && s.tokens[i-1].text != "," {
		return false
	}
	depth := 0
	for at := i - 1; at >= max(0, i-maxKeyDistance); at-- {
		if depth += s.tokens[at].opens(); depth > 0 {
			return s.tokens[at].text == "{"
		}
	}
	return false
}

// opens returns 1 for a token that opens a bracket, -1 for one that closes a bracket, and otherwise 0.
// A token between two holes of a template does both.
func (t token) opens() int {
	switch {
	case t.text == "(" || t.text == "[" || t.text == "{":
		return 1
	case t.text == ")" || t.text == "]" || t.text == "}":
		return -1
	case t.kind != stringToken:
	case t.text[0] == '`' && strings.HasSuffix(t.text, "${") && t.hole:
		return 1
	case t.text[0] == '}' && !t.hole:
		return -1
	}
	return 0
}

// inputInScript edits the references to the input in a script: input.NAME in the scripts of the tool,
// and the argument in scripts that call the tool.
func (r *renaming) inputInScript(script *renamedScript) {
	isOwn := script.block == r.tool.block
	mayCall := r.calls(script)
	inHook := script.block.enclosing("hook") != nil
	if !isOwn && !mayCall && !inHook {
		return
	}
	r.imports(script, func(s *renamedScript) {
		if inHook {
			for i, t := range s.tokens {
				if t.member && t.text == r.from && i > 1 && s.tokens[i-2].text != "log" {
					r.fail(s.source, t.start, "the hook may read the input %s here", r.from)
				}
			}
		}
		if isOwn {
			r.ownInput(s)
		}
		if mayCall {
			r.eachTool(s, func(name token, kind memberKind, at int) {
				switch {
				case name.text != r.tool.name():
				case kind == dotMember:
					r.callArgument(s, at+3)
				default:
					r.callArgument(s, at+4)
				}
			})
		}
	})
}

// ownInput edits input.NAME, and NAME in patterns that take the input apart.
func (r *renaming) ownInput(s *renamedScript) {
	if s.body > 0 && s.tokens[s.parameters].text == "{" {
		r.keys(s, s.parameters, true)
		r.typeAfter(s, s.closing(s.parameters)+1)
	}
	for i, t := range s.tokens {
		isInput := t.text == s.input && s.input != ""
		if t.kind != wordToken || t.member || s.isKey(i) || t.text != "input" && !isInput {
			continue
		}
		if s.isParameter(i) {
			if isInput {
				r.typeAfter(s, i+1)
			}
			continue
		}
		name, kind := r.memberAfter(s.tokens, i)
		switch {
		case kind != unknownMember && name.text != r.from:
		case s.imported:
			r.fail(s.source, t.start, "this file is imported, and may read the input of another script here")
		case kind != unknownMember:
			r.edit(s.source, name.start, name.end, r.to)
		default:
			open := s.pattern(i)
			if open < 0 {
				r.fail(s.source, t.start, "the input is used as a whole here, or its member is computed")
				continue
			}
			r.keys(s, open, true)
			r.typeAfter(s, s.closing(open)+1)
		}
	}
}

// pattern returns the index of the brace that opens the pattern of const { a } = input, or -1. The
// pattern may have a type.
func (s *renamedScript) pattern(input int) int {
	at := input - 1
	if at < 0 || s.tokens[at].text != "=" || input+1 < len(s.tokens) && !slices.Contains([]string{";", ",", "const", "let", "var", "return", "if", "for", "await", "throw"}, s.tokens[input+1].text) {
		return -1
	}
	at--
	if at > 1 && s.tokens[at].kind == wordToken && s.tokens[at-1].text == ":" {
		at -= 2
	}
	if at < 0 || s.tokens[at].text != "}" {
		return -1
	}
	for depth := 0; at >= 0; at-- {
		if depth += s.tokens[at].opens(); depth == 0 {
			return at
		}
	}
	return -1
}

// closing returns the index of the token that closes the bracket at an index, or the last one.
func (s *renamedScript) closing(open int) int {
	depth := 0
	for i := open; i < len(s.tokens); i++ {
		depth += s.tokens[i].opens()
		if depth == 0 {
			return i
		}
	}
	return len(s.tokens) - 1
}

// keys edits the key in an object or a pattern that starts at an index. A pattern of other members
// than named ones fails, and so do spread objects.
func (r *renaming) keys(s *renamedScript, open int, isPattern bool) {
	end := s.closing(open)
	for i := open + 1; i < end; i++ {
		switch t := s.tokens[i]; {
		case t.text == "..." || t.text == "[":
			r.fail(s.source, t.start, "the members are computed here, and may include %s", r.from)
		case t.text == r.from && t.kind == wordToken:
			next := s.tokens[i+1].text
			if next == ":" || !isPattern && next == "(" {
				r.edit(s.source, t.start, t.end, r.to)
			} else {
				r.edit(s.source, t.start, t.end, r.to+": "+r.from)
			}
		case t.kind == stringToken:
			if name, ok := unquote(t); ok && name == r.from {
				r.edit(s.source, t.start+1, t.end-1, r.to)
			}
		}
		for i < end && s.tokens[i].text != "," { // the value
			if s.tokens[i].opens() > 0 {
				i = s.closing(i)
			}
			i++
		}
	}
}

// typeAfter edits the key in the type that follows a colon: { name: string }, or an interface or type
// of the file.
func (r *renaming) typeAfter(s *renamedScript, colon int) {
	if colon+1 >= len(s.tokens) || s.tokens[colon].text != ":" {
		return
	}
	open := colon + 1
	if name := s.tokens[open]; name.kind == wordToken {
		open = slices.IndexFunc(s.tokens, func(t token) bool { return t.text == name.text && t.start < name.start })
		if open < 1 || s.tokens[open-1].text != "interface" && s.tokens[open-1].text != "type" {
			return
		}
		if open++; open < len(s.tokens) && s.tokens[open].text == "=" {
			open++
		}
	}
	if open >= len(s.tokens) || s.tokens[open].text != "{" {
		return
	}
	end := s.closing(open)
	for i := open + 1; i < end; i++ {
		switch t := s.tokens[i].text; {
		case s.tokens[i].opens() > 0:
			i = s.closing(i)
		case t == r.from && (s.tokens[i+1].text == ":" || s.tokens[i+1].text == "?"):
			r.edit(s.source, s.tokens[i].start, s.tokens[i].end, r.to)
		}
	}
}

// callArgument edits the argument in a call of the tool, whose parenthesis is at an index.
func (r *renaming) callArgument(s *renamedScript, at int) {
	text := func(i int) string {
		if i >= len(s.tokens) {
			return ""
		}
		return s.tokens[i].text
	}
	switch {
	case text(at) == "(" && text(at+1) == ")":
	case text(at) == "(" && text(at+1) == "{":
		r.keys(s, at+1, false)
	default:
		r.fail(s.source, s.tokens[at-1].start, "the arguments of the call are computed here, and may include %s", r.from)
	}
}
