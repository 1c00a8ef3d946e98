package policylang

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common"
)

// explainSyntax reports the first error of CEL's parser. Those after it are
// guesses.
func (c *compiler) explainSyntax(at *places, err *common.Error) {
	offset := len(at.text.Body())
	if err.Location.Line() > 0 {
		offset = at.text.Offset(err.Location.Line(), err.Location.Column()+1)
	}
	i := at.tokenAt(offset)
	p := problem{code: codeSyntax}
	p.summary, p.detail = syntaxWords(at, i, err.Message)
	c.report(at, at.tokens[i].start, at.tokens[i].end, p)
}

func syntaxWords(at *places, i int, message string) (summary, detail string) {
	switch {
	case strings.HasPrefix(message, "reserved identifier: "):
		name := strings.TrimPrefix(message, "reserved identifier: ")
		if name == "var" {
			return "there is no \"var\" here", "in policies the variables are vars.*"
		}
		return fmt.Sprintf("%q is a reserved word", name), "use another name"
	case strings.Contains(message, "recursion limit"):
		return "the expression is nested too deeply", "split it into several policies, or compare with a list"
	case strings.Contains(message, "invalid argument to has()"):
		return "has() needs a member, such as args.amount", "write has(args.name)"
	case strings.Contains(message, "must be a simple name"), strings.Contains(message, "is not an identifier"),
		strings.Contains(message, "must be a simple identifier"), strings.Contains(message, "must be simple identifiers"):
		return "the first argument here must be a name for the elements", "such as x in exists(x, x == 'a')"
	case strings.Contains(message, "literal"):
		return fmt.Sprintf("%s is not a valid number", shorten(at.word(i))), "integers go up to 9223372036854775807"
	case at.tokens[i].kind == tokenEOF:
		return "the expression ends too early", fmt.Sprintf("something is missing after %s", shorten(at.word(i-1)))
	case strings.HasPrefix(message, "Syntax error:"):
		return "unexpected " + shorten(at.word(i)), "an operand or an operator is missing before it"
	}
	return "this is not a valid expression", "CEL says: " + message
}

// shorten quotes a piece of the expression, and cuts it when it is long.
func shorten(word string) string {
	const most = 32
	if runes := []rune(word); len(runes) > most {
		word = string(runes[:most]) + "…"
	}
	return quote(word)
}
