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

// adapter converts the Go values of an [Input] to CEL values.
type adapter struct {
	base types.Adapter
}

// beyondInt64 is the message for an integer that no CEL type can hold.
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

// number converts a number decoded without its type.
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

// opaqueObject is a fact set used as a [ref.Val]. Only its members can be read.
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

// stringList is a [traits.Lister] without a copy of its strings. Nearly every policy reads
// scopes or groups, so this path must be fast.
type stringList []string

// cel returns the list that CEL would build, for rarely used methods.
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

// stringIterator iterates over a stringList.
type stringIterator struct {
	// Iterator is always nil. It supplies methods that no expression calls.
	traits.Iterator
	rest []string
}

func (i *stringIterator) HasNext() ref.Val { return types.Bool(len(i.rest) > 0) }

func (i *stringIterator) Next() ref.Val {
	next := i.rest[0]
	i.rest = i.rest[1:]
	return types.String(next)
}

// sortedMap iterates over a map in key order. Go's random order would make decisions differ
// between calls.
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

// compareKeys orders keys of the same type by value, and other keys by type name.
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

// writesMap reports whether e contains a map literal.
func writesMap(e ast.Expr) bool {
	return contains(e, func(part ast.Expr) bool { return part.Kind() == ast.MapKind })
}

// sortMaps is an [interpreter.InterpretableDecoratorV2] that makes map literals iterate in key
// order.
func sortMaps(node interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if made, ok := node.(interpreter.InterpretableConstructor); ok && made.Type() == types.MapType {
		return mapLiteral{made}, nil
	}
	return node, nil
}

// mapLiteral creates a map that iterates in key order.
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
