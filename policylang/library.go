package policylang

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// libraries returns CEL as policies speak it. What is left out can answer
// with far more than it is given (string formatting, lists.range) or takes
// time that nothing interrupts (sorting, distinct).
func libraries(z *zones) []cel.EnvOption {
	library := []cel.EnvOption{
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(0)),
		ext.Math(),
		ext.Sets(),
		ext.Lists(ext.ListsVersion(0)),
		ext.Bindings(ext.BindingsVersion(0)),
		ext.Network(),
		cel.ParserExpressionSizeLimit(maxBytes),
	}
	return slices.Concat(library, mixedArithmetic(), searches(), z.options())
}

// mixed returns the function that stands in for an arithmetic operator beside
// a value whose type is known only in the call, or "". Unlike CEL's own, these
// take an integer beside a number. Their names cannot be written in a policy.
func mixed(operator string) string {
	switch operator {
	case operators.Add:
		return "@add"
	case operators.Subtract:
		return "@subtract"
	case operators.Multiply:
		return "@multiply"
	case operators.Divide:
		return "@divide"
	}
	return ""
}

func mixedArithmetic() []cel.EnvOption {
	return []cel.EnvOption{
		mixedOperator("@add", func(a, b ref.Val) ref.Val {
			if x, ok := a.(traits.Adder); ok {
				return x.Add(b)
			}
			return types.MaybeNoSuchOverloadErr(a)
		}),
		mixedOperator("@subtract", func(a, b ref.Val) ref.Val {
			if x, ok := a.(traits.Subtractor); ok {
				return x.Subtract(b)
			}
			return types.MaybeNoSuchOverloadErr(a)
		}),
		mixedOperator("@multiply", func(a, b ref.Val) ref.Val {
			if x, ok := a.(traits.Multiplier); ok {
				return x.Multiply(b)
			}
			return types.MaybeNoSuchOverloadErr(a)
		}),
		mixedOperator("@divide", func(a, b ref.Val) ref.Val {
			if x, ok := a.(traits.Divider); ok {
				return x.Divide(b)
			}
			return types.MaybeNoSuchOverloadErr(a)
		}),
	}
}

func mixedOperator(name string, op func(a, b ref.Val) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_dyn_dyn",
		[]*cel.Type{cel.DynType, cel.DynType}, cel.DynType,
		cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			switch {
			case a.Type() == types.DoubleType && b.Type() == types.IntType:
				b = b.ConvertToType(types.DoubleType)
			case a.Type() == types.IntType && b.Type() == types.DoubleType:
				a = a.ConvertToType(types.DoubleType)
			}
			return op(a, b)
		})))
}
