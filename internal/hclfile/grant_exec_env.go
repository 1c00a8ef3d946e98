package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/grant"
)

// codeVariables are variables by which the system or an interpreter runs other
// code than the program is, or takes code from elsewhere.
var codeVariables = []string{
	"BASH_ENV", "ENV", "PS4", "IFS", "SHELLOPTS", "BASHOPTS", "GCONV_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PERL5LIB", "PERL5OPT",
	"PERL5DB", "RUBYLIB", "RUBYOPT", "NODE_OPTIONS", "NODE_PATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "JAVA_TOOL_OPTIONS", "CLASSPATH",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_PAGER", "PAGER", "EDITOR", "VISUAL", "BROWSER",
}

// execEnv decodes the environment of a program, of which the values may hold
// secrets, and nothing that a script passes.
func (d *decoder) execEnv(body *hclsyntax.Body, g grant.Exec) []grant.Variable {
	return d.environment(body, d.variableName, func(x hclsyntax.Expression) ([]grant.Part, bool) {
		parts, ok := d.privateText(x)
		return parts, ok && d.passesNothing(x, parts, g)
	})
}

// environment decodes the variables of a program. nameOf reads their names and valueOf
// their values; both report what is wrong, and return false for it.
func (d *decoder) environment(body *hclsyntax.Body, nameOf func(hclsyntax.Expression, named) (string, bool), valueOf func(hclsyntax.Expression) ([]grant.Part, bool)) (env []grant.Variable) {
	attr := body.Attributes["env"]
	if attr == nil {
		return nil
	}
	written, ok := attr.Expr.(*hclsyntax.ObjectConsExpr)
	switch {
	case !ok:
		d.fail("computed-grant", d.f.rng(attr.Expr.Range()), "\"env\" of a grant cannot be computed", "write the variables out, as in { LANG = \"C\" }")
		return nil
	case len(written.Items) > maxEnvironment:
		d.fail("too-large", d.f.rng(attr.Expr.Range()), fmt.Sprintf("a program has at most %d variables", maxEnvironment), "remove some")
		return nil
	}
	taken := named{}
	for _, item := range written.Items {
		if name, ok := nameOf(item.KeyExpr, taken); ok {
			if parts, ok := valueOf(item.ValueExpr); ok {
				env = append(env, grant.Variable{Name: name, Value: grant.Value{Parts: parts}})
			}
		}
	}
	return env
}

// passesNothing reports a value in which a parameter seems to be meant.
func (d *decoder) passesNothing(x hclsyntax.Expression, parts []grant.Part, g grant.Exec) bool {
	for _, part := range parts {
		for _, piece := range grant.Pieces(part.Literal) {
			if _, known := g.Param(piece.Param); known {
				d.fail("bad-grant", d.f.rng(x.Range()), fmt.Sprintf("the parameter %q stands in the environment", clip(piece.Param)), "parameters stand in \"argv\" alone: pass it there")
				return false
			}
		}
	}
	return true
}

// variableName returns the name of a variable of a program, and false for one
// that it reports.
func (d *decoder) variableName(x hclsyntax.Expression, taken named) (string, bool) {
	v, problems := x.Value(nil)
	if problems.HasErrors() || !hasKind(v, stringKind) {
		d.fail("computed-grant", d.f.rng(x.Range()), "the name of a variable cannot be computed", "write it out, as in { LANG = \"C\" }")
		return "", false
	}
	name := v.AsString()
	switch {
	case !isIdentifier(name):
		d.fail("bad-grant", d.f.rng(x.Range()), d.eval.show(name)+" is not the name of a variable", "use letters, digits and _, and no digit first, such as LANG")
	case strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || slices.Contains(codeVariables, name):
		d.fail("bad-grant", d.f.rng(x.Range()), fmt.Sprintf("with %s another program could be run than the one that is granted", name), "remove it")
	default:
		return name, d.claimName(taken, name, x.Range(), "%q stands twice in \"env\"", name)
	}
	return "", false
}
