package policylang

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// explainMismatch is about an operator or function that does not take what it
// is given.
func (c *compiler) explainMismatch(at *places, e ast.Expr, m mismatch) {
	p := problem{code: codeType, ofTool: readsTool(e), summary: mismatched}
	args := e.AsCall().Args()
	if !m.method && len(m.args) != len(args) {
		c.reportNode(at, e, p)
		return
	}
	switch m.function {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		p.summary = fmt.Sprintf("cannot compare %s with %s", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = orElse(advise(args[1], m.args[0]), orElse(advise(args[0], m.args[1]), "compare values of one type"))
	case operators.In:
		p.summary = fmt.Sprintf("cannot look for %s in %s", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = "in looks for an element in a list, or for a key in a map"
		if notNull(m.args[1]) == "string" {
			p.detail += "; in a string look with .contains('x')"
		}
	case operators.LogicalNot:
		p.summary = fmt.Sprintf("! needs true or false, and this is %s", typeWords(m.args[0]))
		p.detail = "compare it with something, such as with == or >="
	case operators.Conditional:
		p.summary = fmt.Sprintf("the two answers of ?: are %s and %s", typeWords(m.args[1]), typeWords(m.args[2]))
		p.detail = "let both be of one type"
		if m.args[0] != "bool" && m.args[0] != "dyn" {
			p.summary = fmt.Sprintf("? needs true or false before it, and that is %s", typeWords(m.args[0]))
			p.detail = "compare it with something, such as with == or >="
		}
	case operators.Index:
		p.summary = fmt.Sprintf("%s cannot be read with [%s]", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = "a list is read with an integer, a map with a key"
		if !strings.HasPrefix(m.args[0], "list") {
			p.detail = orElse(dotted(args), p.detail)
		}
	case operators.Negate:
		p.summary = fmt.Sprintf("- needs a number, and this is %s", typeWords(m.args[0]))
		p.detail = "convert it, as with int(...) or double(...)"
	case operators.Modulo:
		p.summary = fmt.Sprintf("%% does not work between %s and %s", typeWords(m.args[0]), typeWords(m.args[1]))
		p.detail = "both sides must be integers; int(...) cuts a number off"
	default:
		p.summary, p.detail = explainCall(m)
	}
	c.reportNode(at, e, p)
}

// dotted says how to read the member of an object that was asked for as if
// the object were a map.
func dotted(args []ast.Expr) string {
	owner := path(args[0])
	if owner == nil || args[1].Kind() != ast.LiteralKind {
		return ""
	}
	name, ok := args[1].AsLiteral().(types.String)
	if !ok {
		return ""
	}
	member := string(name)
	if tokens, mistake := gate(member); mistake != nil || len(tokens) != 2 || tokens[0].kind != tokenIdent {
		member = "`" + member + "`"
	}
	return fmt.Sprintf("write %s.%s", strings.Join(owner, "."), member)
}

func explainCall(m mismatch) (summary, detail string) {
	if sign := signOf(m.function); sign != "" {
		return fmt.Sprintf("%s does not work between %s and %s", sign, typeWords(m.args[0]), typeWords(m.args[1])),
			"both sides must be numbers, or for + both strings or both lists"
	}
	args := m.args
	summary = m.function + "() "
	if m.method {
		summary += fmt.Sprintf("on %s ", typeWords(args[0]))
		args = args[1:]
	}
	if len(args) == 0 {
		return summary + "does not work without arguments", "the manual of the tool language says what it takes"
	}
	summary += "does not take "
	for i, t := range args {
		if i > 0 {
			summary += ", "
		}
		summary += typeWords(t)
	}
	if m.function == "contains" && strings.HasPrefix(m.args[0], "list") {
		return summary, foreign("includes")
	}
	if inner, ok := strings.CutPrefix(m.args[0], "optional_type("); ok && m.function == "orValue" {
		return summary, fmt.Sprintf("what it answers otherwise must be %s, as the value is", typeWords(strings.TrimSuffix(inner, ")")))
	}
	return summary, "the manual of the tool language says what it takes"
}

// advise says how to write a literal so that it has the type want.
func advise(e ast.Expr, want string) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		_, err := strconv.ParseFloat(string(v), 64)
		switch want = notNull(want); {
		case (want == "int" || want == "double") && err == nil:
			return fmt.Sprintf("write %s without quotes", string(v))
		case want == "bool" && (v == "true" || v == "false"):
			return fmt.Sprintf("write %s without quotes", string(v))
		}
	case types.Int:
		if notNull(want) == "string" {
			return fmt.Sprintf("write %q, between quotes", strconv.FormatInt(int64(v), 10))
		}
	case types.Bool:
		if notNull(want) == "string" {
			return fmt.Sprintf("write \"%t\", between quotes", bool(v))
		}
	case types.Null:
		return "it is never null; ask with has(...) whether it is there"
	}
	return ""
}
