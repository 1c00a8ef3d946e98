package policylang

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// sortedMap is a map that is walked in the order of its keys: Go's own order
// would make decisions differ from call to call.
type sortedMap struct{ traits.Mapper }

// Iterator implements [traits.Iterable].
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
	found := false
	visit(e, func(part ast.Expr) { found = found || part.Kind() == ast.MapKind })
	return found
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

// Eval implements [interpreter.Interpretable].
func (m mapLiteral) Eval(vars interpreter.Activation) ref.Val {
	return m.Exec(interpreter.AsFrame(vars))
}

// Exec implements [interpreter.InterpretableV2].
func (m mapLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := m.InterpretableConstructor.Exec(frame)
	if made, ok := value.(traits.Mapper); ok {
		return sortedMap{made}
	}
	return value
}
