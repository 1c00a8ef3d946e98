package policylang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"

	"github.com/mcpd/mcpd/diag"
)

// The codes of the diagnostics.
const (
	codeSyntax     = "cel-syntax"
	codeTooComplex = "cel-too-complex"
	codeArgument   = "cel-unknown-argument"
	codeName       = "cel-unknown-name"
	codeType       = "cel-type"
	codeResult     = "cel-result"
	codeCost       = "cel-cost"
	codeSchema     = "cel-schema"
	codeClaimed    = "cel-claimed-identity"
	codeConstant   = "cel-constant"
	codeEnum       = "cel-enum"
	codeOptional   = "cel-optional-argument"
)

// mismatched is what is said of the mistakes that CEL finds and that have no
// words here.
const mismatched = "this does not fit together"

// problem is what to say of a place in an expression.
type problem struct {
	severity        diag.Severity
	code            string
	summary, detail string
	// ofTool says that the problem depends on the tool, so that it is named.
	ofTool bool
}

// report adds a diagnostic for the bytes from start up to end.
func (c *compiler) report(at *places, start, end int, p problem) {
	d := diag.Diagnostic{
		Severity: p.severity, Code: p.code, Summary: p.summary, Detail: p.detail,
		Range: at.at(start, end),
	}
	if o := c.owner; o != nil {
		d.Notes = append(d.Notes, diag.Note{Range: o.where, Message: fmt.Sprintf("in %s %q", o.what, o.name)})
	}
	if p.ofTool && c.tool != nil {
		d.Notes = append(d.Notes, diag.Note{
			Range: c.tool.Range, Message: c.toolName() + " " + c.takes(),
		})
	}
	c.diags = append(c.diags, d)
}

// reportNode is report for the whole of a node.
func (c *compiler) reportNode(at *places, e ast.Expr, p problem) {
	start, end := at.extent(e)
	c.report(at, start, end, p)
}

// takes says which arguments the tool takes.
func (c *compiler) takes() string {
	args := c.scope.roots["args"]
	switch {
	case args == nil || args.fields == nil:
		return "takes any arguments"
	case len(args.fields) == 0:
		return "takes no arguments"
	}
	return "takes " + enumerate(args.names())
}

// enumerate joins names, and leaves out the rest of very many.
func enumerate(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// explainTypes turns the complaints of CEL's checker into diagnostics.
func (c *compiler) explainTypes(at *places, errs []*common.Error) {
	nodes := map[int64]ast.Expr{}
	visit(at.tree, func(e ast.Expr) { nodes[e.ID()] = e })
	follow := followUps(at.tree, errs)
	for _, err := range errs {
		e := nodes[err.ExprID]
		if e == nil {
			start, end := at.point(err.ExprID)
			c.report(at, start, end, problem{code: codeType, summary: mismatched, detail: "CEL says: " + err.Message})
			continue
		}
		if !follow[err.ExprID] {
			c.explainType(at, e, err.Message)
		}
	}
}

// followUps returns the nodes whose only fault is to stand in the call of a
// macro that is misspelt: xs.exist(x, x > 1) declares no x.
func followUps(tree ast.Expr, errs []*common.Error) map[int64]bool {
	unknown := map[int64]bool{}
	for _, err := range errs {
		if _, ok := undeclaredName(err.Message); ok {
			unknown[err.ExprID] = true
		}
	}
	out := map[int64]bool{}
	visit(tree, func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !unknown[e.ID()] || len(e.AsCall().Args()) < 2 {
			return
		}
		first := e.AsCall().Args()[0]
		if first.Kind() != ast.IdentKind {
			return
		}
		for _, arg := range e.AsCall().Args() {
			visit(arg, func(part ast.Expr) {
				if part.Kind() == ast.IdentKind && part.AsIdent() == first.AsIdent() {
					out[part.ID()] = true
				}
			})
		}
	})
	return out
}

// undeclaredName reads the name out of CEL's complaint that it knows none such.
func undeclaredName(message string) (string, bool) {
	rest, ok := strings.CutPrefix(message, "undeclared reference to '")
	if !ok {
		return "", false
	}
	return rest[:max(0, strings.LastIndex(rest, "' (in container"))], true
}

func (c *compiler) explainType(at *places, e ast.Expr, message string) {
	if name, ok := undeclaredName(message); ok {
		c.explainName(at, e, name)
		return
	}
	if field, ok := between(message, "undefined field '", "'"); ok {
		c.explainMember(at, e, field)
		return
	}
	if m, ok := readMismatch(message); ok {
		c.explainMismatch(at, e, m)
		return
	}
	if t, ok := between(message, "type '", "' does not support field selection"); ok {
		c.explainNoMembers(at, e, t)
		return
	}
	if rest, ok := between(message, "expected type '", "'"); ok {
		_, found, _ := strings.Cut(message, "' but found '")
		c.reportNode(at, e, problem{code: codeType, ofTool: readsTool(e), summary: fmt.Sprintf(
			"this must be %s, and it is %s", typeWords(rest), typeWords(strings.TrimSuffix(found, "'"))),
			detail: "compare it or convert it, as with ==, string(…) or int(…)"})
		return
	}
	if t, ok := between(message, "expression of type '", "' cannot be range of a comprehension"); ok {
		c.reportNode(at, e, problem{code: codeType, ofTool: readsTool(e),
			summary: fmt.Sprintf("%s has no elements to look at", typeWords(t)),
			detail:  "exists, all, filter and map work on lists and maps"})
		return
	}
	c.reportNode(at, e, problem{code: codeType, summary: mismatched, detail: "CEL says: " + message})
}

// between returns what stands in s after the prefix before and up to after.
func between(s, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(s, before)
	if !ok {
		return "", false
	}
	i := strings.Index(rest, after)
	if i < 0 {
		return "", false
	}
	return rest[:i], true
}

// readsTool reports whether e reads what belongs to a tool: its arguments, or what it
// returns.
func readsTool(e ast.Expr) bool {
	return reads(e, "args") || reads(e, "result") || reads(e, "content")
}

// reads reports whether e reads the variable name.
func reads(e ast.Expr, name string) bool {
	found := false
	visit(e, func(part ast.Expr) {
		found = found || part.Kind() == ast.IdentKind && part.AsIdent() == name
	})
	return found
}

// refuseForms complains of what CEL has and policies do not: objects that are
// made, and a macro's variable that takes the name of one of the policy's own.
// It reports whether there was any.
func (c *compiler) refuseForms(at *places) bool {
	refused := false
	visit(at.tree, func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if at.role == roleFrom && strings.TrimPrefix(e.AsIdent(), ".") == "source" {
				refused = true
				c.reportNode(at, e, problem{
					code: codeName, summary: "an input cannot tell how the call came in: \"source\" is for policies, limits and hooks",
					detail: "a tool works the same on every transport; tell callers apart by principal, or decide in a policy",
				})
			}
			return
		case ast.StructKind:
			refused = true
			c.reportNode(at, e, problem{
				code: codeType, summary: "an expression cannot make objects",
				detail: "compare the members one by one, or write a map such as {\"a\": 1}",
			})
			return
		case ast.ComprehensionKind:
		default:
			return
		}
		comp := e.AsComprehension()
		names := []string{comp.IterVar(), comp.IterVar2(), comp.AccuVar()}
		if i := slices.IndexFunc(names, c.scope.isRoot); i >= 0 {
			refused = true
			c.reportNode(at, e, problem{
				code:    codeName,
				summary: fmt.Sprintf("%q is a name that policies already have", names[i]),
				detail:  "give the elements another name, such as x",
			})
		}
	})
	return refused
}
