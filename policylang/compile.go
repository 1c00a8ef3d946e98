package policylang

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
)

// Compile compiles a policy for one tool, against the schema of its arguments. The policy is
// nil if the list has errors. A policy that never mentions the arguments or the result is
// compiled once and shared by all tools, so each further tool costs next to nothing.
func (e *Env) Compile(src Source, t Tool) (*Policy, diag.List) { return e.compile(src, &t) }

// CompileAny checks a policy that matches no tool yet. It accepts any arguments.
func (e *Env) CompileAny(src Source) diag.List {
	_, diags := e.compile(src, nil)
	return diags
}

func (e *Env) compile(src Source, t *Tool) (*Policy, diag.List) {
	if !src.mayReadTool() {
		if p, diags := e.compileUniversal(src); p != nil {
			return p, diags
		}
		// Compile again for this tool: messages that name its arguments are better.
	}
	var known Tool
	if t != nil {
		known = *t
	}
	s, err := e.scopeFor(src.schemas(known))
	if err != nil {
		return nil, diag.List{schemaProblem(known, err)}
	}
	c := compiler{scope: s, owner: src.owner(), tool: t}
	return c.policyOf(src), c.diags
}

func schemaProblem(t Tool, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: codeSchema, Summary: fmt.Sprintf("the argument schema of tool %q cannot be read", t.Name),
		Detail: err.Error(), Range: t.Range,
	}
}

// compileUniversal compiles a policy that does not depend on the tool, or returns the
// remembered outcome.
func (e *Env) compileUniversal(src Source) (*Policy, diag.List) {
	key := src.key()
	e.mu.Lock()
	known, ok := e.universal[key]
	e.mu.Unlock()
	if ok {
		return known.policy, slices.Clone(known.diags)
	}
	c := compiler{scope: e.plain, owner: src.owner()}
	p := c.policyOf(src)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.universal) >= maxRemembered {
		clear(e.universal)
	}
	e.universal[key] = universal{p, c.diags}
	return p, slices.Clone(c.diags)
}

// role is the purpose of an expression.
type role string

const (
	roleWhen  role = "when"
	roleAllow role = "allow"
	roleDeny  role = "deny"
	// roleApproval is the role of a condition that requires the approval of a user.
	roleApproval role = "requires_approval"
	roleReason   role = "reason"
	roleFrom     role = "from"
	roleKey      role = "key"
)

// compiler compiles the texts of one policy for one tool and collects diagnostics.
type compiler struct {
	scope *scope
	// owner and tool are for messages. owner is the policy or limit of the text, nil for a
	// `from` expression. tool is nil if no tool matches.
	owner *subject
	tool  *Tool
	// when is the compiled `when` of the policy, or nil.
	when ast.Expr
	// asked holds the dotted names of the arguments tested with has() so far.
	asked map[string]bool
	diags diag.List
	// wholeReads report fact sets that a from expression reads as a whole.
	wholeReads []func()
}

// subject is the definition that owns a text, such as policy "p", and its range.
type subject struct {
	what, name string
	where      diag.Range
}

// expression is a compiled text. It is immutable.
type expression struct {
	role role
	text diag.Text
	// whole is the range of the full text.
	whole   diag.Range
	program cel.Program
	// places maps the nodes in errors to positions in the file.
	places *positions
	// result is the type of the value.
	result *types.Type
	// reads are the parts of the input that the expression reads; names are its variables.
	reads Parts
	names map[string]bool
}

// compile compiles one text. If it fails, it reports errors and returns nil. It reports only
// the first syntax error, but all other errors.
func (c *compiler) compile(r role, text diag.Text) *expression {
	at := c.open(r, text)
	if at == nil {
		return nil
	}
	parsed, issues := c.scope.cel.Parse(text.Body())
	if len(issues.Errors()) > 0 {
		c.reportSyntaxError(at, issues.Errors()[0])
		return nil
	}
	at.bind(parsed.NativeRep())
	if c.rejectForms(at) {
		return nil
	}
	prune(parsed.NativeRep(), c.scope)
	return c.finish(at, parsed)
}

// finish type-checks and plans a parsed text.
func (c *compiler) finish(at *positions, parsed *cel.Ast) *expression {
	checked := c.check(at, parsed)
	if checked == nil {
		return nil
	}
	tree := checked.NativeRep()
	ok := c.checkResult(at, checked.OutputType())
	ok = c.checkLiterals(at, tree) && ok
	ok = c.checkUndeclaredArgs(at, tree) && ok
	ok = c.checkZones(at, tree) && ok
	if !ok {
		return nil
	}
	return c.plan(at, checked)
}

// open checks the limits of a text and splits it into tokens.
func (c *compiler) open(r role, text diag.Text) *positions {
	tokens, mistake := checkLimits(text.Body())
	at := &positions{role: r, text: text, tokens: tokens}
	if mistake == nil {
		return at
	}
	last := tokens[len(tokens)-1]
	c.report(at, last.start, last.end, problem{code: codeSyntax, summary: mistake.summary, detail: mistake.detail})
	return nil
}

// check resolves the types. CEL's checker rejects an integer next to a number, so each round
// promotes the integers that it reports.
func (c *compiler) check(at *positions, parsed *cel.Ast) *cel.Ast {
	promoter := newPromoter(parsed.NativeRep())
	promoter.promoteLiterals(c.scope)
	for range maxRounds {
		checked, issues := c.scope.cel.Check(parsed)
		if len(issues.Errors()) == 0 {
			if !promoter.useDynamicOperators(checked.NativeRep()) {
				return checked
			}
			continue
		}
		if !promoter.promote(issues.Errors()) {
			c.reportTypeErrors(at, issues.Errors())
			return nil
		}
	}
	c.report(at, 0, len(at.text.Body()), problem{
		code:    codeTooComplex,
		summary: "the expression mixes integers and numbers too deeply",
		detail:  "write the integers as numbers, 5.0 for 5, or split the expression",
	})
	return nil
}

// maxRounds bounds how deep integers and numbers may be mixed.
const maxRounds = 32

// plan creates the program of a valid expression and reports warnings.
func (c *compiler) plan(at *positions, checked *cel.Ast) *expression {
	tree := checked.NativeRep()
	x := &expression{role: at.role, text: at.text, whole: at.text.All(), places: at, result: checked.OutputType(), names: namesIn(tree.Expr(), c.scope)}
	x.reads = partsOf(tree.Expr(), x.names)
	if !c.checkCost(at, checked) {
		return nil
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if writesMap(tree.Expr()) {
		options = append(options, cel.CustomDecoratorV2(sortMaps))
	}
	if priced := newPricer(tree, c.scope.env.functions); priced.charges() { // after sortMaps, which recognizes maps by their type
		options = append(options, cel.CustomDecoratorV2(priced.decorate))
	}
	program, err := c.scope.cel.Program(checked, options...)
	if err != nil {
		c.report(at, 0, len(at.text.Body()), problem{
			code:    codeType,
			summary: "the expression cannot be evaluated",
			detail:  fmt.Sprintf("CEL says: %v", err),
		})
		return nil
	}
	x.program = program
	c.lint(x, tree)
	x.places = at.withoutTree()
	return x
}

// checkResult reports an expression with the wrong type for its role.
func (c *compiler) checkResult(at *positions, got *types.Type) bool {
	want := types.BoolType
	if at.role == roleReason || at.role == roleKey {
		want = types.StringType
	}
	if at.role == roleFrom || got.Kind() == types.DynKind || got.Kind() == want.Kind() {
		return true
	}
	detail := "compare it with a value, such as with == or >="
	if want == types.StringType {
		detail = "convert it with string(...)"
	}
	c.report(at, 0, len(at.text.Body()), problem{
		code: codeResult, dependsOnTool: at.role == roleKey && readsTool(at.tree),
		summary: fmt.Sprintf("%s must be %s, but this is %s", at.role, typeName(want), typeName(got)),
		detail:  detail,
	})
	return false
}

// namesIn returns the variables that e reads.
func namesIn(e ast.Expr, s *scope) map[string]bool {
	names := map[string]bool{}
	visit(e, func(e ast.Expr) {
		if s.isRoot(e.AsIdent()) {
			names[e.AsIdent()] = true
		}
	})
	return names
}

// visit calls f for e and each expression in it. The accessors of an [ast.Expr] for another
// kind return empty values, such as the arguments of a literal.
func visit(e ast.Expr, f func(ast.Expr)) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(f))
}

// textIn returns the value of a string literal, and false for any other expression.
func textIn(e ast.Expr) (string, bool) {
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// contains reports whether e or an expression in it satisfies is.
func contains(e ast.Expr, is func(ast.Expr) bool) bool {
	found := false
	visit(e, func(part ast.Expr) { found = found || is(part) })
	return found
}
