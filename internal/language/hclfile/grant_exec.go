package hclfile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Defaults and maximums of an exec grant.
const (
	maxArguments     = 64
	maxArgument      = 4 << 10
	defaultParam     = 256
	maxParam         = 64 << 10
	defaultPrinted   = 1 << 20
	maxPrinted       = 16 << 20
	defaultPrograms  = 4
	maxPrograms      = 64
	maxEnvironment   = 64
	exampleOfProgram = `write its absolute path, such as "/usr/bin/git"`
)

// exec decodes an exec block. It sets the range of its path as "exec.NAME.path", and of each
// argument as "exec.NAME.argv.I".
func (d *decoder) exec(b *hclsyntax.Block, ranges map[string]diag.Range) grant.Exec {
	r := rules["exec"]
	d.checkBody(b)
	// The environment may contain secrets and is decoded separately.
	body := d.requireLiteral(b.Body, &rule{args: args("path", "argv", "timeout", "max_output", "concurrency")})
	g := grant.Exec{Name: b.Labels[0]}
	if written, ok := d.text(body, "path"); ok {
		where := d.f.rng(body.Attributes["path"].Expr.Range())
		g.Path = d.programPath(written, where)
		ranges["exec."+g.Name+".path"] = where
	}
	g.Params = d.execParams(b, r)
	argv, _ := d.stringList(body, "argv")
	d.arguments(&g, argv, ranges)
	g.Env = d.execEnv(b.Body, g)
	g.Timeout = d.duration(body, "timeout", 0)
	g.MaxOutput = cmp.Or(d.size(body, "max_output", maxPrinted), defaultPrinted)
	g.Concurrency = cmp.Or(d.intAttr(body, "concurrency", 1, maxPrograms), defaultPrograms)
	d.checkPlacement(b, g, argv)
	return g
}

// programPath returns the path of a program. It returns "" after it has reported an error.
func (d *decoder) programPath(written string, where diag.Range) string {
	switch {
	case len(written) > maxRoot || strings.ContainsFunc(written, unicode.IsControl):
		d.fail("bad-grant", where, "this is not a valid path", fmt.Sprintf("write at most %d bytes, without control characters", maxRoot))
	case !filepath.IsAbs(written):
		d.fail("bad-grant", where, "the path of a program must be absolute", exampleOfProgram)
	case filepath.Clean(written) != written:
		d.fail("bad-grant", where, "the path of a program is not clean", fmt.Sprintf("write %q", clip(filepath.Clean(written))))
	case slices.ContainsFunc(grant.ParseArgument(written), func(p grant.ArgumentPart) bool { return p.Param != "" }):
		d.fail("bad-grant", where, "a script cannot choose the program", "write the full path, and use parameters only in \"argv\"")
	default:
		return written
	}
	return ""
}

func (d *decoder) execParams(b *hclsyntax.Block, r *rule) (params []grant.Param) {
	taken := declaredNames{}
	for _, inner := range blocks(b.Body, r) {
		rule := r.block("param")
		d.declare(taken, inner)
		d.checkIdentifier("the parameter", inner.Labels[0], inner.LabelRanges[0])
		d.check(inner.Body, rule, "a param block", inner.DefRange())
		body := d.requireLiteral(inner.Body, rule)
		p := grant.Param{Name: inner.Labels[0], MaxLength: cmp.Or(d.intAttr(body, "max_length", 1, maxParam), defaultParam)}
		if s, ok := d.text(body, "pattern"); ok {
			x := body.Attributes["pattern"].Expr
			p.Pattern = s
			if whole, err := p.Compile(); d.regexp(s, x) != nil && err == nil && whole.MatchString("") {
				d.fail("bad-grant", d.f.rng(x.Range()), "the pattern matches empty text, like a missing argument", "use + instead of *, or require a character")
			}
		}
		params = append(params, p)
	}
	return params
}

// arguments decodes the arguments of a program.
func (d *decoder) arguments(g *grant.Exec, argv []stringItem, ranges map[string]diag.Range) {
	if len(argv) > maxArguments {
		d.fail("too-large", d.f.rng(argv[maxArguments].where), fmt.Sprintf("a program has at most %d arguments", maxArguments), "remove some")
		argv = argv[:maxArguments]
	}
	names := make([]string, len(g.Params))
	for i, p := range g.Params {
		names[i] = p.Name
	}
	for i, e := range argv {
		where := d.f.rng(e.where)
		ranges[fmt.Sprintf("exec.%s.argv.%d", g.Name, i)] = where
		g.Argv = append(g.Argv, e.text)
		switch {
		case len(e.text) > maxArgument || strings.ContainsRune(e.text, 0):
			d.fail("bad-grant", where, "this is not a valid argument", fmt.Sprintf("write at most %d bytes, without NUL", maxArgument))
		case i == 0 && g.Path != "" && (e.text == g.Path || e.text == filepath.Base(g.Path)):
			d.fail("bad-grant", where, "the first argument is the program", "remove it: \"argv\" contains only the arguments")
		}
		for _, piece := range grant.ParseArgument(e.text) {
			if piece.Param != "" && !slices.Contains(names, piece.Param) {
				d.fail("bad-grant", where, fmt.Sprintf("there is no parameter %q", clip(piece.Param)),
					cmp.Or(diag.DidYouMean(piece.Param, names), fmt.Sprintf("add param %q { pattern = \"…\" } to the grant", clip(piece.Param))))
			}
		}
	}
}

// checkPlacement checks the positions of parameters in the arguments of a program.
func (d *decoder) checkPlacement(b *hclsyntax.Block, g grant.Exec, argv []stringItem) {
	if argv == nil && b.Body.Attributes["argv"] != nil {
		return // the list was reported
	}
	for _, inner := range blocks(b.Body, rules["exec"]) {
		p, _ := g.Param(inner.Labels[0])
		attr := inner.Body.Attributes["pattern"]
		used := slices.ContainsFunc(g.Argv, func(argument string) bool {
			return slices.Contains(grant.ParseArgument(argument), grant.ArgumentPart{Param: p.Name})
		})
		switch {
		case !used:
			d.fail("bad-grant", d.f.rng(inner.DefRange()), fmt.Sprintf("the parameter %q is not used in an argument", clip(p.Name)), fmt.Sprintf("write \"{%s}\" in \"argv\", or remove it", clip(p.Name)))
		case attr != nil && g.MayBeOption(p.Name) && p.Dash() == grant.DashImplied:
			d.fail("bad-grant", d.f.rng(attr.Expr.Range()), fmt.Sprintf("a value of %q may start with -, so the program may take it for an option", clip(p.Name)),
				"start the pattern with, for example, [A-Za-z0-9], or put \"--\" before it in \"argv\" if the program supports it")
		}
	}
}

// ceilingPrograms decodes the allowed programs, or nil if the ceiling has no list.
func (d *decoder) ceilingPrograms(body *hclsyntax.Body) []definition.Name {
	return d.ceilingList(body, "exec_paths", func(e stringItem) (string, bool) {
		path := d.programPath(e.text, d.f.rng(e.where))
		return path, path != ""
	})
}

// codeVariables are variables that make the system or an interpreter run other code, or load
// code from elsewhere.
var codeVariables = []string{
	"BASH_ENV", "ENV", "PS4", "IFS", "SHELLOPTS", "BASHOPTS", "GCONV_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PERL5LIB", "PERL5OPT",
	"PERL5DB", "RUBYLIB", "RUBYOPT", "NODE_OPTIONS", "NODE_PATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "JAVA_TOOL_OPTIONS", "CLASSPATH",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_PAGER", "PAGER", "EDITOR", "VISUAL", "BROWSER",
}

// execEnv decodes the environment of a program. Values may contain secrets, but no parameters.
func (d *decoder) execEnv(body *hclsyntax.Body, g grant.Exec) []grant.Variable {
	return d.environment(body, d.variableName, func(x hclsyntax.Expression) ([]grant.Part, bool) {
		parts, ok := d.privateText(x)
		return parts, ok && d.checkNoParams(x, parts, g)
	})
}

// environment decodes the variables of a program. nameOf decodes names and valueOf values; both
// report errors and return false.
func (d *decoder) environment(body *hclsyntax.Body, nameOf func(hclsyntax.Expression, declaredNames) (string, bool), valueOf func(hclsyntax.Expression) ([]grant.Part, bool)) (env []grant.Variable) {
	attr := body.Attributes["env"]
	if attr == nil {
		return nil
	}
	written, ok := attr.Expr.(*hclsyntax.ObjectConsExpr)
	switch {
	case !ok:
		d.fail("computed-grant", d.f.rng(attr.Expr.Range()), "\"env\" of a grant cannot be computed", "write the variables literally, as in { LANG = \"C\" }")
		return nil
	case len(written.Items) > maxEnvironment:
		d.fail("too-large", d.f.rng(attr.Expr.Range()), fmt.Sprintf("a program has at most %d variables", maxEnvironment), "remove some")
		return nil
	}
	taken := declaredNames{}
	for _, item := range written.Items {
		if name, ok := nameOf(item.KeyExpr, taken); ok {
			if parts, ok := valueOf(item.ValueExpr); ok {
				env = append(env, grant.Variable{Name: name, Value: grant.Value{Parts: parts}})
			}
		}
	}
	return env
}

// checkNoParams reports a value that seems to contain a parameter.
func (d *decoder) checkNoParams(x hclsyntax.Expression, parts []grant.Part, g grant.Exec) bool {
	for _, part := range parts {
		for _, piece := range grant.ParseArgument(part.Literal) {
			if _, known := g.Param(piece.Param); known {
				d.fail("bad-grant", d.f.rng(x.Range()), fmt.Sprintf("the parameter %q is in the environment", clip(piece.Param)), "use parameters only in \"argv\"")
				return false
			}
		}
	}
	return true
}

// variableName returns the name of a variable. It returns false after it has reported an error.
func (d *decoder) variableName(x hclsyntax.Expression, taken declaredNames) (string, bool) {
	v, problems := x.Value(nil)
	if problems.HasErrors() || !hasKind(v, stringKind) {
		d.fail("computed-grant", d.f.rng(x.Range()), "the name of a variable cannot be computed", "write it literally, as in { LANG = \"C\" }")
		return "", false
	}
	name := v.AsString()
	switch {
	case !isIdentifier(name):
		d.fail("bad-grant", d.f.rng(x.Range()), d.eval.show(name)+" is not a valid variable name", "use letters, digits and _, and no digit first, such as LANG")
	case strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || slices.Contains(codeVariables, name):
		d.fail("bad-grant", d.f.rng(x.Range()), fmt.Sprintf("%s could make the program run other code", name), "remove it")
	default:
		return name, d.declareName(taken, name, x.Range(), "%q occurs twice in \"env\"", name)
	}
	return "", false
}
