package scripting

import (
	"strings"

	"github.com/dop251/goja/ast"
)

// pattern notices a regular expression that the engine takes for another.
func (a *analysis) pattern(at ast.Expression, pattern, flags string) {
	if strings.ContainsAny(flags, "uv") && strings.Contains(strings.ToLower(pattern), `\p{`) {
		a.unicode = append(a.unicode, at)
	}
}

// constructed notices RegExp("…", "u") and new RegExp("…", "u").
func (a *analysis) constructed(at, callee ast.Expression, arguments []ast.Expression) {
	if id, ok := callee.(*ast.Identifier); !ok || id.Name != "RegExp" || len(arguments) != 2 {
		return
	}
	pattern, written := arguments[0].(*ast.StringLiteral)
	flags, said := arguments[1].(*ast.StringLiteral)
	if written && said {
		a.pattern(at, pattern.Value.String(), flags.Value.String())
	}
}
