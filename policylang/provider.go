package policylang

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

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
