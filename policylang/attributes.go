package policylang

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/mcpd/mcpd/identity"
)

// fact is a member of a variable that every policy knows, such as
// principal.id.
type fact struct {
	name string
	cel  *types.Type
	// enum holds the only values of a string, when they are fixed.
	enum []string
	// size bounds a list or map for the estimate of cost.
	size uint64
	get  func(owner any) any
}

// factSet is the type of such a variable.
type factSet struct {
	name  string
	cel   *types.Type
	facts []fact
}

// factSets returns the variables beside args, vars and now. Their values are
// pointers into the [Input], read only when an expression names them.
func factSets() []factSet {
	return []factSet{agentFacts(), principalFacts(), toolFacts(), callFacts(), sourceFacts()}
}

// isFactSet reports whether a variable is one of the fact sets.
func isFactSet(name string) bool {
	switch name {
	case "agent", "principal", "tool", "call", "source":
		return true
	}
	return false
}

func newFactSet(name string, facts ...fact) factSet {
	return factSet{name: name, cel: types.NewObjectType("@" + name), facts: facts}
}

func stringFact[T any](name string, get func(*T) string) fact {
	return fact{name: name, cel: types.StringType, get: func(owner any) any { return types.String(get(owner.(*T))) }}
}

func boolFact[T any](name string, get func(*T) bool) fact {
	return fact{name: name, cel: types.BoolType, get: func(owner any) any { return types.Bool(get(owner.(*T))) }}
}

func listFact[T any](name string, get func(*T) *[]string) fact {
	return fact{
		name: name, cel: types.NewListType(types.StringType), size: maxMemberships,
		get: func(owner any) any { return (*stringList)(get(owner.(*T))) },
	}
}

func labelsFact[T any](name string, size uint64, get func(*T) map[string]string) fact {
	return fact{
		name: name, cel: types.NewMapType(types.StringType, types.StringType), size: size,
		get: func(owner any) any { return get(owner.(*T)) },
	}
}

func agentFacts() factSet {
	model := fact{name: "model", cel: types.NewNullableType(types.StringType), get: func(owner any) any {
		if m := owner.(*identity.Agent).Model; m != "" {
			return types.String(m)
		}
		return types.NullValue
	}}
	return newFactSet("agent",
		stringFact("agent_id", func(a *identity.Agent) string { return a.AgentID }),
		model,
		stringFact("request_id", func(a *identity.Agent) string { return a.RequestID }),
		labelsFact("metadata", identity.MetadataEntries, func(a *identity.Agent) map[string]string { return a.Metadata }),
		boolFact("verified", func(a *identity.Agent) bool { return a.Verified }),
	)
}

func principalFacts() factSet {
	claims := fact{
		name: "claims", cel: types.NewMapType(types.StringType, types.DynType), size: maxMemberships,
		get: func(owner any) any { return owner.(*identity.Principal).Claims },
	}
	return newFactSet("principal",
		stringFact("id", func(p *identity.Principal) string { return p.ID }),
		stringFact("kind", func(p *identity.Principal) string { return string(p.Kind) }),
		stringFact("issuer", func(p *identity.Principal) string { return p.Issuer }),
		listFact("scopes", func(p *identity.Principal) *[]string { return &p.Scopes }),
		listFact("groups", func(p *identity.Principal) *[]string { return &p.Groups }),
		claims,
	)
}

func toolFacts() factSet {
	return newFactSet("tool",
		stringFact("kind", func(t *ToolFacts) string { return t.Kind }),
		stringFact("name", func(t *ToolFacts) string { return t.Name }),
		stringFact("title", func(t *ToolFacts) string { return t.Title }),
		labelsFact("labels", maxMemberships, func(t *ToolFacts) map[string]string { return t.Labels }),
		boolFact("read_only", func(t *ToolFacts) bool { return t.ReadOnly }),
		boolFact("idempotent", func(t *ToolFacts) bool { return t.Idempotent }),
		boolFact("destructive", func(t *ToolFacts) bool { return t.Destructive }),
		boolFact("open_world", func(t *ToolFacts) bool { return t.OpenWorld }),
	)
}

func callFacts() factSet {
	via := stringFact("via", func(c *CallFacts) string { return c.Via })
	via.enum = []string{"client", "code", "tool", "test"}
	depth := fact{name: "depth", cel: types.IntType, get: func(owner any) any {
		return types.Int(owner.(*CallFacts).Depth)
	}}
	return newFactSet("call",
		stringFact("id", func(c *CallFacts) string { return c.ID }),
		via,
		depth,
		stringFact("parent", func(c *CallFacts) string { return c.Parent }),
	)
}

func sourceFacts() factSet {
	return newFactSet("source",
		stringFact("ip", func(s *identity.Source) string { return s.IP }),
		stringFact("listener", func(s *identity.Source) string { return s.Listener }),
	)
}

// shape returns what the set says of its members, in the words of a schema.
func (s factSet) shape() *shape {
	out := &shape{cel: s.cel, fields: map[string]*shape{}}
	for _, f := range s.facts {
		member := &shape{cel: f.cel, enum: f.enum, size: f.size, required: true}
		if params := f.cel.Parameters(); len(params) > 0 {
			member.items = &shape{cel: params[len(params)-1]}
		}
		out.fields[f.name] = member
	}
	return out
}

// fieldTypes returns the members as CEL looks them up.
func (s factSet) fieldTypes() map[string]*types.FieldType {
	out := make(map[string]*types.FieldType, len(s.facts))
	for _, f := range s.facts {
		out[f.name] = &types.FieldType{
			Type:    f.cel,
			IsSet:   func(owner any) bool { return f.get(owner) != ref.Val(types.NullValue) },
			GetFrom: func(owner any) (any, error) { return f.get(owner), nil },
		}
	}
	return out
}
