package policylang

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/mcpd/mcpd/diag"
)

// Expr is a compiled `from` expression. It is immutable and safe for
// concurrent use.
type Expr struct {
	env  *Env
	body *expression
}

// CompileFrom compiles the expression of a `from` input, whose value must fit
// the JSON Schema result as far as types go; nil fits anything. Such an
// expression sees everything but the arguments.
func (e *Env) CompileFrom(text diag.Text, result json.RawMessage) (*Expr, diag.List) {
	c := compiler{scope: e.plain}
	body := c.compile(roleFrom, text)
	if body != nil {
		want := anything()
		if len(result) > 0 {
			b := shapeBuilder{objects: map[string]*shape{}}
			want = b.shape(result, 0)
		}
		c.checkFits(body, want)
		for _, report := range c.wholeReads {
			if !c.diags.HasErrors() {
				report()
			}
		}
	}
	if c.diags.HasErrors() {
		return nil, c.diags
	}
	return &Expr{env: e, body: body}, c.diags
}

// checkFits complains of an expression whose type the input cannot have.
func (c *compiler) checkFits(x *expression, want *shape) {
	members := membersOf(strings.TrimPrefix(x.result.TypeName(), "@"))
	if fits(x.result, want.cel) || members != "" && want.cel.Kind() == types.StructKind {
		return // of an object beside another one, noteWhole tells better
	}
	detail := "change the input's type, or convert the value"
	if want.cel.Kind() == types.StringKind {
		detail = "turn it into a string with string(...)"
	}
	if members != "" {
		detail = "use its members: " + members
	}
	c.report(x.places, 0, len(x.text.Body()), problem{
		code:    codeResult,
		summary: fmt.Sprintf("the input is %s, and this is %s", typeName(want.cel), typeName(x.result)),
		detail:  detail,
	})
}

// fits reports whether a value of type got may be one of type want.
func fits(got, want *types.Type) bool {
	switch {
	case want.Kind() == types.DynKind, got.Kind() == types.DynKind:
		return true
	case want.Kind() == types.DoubleKind:
		return got.Kind() == types.DoubleKind || got.Kind() == types.IntKind
	case want.Kind() == types.StructKind:
		return got.Kind() == types.MapKind
	case want.Kind() != got.Kind():
		return false
	case want.Kind() == types.ListKind:
		return fits(got.Parameters()[0], want.Parameters()[0])
	case want.Kind() == types.MapKind:
		return fits(got.Parameters()[1], want.Parameters()[1])
	}
	return true
}

// noteWhole notes the variables that are no values which JSON has, where an expression does
// not read a member of them.
func (c *compiler) findWholeReads(at *positions, tree ast.Expr) {
	owners := map[int64]bool{} // the operands of members
	visit(tree, func(e ast.Expr) {
		if call := e.AsCall(); call.FunctionName() == operators.OptSelect {
			owners[call.Args()[0].ID()] = true
		} else if e.Kind() == ast.SelectKind {
			owners[e.AsSelect().Operand().ID()] = true
		}
	})
	visit(tree, func(e ast.Expr) {
		if e.Kind() != ast.IdentKind || owners[e.ID()] {
			return
		}
		name := strings.TrimPrefix(e.AsIdent(), ".")
		if members := membersOf(name); members != "" {
			start, end := at.nodeRange(e)
			c.wholeReads = append(c.wholeReads, func() {
				c.report(at, start, end, problem{
					code: codeResult, summary: fmt.Sprintf("an input cannot have the whole of %q as its value", name),
					detail: "use its members: " + members,
				})
			})
		}
	})
}

// membersOf returns the members of a set of facts, "" for what is none.
func membersOf(name string) string {
	var members []string
	for _, set := range factSets() {
		if set.name != name {
			continue
		}
		for _, f := range set.facts {
			members = append(members, name+"."+f.name)
		}
	}
	return strings.Join(members, ", ")
}

// Eval returns the value: nil, bool, int64, float64, string, []any or
// map[string]any. The error is for operators and holds no values. in.Args is
// not read.
func (x *Expr) Eval(ctx context.Context, in Input) (any, error) {
	r := x.env.start(ctx, in)
	defer x.env.stop(r)
	value, err := x.body.eval(r)
	if err != nil {
		return nil, err
	}
	out, ok := toJSON(value, 0)
	if !ok {
		return nil, &failure{place: x.body.whole, problem: "the value is not one that JSON has"}
	}
	return out, nil
}

// maxDepth bounds how deep a value may be nested.
const maxDepth = 32

// toJSON turns a value into what JSON decodes to, with integers as int64.
func toJSON(value ref.Val, depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	switch v := value.(type) {
	case types.Null:
		return nil, true
	case types.Bool:
		return bool(v), true
	case types.Int:
		return int64(v), true
	case types.Double:
		return float64(v), true
	case types.String:
		return string(v), true
	case traits.Lister:
		return listToJSON(v, depth)
	case traits.Mapper:
		return mapToJSON(v, depth)
	}
	return nil, false
}

func listToJSON(list traits.Lister, depth int) (any, bool) {
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		item, ok := toJSON(it.Next(), depth+1)
		if !ok {
			return nil, false
		}
		out = append(out, item)
	}
	return out, true
}

func mapToJSON(m traits.Mapper, depth int) (any, bool) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, false
		}
		if out[string(name)], ok = toJSON(m.Get(key), depth+1); !ok {
			return nil, false
		}
	}
	return out, true
}

// KeySource is the key of a limit as it was written: what tells the calls apart
// that the limit counts apart.
type KeySource struct {
	// Limit is the name of the limit, for messages, and Range where it stands.
	Limit string
	Text  diag.Text
	Range diag.Range
}

// MayReadArgs reports whether the key may read the arguments. One that does not
// is compiled alike for all tools.
func (s KeySource) MayReadArgs() bool { return mentionsArgs(s.Text) }

// Key is a compiled key. It is immutable and safe for concurrent use.
type Key struct {
	env  *Env
	name string
	body *expression
	// ofCaller says that the key reads principal.id.
	ofCaller bool
}

// OfCaller reports whether the key tells callers apart by principal.id, which callers of
// another kind or issuer may have too.
func (k *Key) OfCaller() bool { return k.ofCaller }

// CompileKey compiles a key for one tool: against the schema of its arguments.
// For a nil tool, which is for limits that cover none, these are not known. The
// key is nil when the list has errors.
func (e *Env) CompileKey(src KeySource, t *Tool) (*Key, diag.List) {
	if !src.MayReadArgs() {
		if k, diags := e.compileKey(src, nil, e.plain); k != nil {
			return k, diags
		}
		// The tool's arguments make for better messages.
	}
	var tool Tool
	if t != nil {
		tool = *t
	}
	s, err := e.scopeFor(schemas{args: string(tool.Schema)})
	if err != nil {
		return nil, diag.List{schemaProblem(tool, err)}
	}
	return e.compileKey(src, t, s)
}

func (e *Env) compileKey(src KeySource, t *Tool, s *scope) (*Key, diag.List) {
	c := compiler{scope: s, owner: &subject{"limit", src.Limit, src.Range}, tool: t}
	body := c.compile(roleKey, src.Text)
	if c.diags.HasErrors() {
		return nil, c.diags
	}
	_, ofCaller := Reads(src.Text, "principal", "id")
	return &Key{env: e, name: src.Limit, body: body, ofCaller: ofCaller}, c.diags
}

// Eval returns the key of a call. Whatever keeps it from being evaluated is an
// error, which is for operators and holds no values.
func (k *Key) Eval(ctx context.Context, in Input) (string, error) {
	r := k.env.start(ctx, in)
	defer k.env.stop(r)
	value, err := k.body.eval(r)
	if err != nil {
		return "", k.wrapError(err)
	}
	text, ok := value.(types.String)
	if !ok {
		return "", k.wrapError(&failure{place: k.body.whole, problem: fmt.Sprintf("key is not a string but %s", typeWords(value.Type().TypeName()))})
	}
	return string(text), nil
}

func (k *Key) wrapError(err *failure) error { return fmt.Errorf("limit %q: %w", k.name, err) }
