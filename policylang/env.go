package policylang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
)

// Env compiles policies. It knows the operator's variables, remembers the
// schemas and the policies for any tool that it has met, and is safe for
// concurrent use.
type Env struct {
	// Fixed at creation.
	base  *cel.Env
	own   *provider
	roots map[string]*shape
	vars  map[string]any
	// functions are the implementations of what expressions call.
	functions map[string]*functions.Overload
	// blank stands for arguments that are not known. CEL carries it through
	// all that needs them, and drops it where they do not matter.
	blank *types.Unknown
	runs  sync.Pool
	zones zones

	// plain is the scope of expressions that do not see arguments.
	plain *scope

	mu        sync.Mutex
	scopes    map[schemas]*scope
	universal map[sourceKey]universal
}

// rememberMost bounds what an Env remembers, so that one that lives through
// many reloads does not grow.
const rememberMost = 4096

// universal is the outcome of compiling a policy that is alike for all tools.
type universal struct {
	policy *Policy
	diags  diag.List
}

// NewEnv returns an Env in which `vars` has the values vars, typed by the JSON
// Schema varsSchema of an object. Both may be nil when there are no variables.
// It fails only when they are not JSON objects.
func NewEnv(varsSchema, vars json.RawMessage) (*Env, error) {
	if len(varsSchema) == 0 {
		varsSchema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	b := shaper{objects: map[string]*shape{}}
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
	e.runs.New = func() any { return &run{} }
	return e, e.build(b.objects)
}

// build makes the CEL environment that all scopes extend.
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
	e.plain = &scope{env: e, cel: e.base, roots: e.roots, objects: e.own.objects}
	return nil
}

// Compile compiles a policy for one tool: against the schema of its arguments.
// The policy is nil when the list has errors. A policy that never mentions the
// arguments or the result is compiled once and shared by all tools, so that covering many
// costs next to nothing.
func (e *Env) Compile(src Source, t Tool) (*Policy, diag.List) {
	if !src.mayReadTool() {
		if p, diags := e.compileUniversal(src); p != nil {
			return p, diags
		}
		// What is wrong is told better by one who knows the arguments.
	}
	s, err := e.scopeFor(src.schemas(t))
	if err != nil {
		return nil, diag.List{schemaProblem(t, err)}
	}
	c := compiler{scope: s, owner: src.owner(), tool: &t}
	return c.policyOf(src), c.diags
}

func schemaProblem(t Tool, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: codeSchema, Summary: fmt.Sprintf("the arguments of tool %q have no schema that can be read", t.Name),
		Detail: err.Error(), Range: t.Range,
	}
}

// CompileAny checks a policy that covers no tool yet, taking any arguments.
func (e *Env) CompileAny(src Source) diag.List {
	if !src.mayReadTool() {
		if p, diags := e.compileUniversal(src); p != nil {
			return diags
		}
	}
	s, err := e.scopeFor(src.schemas(Tool{}))
	if err != nil {
		return diag.List{{Code: codeSchema, Summary: err.Error(), Range: src.Range}}
	}
	c := compiler{scope: s, owner: src.owner()}
	c.policyOf(src)
	return c.diags
}

// compileUniversal compiles a policy that is alike for all tools, or returns
// what became of it before.
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
	if len(e.universal) >= rememberMost {
		clear(e.universal)
	}
	e.universal[key] = universal{p, c.diags}
	return p, slices.Clone(c.diags)
}

// decodeVars decodes the variables. Numbers become what their types say.
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

// typeNumbers replaces the numbers in value, which is changed in place: those
// that the shape calls integers by int64, all others by float64. An integer that these do
// not hold exactly becomes one that does, or one that no expression can read.
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

// typedNumber returns a number for a place of a kind.
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
		return f // as JavaScript writes it
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
