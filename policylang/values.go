package policylang

import (
	"encoding/json"
	"math/big"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/mcpd/mcpd/identity"
)

// adapter turns the Go values of an [Input] into CEL's.
type adapter struct {
	base types.Adapter
}

// beyondInt64 is the error of an integer that CEL has no type for.
const beyondInt64 = "an integer beyond int64"

// NativeToValue implements [types.Adapter].
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
		return whole{v}
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

// whole is a fact set that an expression uses as a value of its own. All that
// can be done with it is to read its members.
type whole struct{ owner any }

// ConvertToNative implements [ref.Val].
func (w whole) ConvertToNative(t reflect.Type) (any, error) {
	return types.NullValue.ConvertToNative(t)
}

// ConvertToType implements [ref.Val].
func (w whole) ConvertToType(ref.Type) ref.Val { return types.NewErr("no such overload") }

// Equal implements [ref.Val].
func (w whole) Equal(other ref.Val) ref.Val {
	o, ok := other.(whole)
	return types.Bool(ok && o.owner == w.owner)
}

// Type implements [ref.Val].
func (w whole) Type() ref.Type { return types.NewObjectType("object") }

// Value implements [ref.Val].
func (w whole) Value() any { return w.owner }
