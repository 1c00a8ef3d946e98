package policylang

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// scope is what an expression can see: the Env's names and the arguments of
// one tool. It is immutable.
type scope struct {
	env *Env
	cel *cel.Env
	// roots are the shapes of the variables, by name; now has none.
	roots map[string]*shape
	// objects are the objects of schemas, by type name.
	objects map[string]*shape
}

// schemas are what a scope knows of a tool.
type schemas struct {
	args string
	// result is that of what the tool returns, where judged says that it is judged.
	result string
	judged bool
}

// scopeFor returns the scope of a tool with the given schemas. The same schemas
// give the same scope.
func (e *Env) scopeFor(of schemas) (*scope, error) {
	e.mu.Lock()
	s := e.scopes[of]
	e.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := e.newScope(of)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.scopes) >= rememberMost {
		clear(e.scopes)
	}
	e.scopes[of] = s
	return s, nil
}

func (e *Env) newScope(of schemas) (*scope, error) {
	b := shaper{objects: maps.Clone(e.own.objects)}
	args, err := b.root(json.RawMessage(of.args))
	if err != nil {
		return nil, err
	}
	roots := maps.Clone(e.roots)
	roots["args"] = args
	declared := []cel.EnvOption{cel.Variable("args", args.cel)}
	if of.judged {
		result := anything()
		if of.result != "" {
			b.unfilled = true
			result = b.shape(json.RawMessage(of.result), 0)
		}
		blocks := &shape{cel: types.NewListType(types.DynType), items: anything()}
		roots["result"], roots["content"] = result, blocks
		declared = append(declared, cel.Variable("result", result.cel), cel.Variable("content", blocks.cel))
	}
	declared = append(declared, cel.CustomTypeProvider(&provider{base: e.own.base, facts: e.own.facts, objects: b.objects}))
	env, err := e.base.Extend(declared...)
	if err != nil {
		return nil, err
	}
	return &scope{env: e, cel: env, roots: roots, objects: b.objects}, nil
}

// names returns the names of all variables, sorted.
func (s *scope) names() []string {
	names := append(slices.Collect(maps.Keys(s.roots)), "now")
	slices.Sort(names)
	return names
}

// isTools reports whether a variable is what the schemas of a tool describe.
func isTools(root string) bool { return root == "args" || root == "result" || root == "content" }

// isRoot reports whether name is one of the variables.
func (s *scope) isRoot(name string) bool {
	return name == "now" || name == "args" || s.roots[name] != nil
}

// shapeOf returns the shape of what e reads, a variable or a member of one,
// and nil when it reads anything else or something undeclared.
func (s *scope) shapeOf(e ast.Expr) *shape {
	switch e.Kind() {
	case ast.IdentKind:
		return s.roots[e.AsIdent()]
	case ast.SelectKind:
		owner := s.shapeOf(e.AsSelect().Operand())
		if owner == nil {
			return nil
		}
		return owner.fields[e.AsSelect().FieldName()]
	}
	return nil
}

// path returns the names that e reads through, such as args, filters, status.
// It is nil when e does anything else.
func path(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		if owner := path(e.AsSelect().Operand()); owner != nil {
			return append(owner, e.AsSelect().FieldName())
		}
	}
	return nil
}

// provider tells CEL of the objects that exist in an expression: the facts
// that every policy knows and the objects of JSON Schemas. It is immutable.
type provider struct {
	// base knows CEL's own types.
	base types.Provider
	// facts holds the members of the fact sets, by the set's type name.
	facts map[string]map[string]*types.FieldType
	// objects holds the objects of schemas, by type name.
	objects map[string]*shape
}

// EnumValue implements [types.Provider].
func (p *provider) EnumValue(name string) ref.Val { return p.base.EnumValue(name) }

// FindIdent implements [types.Provider].
func (p *provider) FindIdent(name string) (ref.Val, bool) { return p.base.FindIdent(name) }

// FindStructType implements [types.Provider]. Protocol buffer messages do not
// exist in policies.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if p.facts[name] == nil && p.objects[name] == nil {
		return nil, false
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

// FindStructFieldNames implements [types.Provider].
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if facts := p.facts[name]; facts != nil {
		return slices.Sorted(maps.Keys(facts)), true
	}
	if object := p.objects[name]; object != nil {
		return object.names(), true
	}
	return nil, false
}

// FindStructFieldType implements [types.Provider]. The fields of a schema's
// object have no getters: CEL then looks them up in the Go map itself, and
// carries an unknown object over to unknown members.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if facts := p.facts[name]; facts != nil {
		f, ok := facts[field]
		return f, ok
	}
	if object := p.objects[name]; object != nil {
		if s := object.fields[field]; s != nil {
			return &types.FieldType{Type: s.cel}, true
		}
		if object.open {
			return &types.FieldType{Type: types.DynType}, true
		}
	}
	return nil, false
}

// NewValue implements [types.Provider]. Expressions cannot make objects.
func (p *provider) NewValue(name string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("no objects of type %s can be made", name)
}
