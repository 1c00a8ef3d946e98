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

// Expr is a compiled `from` expression. It is immutable and safe for concurrent use.
type Expr struct {
	env  *Env
	body *expression
}

// CompileFrom compiles the expression of a `from` input. The type of its value must fit the
// JSON Schema result; nil accepts any value. The expression can read everything but the
// arguments.
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

// checkFits reports an expression with a type that does not fit the input.
func (c *compiler) checkFits(x *expression, want *shape) {
	members := membersOf(strings.TrimPrefix(x.result.TypeName(), "@"))
	if fits(x.result, want.cel) || members != "" && want.cel.Kind() == types.StructKind {
		return // findWholeReads has a better message for an object
	}
	detail := "change the input's type, or convert the value"
	if want.cel.Kind() == types.StringKind {
		detail = "convert it with string(...)"
	}
	if members != "" {
		detail = "use its members: " + members
	}
	c.report(x.places, 0, len(x.text.Body()), problem{
		code:    codeResult,
		summary: fmt.Sprintf("the input is %s, but this is %s", typeName(want.cel), typeName(x.result)),
		detail:  detail,
	})
}

// fits reports whether a value of type got may have type want.
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

// findWholeReads notes fact sets that the expression reads as a whole: JSON cannot encode them.
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
					code: codeResult, summary: fmt.Sprintf("an input cannot use all of %q as its value", name),
					detail: "use its members: " + members,
				})
			})
		}
	})
}

// membersOf returns the members of a fact set, or "" for any other type.
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

// Eval returns the value: nil, bool, int64, float64, string, []any or map[string]any. The error
// is for operators and holds no values. Eval does not read in.Args.
func (x *Expr) Eval(ctx context.Context, in Input) (any, error) {
	r := x.env.start(ctx, in)
	defer x.env.stop(r)
	value, err := x.body.eval(r)
	if err != nil {
		return nil, err
	}
	out, ok := toJSON(value, 0)
	if !ok {
		return nil, &failure{place: x.body.whole, problem: "the value cannot be encoded as JSON"}
	}
	return out, nil
}

// maxDepth bounds the nesting of a value.
const maxDepth = 32

// toJSON converts a value to the types of decoded JSON, with integers as int64.
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

// KeySource is the source of the key of a limit. Calls with the same key are counted together.
type KeySource struct {
	// Limit is the name of the limit, for messages. Range is its position.
	Limit string
	Text  diag.Text
	Range diag.Range
}

// MayReadArgs reports whether the key may read the arguments. Any other key is compiled once
// for all tools.
func (s KeySource) MayReadArgs() bool { return mentionsArgs(s.Text) }

// Key is a compiled key. It is immutable and safe for concurrent use.
type Key struct {
	env  *Env
	name string
	body *expression
	// ofCaller means that the key reads principal.id.
	ofCaller bool
}

// OfCaller reports whether the key separates callers by principal.id. Callers of another kind
// or issuer may have the same id.
func (k *Key) OfCaller() bool { return k.ofCaller }

// CompileKey compiles a key for one tool, against the schema of its arguments. A nil tool is
// for a limit that matches no tool: its arguments are unknown. The key is nil if the list has
// errors.
func (e *Env) CompileKey(src KeySource, t *Tool) (*Key, diag.List) {
	if !src.MayReadArgs() {
		if k, diags := e.compileKey(src, nil, e.plain); k != nil {
			return k, diags
		}
		// Compile again for this tool: messages that name its arguments are better.
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

// Eval returns the key of a call. It returns an error if the key cannot be evaluated; the error
// is for operators and holds no values.
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
