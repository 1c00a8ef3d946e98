package policylang

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
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

// scopeFor returns the scope of a tool with the given schema of arguments. The
// same schema gives the same scope.
func (e *Env) scopeFor(schema json.RawMessage) (*scope, error) {
	e.mu.Lock()
	s := e.scopes[string(schema)]
	e.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := e.newScope(schema)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.scopes) >= rememberMost {
		clear(e.scopes)
	}
	e.scopes[string(schema)] = s
	return s, nil
}

func (e *Env) newScope(schema json.RawMessage) (*scope, error) {
	b := shaper{objects: maps.Clone(e.own.objects)}
	args, err := b.root(schema)
	if err != nil {
		return nil, err
	}
	roots := maps.Clone(e.roots)
	roots["args"] = args
	env, err := e.base.Extend(
		cel.CustomTypeProvider(&provider{base: e.own.base, facts: e.own.facts, objects: b.objects}),
		cel.Variable("args", args.cel),
	)
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
