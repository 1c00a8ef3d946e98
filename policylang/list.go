package policylang

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// stringList is a list of strings that CEL reads where it stands: scopes and
// groups are asked about in nearly every policy.
type stringList []string

// cel returns the list as CEL itself would make it, for all that is rare.
func (l *stringList) cel() traits.Lister {
	return types.NewStringList(types.DefaultTypeAdapter, *l)
}

// Add implements [traits.Adder].
func (l *stringList) Add(other ref.Val) ref.Val { return l.cel().Add(other) }

// Contains implements [traits.Container].
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

// ConvertToNative implements [ref.Val].
func (l *stringList) ConvertToNative(t reflect.Type) (any, error) { return l.cel().ConvertToNative(t) }

// ConvertToType implements [ref.Val].
func (l *stringList) ConvertToType(t ref.Type) ref.Val { return l.cel().ConvertToType(t) }

// Equal implements [ref.Val].
func (l *stringList) Equal(other ref.Val) ref.Val { return l.cel().Equal(other) }

// Get implements [traits.Indexer].
func (l *stringList) Get(index ref.Val) ref.Val { return l.cel().Get(index) }

// Iterator implements [traits.Iterable].
func (l *stringList) Iterator() traits.Iterator { return &stringIterator{rest: *l} }

// Size implements [traits.Sizer].
func (l *stringList) Size() ref.Val { return types.Int(len(*l)) }

// Type implements [ref.Val].
func (l *stringList) Type() ref.Type { return types.ListType }

// Value implements [ref.Val].
func (l *stringList) Value() any { return []string(*l) }

// stringIterator walks a stringList once.
type stringIterator struct {
	// Iterator is never set: it lends the methods that no expression calls.
	traits.Iterator
	rest []string
}

// HasNext implements [traits.Iterator].
func (i *stringIterator) HasNext() ref.Val { return types.Bool(len(i.rest) > 0) }

// Next implements [traits.Iterator].
func (i *stringIterator) Next() ref.Val {
	next := i.rest[0]
	i.rest = i.rest[1:]
	return types.String(next)
}
