package scripting

import (
	"cmp"
	"errors"
	"path"
	"strings"
	"unicode"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// syntaxError reports the first error that the engine found; the others are
// mostly its consequences.
func (c *compilation) syntaxError(err error) {
	var found parser.ErrorList
	var late *goja.CompilerSyntaxError
	offset, message := len(c.origin.src), err.Error()
	switch {
	case errors.As(err, &found) && len(found) > 0:
		first := found[0]
		offset, message = c.origin.offset(first.Position.Line, first.Position.Column), first.Message
	case errors.As(err, &late):
		message = late.Message
		if late.File != nil {
			offset = late.Offset
		}
	}
	text, at, ok := c.origin.trace(offset)
	if !ok || !c.origin.lowered && offset >= c.origin.body.to+c.origin.body.length {
		c.reject(c.endsEarly())
		return
	}
	where := callee(text, at).Range()
	detail := c.advise(message, text.Body(), at)
	if strings.HasSuffix(strings.TrimSpace(c.origin.src[:min(offset, len(c.origin.src))]), "await") {
		detail = "write async in front of the function around it, which is what await stands in"
	}
	c.reject(diag.Diagnostic{Code: "script-syntax", Summary: plain(message), Detail: cmp.Or(c.adviseObject(where), detail), Range: where})
}

// endsEarly returns a syntax error that shows only after the end of the body.
func (c *compilation) endsEarly() diag.Diagnostic {
	end := len(strings.TrimRightFunc(c.text, unicode.IsSpace))
	return diag.Diagnostic{
		Code: "script-syntax", Range: c.src.Text.Range(max(0, end-1), end),
		Summary: "the " + c.what() + " ends where more is expected", Detail: "something in front of its end is not finished",
	}
}

// advise says what to do about a compiler's message about an offset in a text.
func (c *compilation) advise(message, text string, at int) string {
	if unread(message) && c.src.Kind == Code {
		if advice := ofPython(settingOf(text, at, message)); advice != "" {
			return advice
		}
	}
	if unread(message) {
		if advice := likely(text, at, message); advice != "" {
			return advice
		}
	}
	return cmp.Or(lookUp(advice, message), lookUp(generic, message), correctIt)
}

// maxGuess is the size of a body that is parsed twice more to say of a mistake
// what it means.
const maxGuess = 8 << 10

// suggestTypeScript makes the hint of a syntax error in a JavaScript body that
// the body is TypeScript, if it is that and not JavaScript.
func (c *compilation) suggestTypeScript() {
	if !c.broken || c.src.Language != JS || c.src.Transpiler == nil || len(c.text) > maxGuess || !c.parses(TS) || c.parses(JS) {
		return
	}
	first := &c.list[0]
	first.Detail = "it looks like TypeScript: begin the body with <<TS instead of <<JS"
	if ext := path.Ext(c.src.Path); ext == ".js" || ext == ".mjs" {
		first.Detail = "it looks like TypeScript: call the file .ts instead of " + ext
	}
}

// parses reports whether the body is of a language.
func (c *compilation) parses(language Language) bool {
	found, refused := inspect(c.text, language)
	if refused != nil || !c.tried(found) {
		return false
	}
	in := transpile.Input{Source: newEntry(c.src.Text, c.text, found.modules).src, TypeScript: language == TS, Check: true, MaxErrors: 1}
	return len(c.src.Transpiler.Transpile(in).Errors) == 0
}
