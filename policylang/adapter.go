package policylang

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/mcpd/mcpd/identity"
)

// adapter turns the Go values of an [Input] into CEL's.
type adapter struct {
	base types.Adapter
}

// beyondInt64 is the error of an integer that CEL has no type for.
const beyondInt64 = "an integer beyond int64"

func (a *adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case ref.Val:
		return v
	case string:
		return types.String(v)
	case bool:
		return types.Bool(v)
	case float64:
		return types.Double(v)
	case int64:
		return types.Int(v)
	case *big.Int:
		return types.NewErr(beyondInt64)
	case nil:
		return types.NullValue
	case json.Number:
		return number(v)
	case []any:
		return types.NewDynamicList(a, v)
	case map[string]any:
		return sortedMap{types.NewStringInterfaceMap(a, v)}
	case map[string]string:
		return sortedMap{types.NewStringStringMap(a, v)}
	case *identity.Agent, *identity.Principal, *identity.Source, *ToolFacts, *CallFacts:
		return opaqueObject{v}
	}
	return a.base.NativeToValue(value)
}

// number reads a number that was decoded without its type.
func number(n json.Number) ref.Val {
	if i, err := n.Int64(); err == nil {
		return types.Int(i)
	}
	f, err := n.Float64()
	if err != nil {
		return types.NewErr("number out of range")
	}
	return types.Double(f)
}

// whole is a fact set that an expression uses as a [ref.Val] of its own, which can only be
// asked for its members.
type opaqueObject struct{ owner any }

func (w opaqueObject) ConvertToNative(t reflect.Type) (any, error) {
	return types.NullValue.ConvertToNative(t)
}

func (w opaqueObject) ConvertToType(ref.Type) ref.Val { return types.NewErr("no such overload") }

func (w opaqueObject) Equal(other ref.Val) ref.Val {
	o, ok := other.(opaqueObject)
	return types.Bool(ok && o.owner == w.owner)
}

func (w opaqueObject) Type() ref.Type { return types.NewObjectType("object") }
func (w opaqueObject) Value() any     { return w.owner }

// stringList is a [traits.Lister] that CEL reads where it stands: nearly every policy asks
// about scopes and groups.
type stringList []string

// cel returns the list as CEL itself would make it, for all that is rare.
func (l *stringList) cel() traits.Lister {
	return types.NewStringList(types.DefaultTypeAdapter, *l)
}

func (l *stringList) Add(other ref.Val) ref.Val { return l.cel().Add(other) }

func (l *stringList) Contains(value ref.Val) ref.Val {
	want, ok := value.(types.String)
	if !ok {
		return types.False
	}
	for _, s := range *l {
		if s == string(want) {
			return types.True
		}
	}
	return types.False
}

func (l *stringList) ConvertToNative(t reflect.Type) (any, error) { return l.cel().ConvertToNative(t) }
func (l *stringList) ConvertToType(t ref.Type) ref.Val            { return l.cel().ConvertToType(t) }
func (l *stringList) Equal(other ref.Val) ref.Val                 { return l.cel().Equal(other) }
func (l *stringList) Get(index ref.Val) ref.Val                   { return l.cel().Get(index) }
func (l *stringList) Iterator() traits.Iterator                   { return &stringIterator{rest: *l} }
func (l *stringList) Size() ref.Val                               { return types.Int(len(*l)) }
func (l *stringList) Type() ref.Type                              { return types.ListType }
func (l *stringList) Value() any                                  { return []string(*l) }

// stringIterator walks a stringList once.
type stringIterator struct {
	// Iterator is never set: it lends the methods that no expression calls.
	traits.Iterator
	rest []string
}

func (i *stringIterator) HasNext() ref.Val { return types.Bool(len(i.rest) > 0) }

func (i *stringIterator) Next() ref.Val {
	next := i.rest[0]
	i.rest = i.rest[1:]
	return types.String(next)
}

// sortedMap is a map that is walked in the order of its keys: Go's own order
// would make decisions differ from call to call.
type sortedMap struct{ traits.Mapper }

func (m sortedMap) Iterator() traits.Iterator {
	switch native := m.Value().(type) {
	case map[string]any:
		return &stringIterator{rest: slices.Sorted(maps.Keys(native))}
	case map[string]string:
		return &stringIterator{rest: slices.Sorted(maps.Keys(native))}
	}
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// compareKeys orders keys of one type by value, and those of several by the
// name of their type.
func compareKeys(a, b ref.Val) int {
	if c := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	if x, ok := a.(traits.Comparer); ok {
		if c, ok := x.Compare(b).(types.Int); ok {
			return int(c)
		}
	}
	return 0
}

// writesMap reports whether a map is written out anywhere in e.
func writesMap(e ast.Expr) bool {
	return contains(e, func(part ast.Expr) bool { return part.Kind() == ast.MapKind })
}

// sortMaps is an [interpreter.InterpretableDecoratorV2] that sorts the maps
// that are written out in an expression.
func sortMaps(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if made, ok := node.(interpreter.InterpretableConstructor); ok && made.Type() == types.MapType {
		return mapLiteral{made}, nil
	}
	return node, nil
}

// mapLiteral makes a map that is walked in order.
type mapLiteral struct {
	interpreter.InterpretableConstructor
}

func (m mapLiteral) Eval(vars interpreter.Activation) ref.Val {
	return m.Exec(interpreter.AsFrame(vars))
}

func (m mapLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := m.InterpretableConstructor.Exec(frame)
	if made, ok := value.(traits.Mapper); ok {
		return sortedMap{made}
	}
	return value
}
