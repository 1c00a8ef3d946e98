package policylang

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/mcpd/mcpd/identity"
)

// maxShapeDepth bounds the depth to which schemas are read. Deeper values can be anything.
const maxShapeDepth = 12

// shape is the type of a value in a JSON Schema, as far as CEL can express it.
type shape struct {
	// cel is the type in CEL; dyn if the schema does not determine it.
	cel *types.Type
	// fields are the named members of an object, and nil for other values.
	fields map[string]*shape
	// open means that an object may have other members than its fields.
	open bool
	// required means that a member is always present, possibly by its default.
	required bool
	// enum holds the only allowed strings, if the schema lists them.
	enum []string
	// items is the shape of list elements or map values.
	items *shape
	// size bounds the length of a string, list or map; 0 means no bound.
	size uint64
}

// names returns the names of an object's fields, sorted.
func (s *shape) names() []string { return slices.Sorted(maps.Keys(s.fields)) }

func anything() *shape { return &shape{cel: types.DynType} }

// anyObject is the shape of an object without known members.
func anyObject() *shape {
	return &shape{cel: types.NewMapType(types.StringType, types.DynType), items: anything()}
}

// schemaDoc holds the keywords of JSON Schema 2020-12 that determine the type.
type schemaDoc struct {
	Type                 json.RawMessage            `json:"type"`
	Enum                 []json.RawMessage          `json:"enum"`
	Const                json.RawMessage            `json:"const"`
	Default              json.RawMessage            `json:"default"`
	Properties           map[string]json.RawMessage `json:"properties"`
	PatternProperties    map[string]json.RawMessage `json:"patternProperties"`
	AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	Required             []string                   `json:"required"`
	Items                json.RawMessage            `json:"items"`
	PrefixItems          []json.RawMessage          `json:"prefixItems"`
	MaxLength            *float64                   `json:"maxLength"`
	MaxItems             *float64                   `json:"maxItems"`
	MaxProperties        *float64                   `json:"maxProperties"`
}

// shapeBuilder builds shapes. It gives object types names that no expression can write.
type shapeBuilder struct {
	objects map[string]*shape
	// ignoreDefaults means that defaults are not filled in, as in the result of a script.
	ignoreDefaults bool
}

// root reads the schema of arguments or variables. They are always objects, whatever type the
// schema has.
func (b *shapeBuilder) root(schema json.RawMessage) (*shape, error) {
	if len(schema) == 0 {
		return anyObject(), nil
	}
	doc, err := readSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("read the JSON Schema: %w", err)
	}
	if doc.Properties == nil && string(doc.AdditionalProperties) != "false" {
		return anyObject(), nil
	}
	return b.object(doc, 0), nil
}

// readSchema reads keywords by their exact names. encoding/json ignores case: it would accept
// "AdditionalProperties", which validators ignore, and a policy could be pruned by mistake.
func readSchema(raw json.RawMessage) (doc schemaDoc, err error) {
	var keywords map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keywords); err != nil {
		return doc, err
	}
	maps.DeleteFunc(keywords, func(name string, _ json.RawMessage) bool { return !slices.Contains(keywordNames, name) })
	exact, err := json.Marshal(keywords)
	if err != nil {
		return doc, err
	}
	err = json.Unmarshal(exact, &doc)
	return doc, err
}

// keywordNames are the JSON names of the fields of [schemaDoc].
var keywordNames = []string{
	"type", "enum", "const", "default", "properties", "patternProperties", "additionalProperties",
	"required", "items", "prefixItems", "maxLength", "maxItems", "maxProperties",
}

// shape reads a schema. Unsupported schemas, such as true, or only $ref or anyOf, can be
// anything.
func (b *shapeBuilder) shape(raw json.RawMessage, depth int) *shape {
	doc, err := readSchema(raw)
	if err != nil || depth > maxShapeDepth {
		return anything()
	}
	kind, nullable := doc.kind()
	switch kind {
	case "string":
		return &shape{cel: nullableType(types.StringType, nullable), enum: doc.strings(), size: bound(doc.MaxLength)}
	case "integer":
		return &shape{cel: nullableType(types.IntType, nullable)}
	case "number":
		return &shape{cel: nullableType(types.DoubleType, nullable)}
	case "boolean":
		return &shape{cel: nullableType(types.BoolType, nullable)}
	case "null":
		return &shape{cel: types.NullType}
	}
	if nullable {
		return anything()
	}
	switch kind {
	case "array":
		return b.list(doc, depth)
	case "object":
		return b.object(doc, depth)
	}
	return anything()
}

func (b *shapeBuilder) list(doc schemaDoc, depth int) *shape {
	items := anything()
	if doc.Items != nil && doc.PrefixItems == nil {
		items = b.shape(doc.Items, depth+1)
	}
	return &shape{cel: types.NewListType(items.cel), items: items, size: bound(doc.MaxItems)}
}

func (b *shapeBuilder) object(doc schemaDoc, depth int) *shape {
	closed := string(doc.AdditionalProperties) == "false" && doc.PatternProperties == nil
	if len(doc.Properties) == 0 && !closed {
		items := anything()
		if doc.AdditionalProperties != nil && doc.PatternProperties == nil {
			items = b.shape(doc.AdditionalProperties, depth+1)
		}
		return &shape{cel: types.NewMapType(types.StringType, items.cel), items: items, size: bound(doc.MaxProperties)}
	}
	name := "@object" + strconv.Itoa(len(b.objects))
	s := &shape{cel: types.NewObjectType(name), fields: map[string]*shape{}, open: !closed}
	b.objects[name] = s
	for key, raw := range doc.Properties {
		field := b.shape(raw, depth+1)
		field.required = slices.Contains(doc.Required, key) || !b.ignoreDefaults && hasDefault(raw)
		s.fields[key] = field
	}
	return s
}

func hasDefault(raw json.RawMessage) bool {
	doc, err := readSchema(raw)
	return err == nil && doc.Default != nil
}

// kind returns the only type of the schema besides null, or "" if it has none or several.
func (d schemaDoc) kind() (kind string, nullable bool) {
	var kinds []string
	if err := json.Unmarshal(d.Type, &kinds); err != nil {
		var one string
		if err := json.Unmarshal(d.Type, &one); err != nil {
			return d.enumKind(), false
		}
		return one, false
	}
	nullable = slices.Contains(kinds, "null")
	kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "null" })
	slices.Sort(kinds)
	switch {
	case len(kinds) == 1:
		return kinds[0], nullable
	case slices.Equal(kinds, []string{"integer", "number"}):
		return "number", nullable
	case len(kinds) == 0 && nullable:
		return "null", false
	}
	return "", nullable
}

// enumKind returns the type of a schema without "type", by its enum values.
func (d schemaDoc) enumKind() string {
	null := func(raw json.RawMessage) bool { return string(raw) == "null" }
	if len(d.strings()) > 0 && !slices.ContainsFunc(d.Enum, null) {
		return "string"
	}
	return ""
}

// strings returns the listed strings, or nil if the schema lists none or also other values.
func (d schemaDoc) strings() []string {
	values := d.Enum
	if d.Const != nil {
		values = []json.RawMessage{d.Const}
	}
	var list []string
	for _, raw := range values {
		var s *string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil
		}
		if s != nil {
			list = append(list, *s)
		}
	}
	return list
}

func nullableType(t *types.Type, nullable bool) *types.Type {
	if nullable {
		return types.NewNullableType(t)
	}
	return t
}

func bound(limit *float64) uint64 {
	if limit == nil || *limit < 0 || *limit > 1<<40 {
		return 0
	}
	return uint64(*limit)
}

// fact is a member of a fact set, such as principal.id.
type fact struct {
	name string
	cel  *types.Type
	// enum holds the only possible values of a string, if they are fixed.
	enum []string
	// size bounds a list or map for the cost estimate.
	size uint64
	get  func(owner any) any
}

// factSet is a variable with the same members in every policy.
type factSet struct {
	name  string
	cel   *types.Type
	facts []fact
}

// factSets returns all variables except args, vars and now. Their values are pointers into the
// [Input], read only on access.
func factSets() []factSet {
	text := types.StringType
	return []factSet{
		newFactSet("agent",
			stringFact("agent_id", func(a *identity.Agent) string { return a.AgentID }),
			fact{name: "model", cel: types.NewNullableType(text), get: func(owner any) any {
				if m := owner.(*identity.Agent).Model; m != "" {
					return types.String(m)
				}
				return types.NullValue
			}},
			stringFact("request_id", func(a *identity.Agent) string { return a.RequestID }),
			labelsFact("metadata", identity.MetadataEntries, func(a *identity.Agent) map[string]string { return a.Metadata }),
			boolFact("verified", func(a *identity.Agent) bool { return a.Verified }),
		),
		newFactSet("principal",
			stringFact("id", func(p *identity.Principal) string { return p.ID }),
			stringFact("kind", func(p *identity.Principal) string { return string(p.Kind) }),
			stringFact("issuer", func(p *identity.Principal) string { return p.Issuer }),
			listFact("scopes", func(p *identity.Principal) *[]string { return &p.Scopes }),
			listFact("groups", func(p *identity.Principal) *[]string { return &p.Groups }),
			fact{name: "claims", cel: types.NewMapType(text, types.DynType), size: maxMemberships, get: func(owner any) any { return owner.(*identity.Principal).Claims }},
		),
		newFactSet("tool",
			stringFact("kind", func(t *ToolFacts) string { return t.Kind }),
			stringFact("name", func(t *ToolFacts) string { return t.Name }),
			stringFact("title", func(t *ToolFacts) string { return t.Title }),
			labelsFact("labels", maxMemberships, func(t *ToolFacts) map[string]string { return t.Labels }),
			boolFact("read_only", func(t *ToolFacts) bool { return t.ReadOnly }),
			boolFact("idempotent", func(t *ToolFacts) bool { return t.Idempotent }),
			boolFact("destructive", func(t *ToolFacts) bool { return t.Destructive }),
			boolFact("open_world", func(t *ToolFacts) bool { return t.OpenWorld }),
		),
		newFactSet("call",
			stringFact("id", func(c *CallFacts) string { return c.ID }),
			fact{name: "via", cel: text, enum: []string{"client", "code", "tool", "test"}, get: func(owner any) any { return types.String(owner.(*CallFacts).Via) }},
			fact{name: "depth", cel: types.IntType, get: func(owner any) any { return types.Int(owner.(*CallFacts).Depth) }},
			stringFact("parent", func(c *CallFacts) string { return c.Parent }),
		),
		newFactSet("source",
			stringFact("ip", func(s *identity.Source) string { return s.IP }),
			stringFact("listener", func(s *identity.Source) string { return s.Listener }),
		),
	}
}

// isFactSet reports whether a variable is a fact set.
func isFactSet(name string) bool {
	return slices.Contains([]string{"agent", "principal", "tool", "call", "source"}, name)
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

// shape describes the members as a shape.
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

// fieldTypes returns the members for CEL.
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
