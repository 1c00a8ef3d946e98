package scripting

import (
	"errors"
	"strings"
	"unicode"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
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
	detail := hint(message)
	if strings.HasSuffix(strings.TrimSpace(c.origin.src[:min(offset, len(c.origin.src))]), "await") {
		detail = "write async in front of the function around it, which is what await stands in"
	}
	c.fail(at, "script-syntax", plain(message), detail)
}

// endsEarly tells a mistake that shows only behind the end of the body.
func (c *compilation) endsEarly() {
	end := len(strings.TrimRightFunc(c.src.Text.Body(), unicode.IsSpace))
	c.fail(c.src.Text.Range(max(0, end-1), end), "script-syntax", "the body ends where more is expected", "something in front of its end is not finished")
}
