package uritemplate

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Error says why a text is not a template that can be matched.
type Error struct {
	// Start and End are offsets in the text.
	Start, End int
	// Message says what is wrong, Hint how to fix it.
	Message, Hint string
	// Ambiguous means that the text is a valid template, but not one that can be matched.
	Ambiguous bool
}

func (e *Error) Error() string { return e.Message }

func malformed(start, end int, message, hint string) *Error {
	return &Error{Start: start, End: end, Message: message, Hint: hint}
}

func ambiguous(start, end int, message, hint string) *Error {
	return &Error{Start: start, End: end, Message: message, Hint: hint, Ambiguous: true}
}

// Parse parses a template. Its errors are of type [*Error].
func Parse(text string) (*Template, error) {
	p := parser{t: &Template{text: text}}
	if len(text) > MaxTemplate {
		return nil, malformed(0, len(text), fmt.Sprintf("the template is longer than %d bytes", MaxTemplate), "")
	}
	for p.at < len(text) {
		step := p.literal
		if text[p.at] == '{' {
			step = p.expression
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.t.machine = sync.OnceValue(p.t.newAutomaton)
	return p.t, nil
}

type parser struct {
	t  *Template
	at int
	// places are the ranges of the expressions of the parts.
	places [][2]int
}

// add appends a part, for the text up to end.
func (p *parser) add(next part, end int) {
	parts := p.t.parts
	if next.kind == literal && len(parts) > 0 && parts[len(parts)-1].kind == literal {
		parts[len(parts)-1].text += next.text
		return
	}
	p.t.parts = append(parts, next)
	p.places = append(p.places, [2]int{p.at, end})
}

// literal parses text up to the next expression.
func (p *parser) literal() error {
	text := p.t.text
	end := p.at
	for ; end < len(text) && text[end] != '{'; end++ {
		switch c := text[end]; {
		case c == '}':
			return malformed(end, end+1, "there is a } without a {", "percent-encode it as %7D")
		case c == '%' && !isTriplet(text[end:]):
			return malformed(end, end+1, "a % is not followed by two hexadecimal digits", "write %25 for a percent sign")
		case !isURIByte(c):
			return malformed(end, end+1, "the template contains a character that is invalid in a URI", "percent-encode it, as in %20 for a space")
		}
	}
	p.add(part{kind: literal, text: text[p.at:end]}, end)
	p.at = end
	return nil
}

// expression parses an expression in braces.
func (p *parser) expression() error {
	text := p.t.text
	length := strings.IndexByte(text[p.at:], '}')
	if length < 0 {
		return malformed(p.at, p.at+1, "there is a { without a }", "close it as in {name}, or percent-encode it as %7B")
	}
	end := p.at + length + 1
	inner := text[p.at+1 : end-1]
	operator := byte(0)
	if inner != "" && strings.IndexByte(nameBytes, inner[0]) < 0 {
		operator, inner = inner[0], inner[1:]
	}
	if strings.IndexByte("+#./;?&", operator) < 0 && operator != 0 {
		return malformed(p.at, end, "this expression is invalid", "write {name}, or one of the operators + # . / ; ? & before the name")
	}
	names := strings.Split(inner, ",")
	for _, name := range names {
		if err := p.name(name, end); err != nil {
			return err
		}
	}
	if err := p.expand(operator, names, end); err != nil {
		return err
	}
	p.at = end
	return nil
}

// name checks one name of the expression that ends at end.
func (p *parser) name(name string, end int) error {
	switch {
	case strings.ContainsAny(name, "*:"):
		return malformed(p.at, end, "the modifiers * and : are not supported", "remove them")
	case !isName(name):
		return malformed(p.at, end, "the name of a variable is missing or invalid", "use letters, digits and _, and no digit first")
	case slices.Contains(p.t.names, name):
		return ambiguous(p.at, end, fmt.Sprintf("the variable %q occurs twice in the template", name), "give the second one another name")
	case len(p.t.names) == MaxVariables:
		return malformed(p.at, end, fmt.Sprintf("the template has more than %d variables", MaxVariables), "")
	}
	p.t.names = append(p.t.names, name)
	return nil
}

// expand adds the parts of an expression.
func (p *parser) expand(operator byte, names []string, end int) error {
	switch operator {
	case ';', '?', '&':
		p.add(part{kind: pairs, names: names, operator: operator}, end)
		return nil
	case '+', '#', '.':
		if len(names) > 1 {
			return ambiguous(p.at, end, "the separator of these values may occur in them", "write only one name in these braces")
		}
	}
	value, separator := simple, string(operator)
	switch operator {
	case 0:
		separator = ","
	case '+', '#':
		value = reserved
	}
	for i, name := range names {
		if operator != '+' && (operator != 0 || i > 0) {
			p.add(part{kind: literal, text: separator}, end)
		}
		p.add(part{kind: value, names: []string{name}}, end)
	}
	return nil
}

// check reports a template that cannot be matched.
func (p *parser) check() error {
	for i := range p.t.parts {
		hint := ""
		switch p.t.parts[i].kind {
		case simple:
			hint = p.checkSimple(i)
		case reserved:
			if rest := p.t.parts[i+1:]; len(rest) > 1 || len(rest) == 1 && rest[0].kind != literal {
				hint = "move it to the end: its value may contain any character"
			}
		case pairs:
			hint = p.checkPairs(i)
		}
		if hint != "" {
			return ambiguous(p.places[i][0], p.places[i][1], "the end of this value in a URI is ambiguous", hint)
		}
	}
	return nil
}

// checkSimple requires a character that no value can contain between a value and the next
// required value.
func (p *parser) checkSimple(i int) string {
	for _, next := range p.t.parts[i+1:] {
		switch next.kind {
		case literal:
			if firstNonValueByte(next.text) >= 0 {
				return ""
			}
		case simple, reserved:
			return "separate it from the next one, as in {a}/{b}; letters, digits and - . _ ~ do not separate"
		}
	}
	return ""
}

// checkPairs requires that the text after pairs cannot be part of them.
func (p *parser) checkPairs(i int) string {
	if i+1 == len(p.t.parts) || p.t.parts[i+1].kind == pairs {
		return ""
	}
	next := p.t.parts[i+1]
	if next.kind == literal && !isValueByte(next.text[0]) && strings.IndexByte(";?&=", next.text[0]) < 0 {
		return ""
	}
	return "end the template here, or continue with a character such as /"
}

// firstNonValueByte returns the offset of the first character that the value of a simple
// variable cannot contain, or -1.
func firstNonValueByte(s string) int {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || !isValueByte(byte(r)) })
}

const nameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

func isName(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.Trim(s, nameBytes) == ""
}
