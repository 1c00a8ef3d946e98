package toolprompt

import (
	"encoding/json"
	"strings"
)

// Types prints schemas as TypeScript types for a file of declarations. Text of schemas appears only
// in comments and literals, as in [Declare].
type Types struct {
	names    typeNames
	declared strings.Builder
}

// NewTypes returns a Types that declares none of the taken names.
func NewTypes(taken ...string) *Types {
	t := &Types{names: typeNames{}}
	for name := range reservedWords {
		t.names[name] = 1
	}
	for _, name := range taken {
		t.names[name] = 1
	}
	return t
}

// Print returns the type of a schema, for a place with an indentation; unknown for nil. If filled
// is set, members with a default are present. Named types start with the name of the owner.
func (t *Types) Print(owner string, schema json.RawMessage, indent int, filled bool) string {
	if schema == nil {
		return unknown.text
	}
	p := newPrinter(owner, Full, t.names, fileLimits())
	p.filled = filled
	printed, _ := p.root(schema, indent)
	t.declared.WriteString(p.types.String())
	return printed
}

// Declared returns the declarations of the named types that Print has returned.
func (t *Types) Declared() string { return t.declared.String() }

// Comment returns a text as a documentation comment with a line break at its end; "" without text.
func Comment(text string, indent int) string {
	lines := commentLines(text, maxLines)
	if len(lines) == 0 {
		return ""
	}
	return indentation(indent) + comment(lines, indentation(indent))
}

// Key returns a name as the key of a property.
func Key(name string) string { return propertyKey(name) }

// Literal returns a text as a string literal.
func Literal(text string) string { return quote(text) }

// Template returns texts as a template literal type, with a placeholder between them.
func Template(texts []string, placeholder string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		inside := quote(text)
		quoted[i] = escapeTemplate.Replace(inside[1 : len(inside)-1])
	}
	return "`" + strings.Join(quoted, "${"+placeholder+"}") + "`"
}

// escapeTemplate escapes what quote does not escape. In a template, \" is a quotation mark.
var escapeTemplate = strings.NewReplacer("${", `\${`)
