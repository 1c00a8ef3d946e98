package policylang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/mcpd/mcpd/diag"
)

// Env compiles policies. It holds the operator's variables and remembers compiled schemas and
// tool-independent policies. It is safe for concurrent use.
type Env struct {
	// Fixed at creation.
	base  *cel.Env
	own   *provider
	roots map[string]*shape
	vars  map[string]any
	// functions are the implementations of callable functions.
	functions map[string]*functions.Overload
	// blank represents unknown arguments. CEL propagates it through the expressions that need
	// them.
	blank *types.Unknown
	runs  sync.Pool
	zones zones

	// plain is the scope of expressions without arguments.
	plain *scope
	// access are the scopes of conditions on a principal, without and with another one.
	access [2]func() (*scope, error)

	mu        sync.Mutex
	scopes    map[schemas]*scope
	universal map[sourceKey]universal
}

// maxRemembered bounds the remembered schemas and policies, so that an Env does not grow over
// many reloads.
const maxRemembered = 4096

// universal is the outcome of compiling a tool-independent policy.
type universal struct {
	policy *Policy
	diags  diag.List
}

// NewEnv returns an Env with the given values of `vars`. varsSchema is the JSON Schema of an
// object. Both may be nil if there are no variables. NewEnv fails if they are not JSON objects.
func NewEnv(varsSchema, vars json.RawMessage) (*Env, error) {
	if len(varsSchema) == 0 {
		varsSchema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	b := shapeBuilder{objects: map[string]*shape{}}
	known, err := b.root(varsSchema)
	if err != nil {
		return nil, err
	}
	values, err := decodeVars(vars, known)
	if err != nil {
		return nil, err
	}
	e := &Env{
		vars:      values,
		blank:     types.NewUnknown(0, types.NewAttributeTrail("args")),
		roots:     map[string]*shape{"vars": known},
		scopes:    map[schemas]*scope{},
		universal: map[sourceKey]universal{},
	}
	e.runs.New = func() any { return &evaluation{} }
	return e, e.build(b.objects)
}

// build creates the CEL environment that all scopes extend.
func (e *Env) build(objects map[string]*shape) error {
	library, err := cel.NewEnv(libraries(&e.zones)...)
	if err != nil {
		return fmt.Errorf("set up CEL: %w", err)
	}
	e.own = &provider{
		base:    library.CELTypeProvider(),
		facts:   map[string]map[string]*types.FieldType{},
		objects: objects,
	}
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(&adapter{base: library.CELTypeAdapter()}),
		cel.CustomTypeProvider(e.own),
		cel.Variable("vars", e.roots["vars"].cel),
		cel.Variable("now", types.TimestampType),
	}
	for _, set := range factSets() {
		e.own.facts[set.cel.TypeName()] = set.fieldTypes()
		e.roots[set.name] = set.shape()
		options = append(options, cel.Variable(set.name, set.cel))
	}
	if e.base, err = library.Extend(options...); err != nil {
		return fmt.Errorf("set up CEL: %w", err)
	}
	if e.functions, err = implementations(e.base); err != nil {
		return fmt.Errorf("set up CEL: %w", err)
	}
	e.plain = &scope{env: e, cel: e.base, roots: e.roots}
	e.access = [...]func() (*scope, error){e.newAccessScope(library, false), e.newAccessScope(library, true)}
	return nil
}

// decodeVars decodes the variables. Their types decide how numbers are decoded.
func decodeVars(raw json.RawMessage, s *shape) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var values map[string]any
	if err := dec.Decode(&values); err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("read the variables: more than one JSON value")
	}
	typed, _ := typeNumbers(values, s).(map[string]any)
	return typed, nil
}

// typeNumbers replaces the numbers in value, in place: by int64 where the shape says integer,
// by float64 elsewhere. If that would lose precision, it uses the other type, or a value that
// no expression can read.
func typeNumbers(value any, s *shape) any {
	if s == nil {
		s = anything()
	}
	switch v := value.(type) {
	case json.Number:
		return typedNumber(v, s.cel.Kind())
	case []any:
		for i, item := range v {
			v[i] = typeNumbers(item, s.items)
		}
	case map[string]any:
		for key, item := range v {
			member := s.fields[key]
			if member == nil {
				member = s.items
			}
			v[key] = typeNumbers(item, member)
		}
	}
	return value
}

// typedNumber converts a number for a value of the given kind.
func typedNumber(n json.Number, kind types.Kind) any {
	i, err := n.Int64()
	if err == nil && kind == types.IntKind {
		return i
	}
	f, tooLarge := n.Float64()
	switch {
	case tooLarge != nil:
		return nil
	case len(n) <= 15 || strings.ContainsAny(n.String(), ".eE"):
		return f
	case kind != types.IntKind && strconv.FormatFloat(f, 'f', -1, 64) == n.String():
		return f // as in JavaScript
	}
	exact, ok := new(big.Int).SetString(n.String(), 10)
	rounded, _ := big.NewFloat(f).Int(nil)
	switch {
	case !ok || exact.Cmp(rounded) == 0 && kind != types.IntKind:
		return f
	case err == nil && kind != types.DoubleKind:
		return i
	}
	return exact
}

// scope is what an expression can read: the names of the Env and the arguments of one tool. It
// is immutable.
type scope struct {
	env *Env
	cel *cel.Env
	// roots are the shapes of the variables by name. The variable now has none.
	roots map[string]*shape
}

// schemas are the schemas of a tool that a scope uses.
type schemas struct {
	args string
	// result is the schema of the result; it is used only if judged is set.
	result string
	judged bool
}

// scopeFor returns the scope of a tool with the given schemas. Equal schemas share a scope.
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
	if len(e.scopes) >= maxRemembered {
		clear(e.scopes)
	}
	e.scopes[of] = s
	return s, nil
}

func (e *Env) newScope(of schemas) (*scope, error) {
	b := shapeBuilder{objects: maps.Clone(e.own.objects)}
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
			b.ignoreDefaults = true
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
	return &scope{env: e, cel: env, roots: roots}, nil
}

// names returns the names of all variables, sorted.
func (s *scope) names() []string {
	names := append(slices.Collect(maps.Keys(s.roots)), "now")
	slices.Sort(names)
	return names
}

// isTools reports whether a variable is described by the schemas of a tool.
func isTools(root string) bool { return root == "args" || root == "result" || root == "content" }

// isRoot reports whether name is a variable.
func (s *scope) isRoot(name string) bool {
	return name == "now" || name == "args" || s.roots[name] != nil
}

// shapeOf returns the shape of a variable or member, and nil for any other expression.
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

// path returns the names along a member access, such as args, filters, status. It is nil for
// any other expression.
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

// provider declares object types to CEL: the fact sets and the objects of JSON Schemas. It is
// immutable.
type provider struct {
	// base provides CEL's own types.
	base types.Provider
	// facts holds the members of the fact sets, by type name.
	facts map[string]map[string]*types.FieldType
	// objects holds the objects of schemas, by type name.
	objects map[string]*shape
}

func (p *provider) EnumValue(name string) ref.Val         { return p.base.EnumValue(name) }
func (p *provider) FindIdent(name string) (ref.Val, bool) { return p.base.FindIdent(name) }

// FindStructType implements [types.Provider]. Policies have no protocol buffer messages.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if p.facts[name] == nil && p.objects[name] == nil {
		return nil, false
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if facts := p.facts[name]; facts != nil {
		return slices.Sorted(maps.Keys(facts)), true
	}
	if object := p.objects[name]; object != nil {
		return object.names(), true
	}
	return nil, false
}

// FindStructFieldType implements [types.Provider]. The fields of schema objects have no
// getters: CEL then reads the Go map directly, and members of an unknown object are unknown.
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

// NewValue implements [types.Provider]. Expressions cannot create objects.
func (p *provider) NewValue(name string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("objects of type %s cannot be created", name)
}
