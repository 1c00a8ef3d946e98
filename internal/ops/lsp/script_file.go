package lsp

import (
	"path/filepath"
	"slices"
	"strings"
)

// scriptFile is an open script that file() in a tool file names.
type scriptFile struct {
	*source
	language
	// owner is the tool file, and block and arg are the block and the argument with file().
	owner *source
	block *block
	arg   *argument
	// input and context are the parameters of the default export; "" if they are patterns or missing.
	input, context string
}

// scriptLanguage returns the language of a script file, or noCode for other files.
func scriptLanguage(path string) language {
	switch filepath.Ext(path) {
	case ".js", ".mjs":
		return javaScript
	case ".ts", ".mts":
		return typeScript
	}
	return noCode
}

// scriptFile returns an open script, or nil if no block has it. If several blocks have it, the first
// one decides.
func (x *index) scriptFile(d *document) *scriptFile {
	l := scriptLanguage(d.path)
	if l == noCode {
		return nil
	}
	var found *scriptFile
	for _, s := range x.sources {
		s.root.each(func(b *block) {
			for i := range b.arguments {
				a := &b.arguments[i]
				if found == nil && s.fileOf(a) == d.path && languageOf(b, a.name, "").isScript() {
					found = &scriptFile{source: plainSource(d), language: l, owner: s, block: b, arg: a}
				}
			}
		})
	}
	if found != nil {
		tokens, _ := tokensOf(d.text, 0, len(d.text), l)
		found.input, found.context, _ = parameters(tokens)
	}
	return found
}

// fileOf returns the path of the file that is the value of an argument, as in run = file("x.js"), or "".
func (s *source) fileOf(a *argument) string {
	rest, ok := strings.CutPrefix(s.text[a.value:a.valueEnd], "file")
	if !ok {
		return ""
	}
	rest = strings.TrimSpace(rest)
	name, quoted := strings.CutPrefix(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(rest, "("), ")")), `"`)
	name, closed := strings.CutSuffix(name, `"`)
	if !quoted || !closed || strings.ContainsAny(name, "\"\\$\n\x00") || !filepath.IsLocal(filepath.FromSlash(name)) {
		return ""
	}
	return filepath.Join(filepath.Dir(s.path), filepath.FromSlash(name))
}

// cursor returns a position in the script.
func (f *scriptFile) cursor(x *index, offset int) *cursor {
	return &cursor{source: f.source, index: x, offset: offset, owner: f.owner, block: f.block, arg: f.arg, inValue: true, file: f}
}

// resolve returns the path from a global for a path that may start with a parameter of the default
// export. isContext reports whether it starts with the context.
func (f *scriptFile) resolve(path []string) (resolved []string, isContext bool) {
	switch {
	case len(path) == 0:
	case path[0] == f.context && f.context != "":
		return path[1:], true
	case path[0] == f.input && f.input != "" && f.block.kind != "complete" && f.block.enclosing("hook") == nil:
		return slices.Concat([]string{"input"}, path[1:]), false
	}
	return path, false
}

// contextMembers are the members of the context of a module.
var contextMembers = slices.Concat([]string{"agent", "call", "content", "log", "params", "progress", "uri", "vars"}, needsGrant)

// parameters returns the parameters of the default export. first and second are "" for patterns.
// isModule reports whether there is a default export.
func parameters(tokens []token) (first, second string, isModule bool) {
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.kind == commentToken })
	at := slices.IndexFunc(tokens, func(t token) bool { return t.text == "export" && t.kind == keywordToken })
	if at < 0 || at+1 >= len(tokens) || tokens[at+1].text != "default" {
		return "", "", false
	}
	at += 2
	for at < len(tokens) && tokens[at].text != "(" { // async function NAME, or the parameter of an arrow
		if at+1 < len(tokens) && tokens[at+1].text == "=>" {
			return tokens[at].text, "", true
		}
		if at++; at < len(tokens) && (tokens[at].text == "{" || tokens[at].text == ";") {
			return "", "", true
		}
	}
	names, depth, starts := []string{}, 0, true
	for ; at < len(tokens); at++ {
		switch t := tokens[at]; {
		case t.text == "(" || t.text == "{" || t.text == "[" || t.text == "<":
			if depth > 0 && starts {
				names = append(names, "")
			}
			starts = depth == 0
			depth++
		case t.text == ")" || t.text == "}" || t.text == "]" || t.text == ">":
			if depth--; depth == 0 {
				names = append(names, "", "")
				return names[0], names[1], true
			}
		case t.text == "," && depth == 1:
			starts = true
		case starts:
			if starts = false; t.kind == wordToken {
				names = append(names, t.text)
			} else {
				names = append(names, "")
			}
		}
	}
	return "", "", true
}

// plainSource returns a document that is not HCL, without an outline.
func plainSource(d *document) *source {
	s := newPlainSource(d.path, d.uri, d.text)
	s.document = d
	return s
}
