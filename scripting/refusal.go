package scripting

import (
	"cmp"
	"errors"
	"strings"
	"unicode"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/mcpd/mcpd/diag"
)

// syntaxError tells the first mistake that the engine found; those behind it
// are mostly its consequences.
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
	at, ok := c.origin.at(offset)
	if !ok || !c.origin.lowered && offset >= c.origin.body.to+c.origin.body.length {
		c.endsEarly()
		return
	}
	where := c.spotOf(offset)
	where.sure = !stopsParser(message)
	detail := c.advise(message, where)
	if strings.HasSuffix(strings.TrimSpace(c.origin.src[:min(offset, len(c.origin.src))]), "await") {
		detail = "write async in front of the function around it, which is what await stands in"
	}
	c.mistake(diag.Diagnostic{Code: "script-syntax", Summary: plain(message), Detail: cmp.Or(c.adviseObject(at), detail), Range: at}, where)
}

// endsEarly tells a mistake that shows only behind the end of the body.
func (c *compilation) endsEarly() {
	end := len(strings.TrimRightFunc(c.body(), unicode.IsSpace))
	c.mistake(diag.Diagnostic{Code: "script-syntax", Range: c.src.Text.Range(max(0, end-1), end),
		Summary: "the " + c.what() + " ends where more is expected", Detail: "something in front of its end is not finished"}, spot{at: max(0, end-1)})
}

// mistake tells a mistake of syntax, unless it may come of what is left out.
func (c *compilation) mistake(d diag.Diagnostic, s spot) {
	c.spots = append(c.spots, s)
	if !c.patches.explain(d.Summary) {
		c.list = append(c.list, d)
	}
}

// spotOf returns the place that a byte of the compiled source came from.
func (c *compilation) spotOf(offset int) spot {
	text, at, _ := c.origin.trace(offset)
	for name, file := range c.files {
		if file.File() == text.File() {
			return spot{file: name, at: at}
		}
	}
	return spot{at: at}
}

// advise says what to do about a message of a compiler.
func (c *compilation) advise(message string, s spot) string {
	text := c.written()
	if s.file != "" {
		text = c.files[s.file].Body()
	}
	if unread(message) && c.src.Kind == Code {
		if advice := ofPython(settingOf(text, s.at, message)); advice != "" {
			return advice
		}
	}
	if unread(message) {
		if advice := likely(text, s.at, message); advice != "" {
			return advice
		}
	}
	return cmp.Or(lookUp(advice, message), lookUp(generic, message), correctIt)
}
