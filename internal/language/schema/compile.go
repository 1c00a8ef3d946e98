package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

const (
	// maxSchemaBytes bounds the size of a schema, maxSchemaDepth its nesting, and maxSubschemas
	// the number of its subschemas.
	maxSchemaBytes = 512 << 10
	maxSchemaDepth = 64
	maxSubschemas  = 4096
)

// compiler compiles one schema.
type compiler struct {
	problems
	dialect dialect
	reader  Reader
	value   any
	root    *subschema
	// byPointer holds the subschemas by JSON pointer; order lists them in discovery order.
	byPointer map[string]*subschema
	order     []*subschema
	// resources are the subschemas with a URI; anchors are subschemas by URI with fragment.
	resources map[string]*subschema
	anchors   map[string]*subschema
	dynamic   map[string][]*subschema
	patterns  map[string]*pattern
	// unevaluated means that a keyword depends on the members or items that other keywords
	// apply to. scoped means that a reference depends on the entered resources.
	unevaluated, scoped bool
	// declaredLookups counts the subschemas whose declared members were collected.
	// dynamicTargets counts the targets of all dynamic references.
	declaredLookups, dynamicTargets int
}

// read decodes a schema and finds its subschemas. It returns nil if it cannot continue.
func read(raw json.RawMessage, whole diag.Range, origin Positions) *compiler {
	c := &compiler{
		problems: problems{whole: whole, origin: origin}, dialect: draft2020,
		byPointer: map[string]*subschema{}, resources: map[string]*subschema{}, anchors: map[string]*subschema{}, dynamic: map[string][]*subschema{}, patterns: map[string]*pattern{},
	}
	if len(raw) > maxSchemaBytes {
		c.fail("", codeUnsafe, fmt.Sprintf("the schema is longer than %d bytes", maxSchemaBytes), "split the tool, or make the schema simpler")
		return c
	}
	decoder := decoder{data: raw, exact: true, path: make(location, 0, maxSchemaDepth)}
	value, ok := decoder.document(nil)
	if !ok {
		c.fail("", codeBad, "the schema "+decoder.flaw, "")
		return c
	}
	c.value = value
	c.findDialect()
	c.root = c.add(value, "", "")
	c.resolve()
	return c
}

// findDialect sets the dialect by $schema.
func (c *compiler) findDialect() {
	keys, _ := c.value.(map[string]any)
	uri, ok := keys["$schema"].(string)
	if !ok {
		return
	}
	dialect, known := dialectOf(uri)
	if !known {
		c.fail("/$schema", codeBad, fmt.Sprintf("the dialect %q of JSON Schema is not supported", clip(uri, maxNameBytes)),
			`remove "$schema", or write "https://json-schema.org/draft/2020-12/schema"`)
		return
	}
	c.dialect = dialect
}

// add adds the subschema value and its children. It returns nil if value is not a schema, or
// there are too many.
func (c *compiler) add(value any, at, base string) *subschema {
	if known := c.byPointer[at]; known != nil {
		return known
	}
	if depth := depthOf(at); depth > maxSchemaDepth {
		c.fail(at, codeUnsafe, fmt.Sprintf("the schema is nested deeper than %d levels", maxSchemaDepth), `move parts of it to "$defs"`)
		return nil
	}
	if len(c.byPointer) >= maxSubschemas {
		c.fail(at, codeUnsafe, fmt.Sprintf("the schema contains more than %d subschemas", maxSubschemas), "make it simpler")
		return nil
	}
	sub := &subschema{pointer: at, base: base, dialect: c.dialect, children: map[string][]child{}}
	switch value := value.(type) {
	case bool:
		sub.never = !value
	case map[string]any:
		sub.keys = value
	default:
		c.fail(at, codeBad, "a schema must be an object, true or false", "")
		return nil
	}
	c.byPointer[at] = sub
	c.order = append(c.order, sub)
	c.identify(sub)
	for _, name := range sortedNames(sub.keys) {
		c.addKeyword(sub, name, sub.keys[name])
	}
	return sub
}

// finish builds the decode plans and the rules.
func (c *compiler) finish() *Schema {
	s := &Schema{plan: c.planFor(c.root)}
	for _, pointer := range c.reader.BigInts {
		s.plan.markBig(strings.Split(pointer, "/")[1:])
	}
	s.node = c.build(c.root)
	c.completeDefaults()
	return s
}

func depthOf(pointer string) int {
	depth := 0
	for i := range len(pointer) {
		if pointer[i] == '/' {
			depth++
		}
	}
	return depth
}

// identify adds the URI and the anchors of a subschema.
func (c *compiler) identify(sub *subschema) {
	key := "$id"
	if c.dialect == draft4 {
		key = "id"
	}
	_, hasRef := sub.keys["$ref"]
	if id, ok := sub.keys[key].(string); ok && (!hasRef || c.dialect >= draft2019) {
		c.name(sub, key, id)
	}
	if sub.pointer == "" {
		c.resources[sub.base] = sub
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if _, known := c.dialect.lookup(key); !known {
			continue
		}
		if name, ok := sub.keys[key].(string); ok {
			c.anchor(sub, sub.base+"#"+name, key)
		}
	}
	if name, ok := sub.keys["$dynamicAnchor"].(string); ok {
		c.dynamic[name] = append(c.dynamic[name], sub)
	}
	if sub.keys["$recursiveAnchor"] == true || sub.pointer == "" {
		c.dynamic["#"] = append(c.dynamic["#"], sub)
	}
}

// name sets the URI of a subschema.
func (c *compiler) name(sub *subschema, key, id string) {
	uri, err := resolveURI(sub.base, id)
	if err != nil {
		c.fail(sub.pointer+"/"+key, codeBad, fmt.Sprintf("%q must be a URI", key), "")
		return
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	if fragment != "" {
		if c.dialect >= draft2019 {
			c.fail(sub.pointer+"/"+key, codeBad, fmt.Sprintf("%q must have no fragment", key), `write an "$anchor"`)
			return
		}
		c.anchor(sub, sub.base+"#"+fragment, key)
		if id[0] == '#' {
			return
		}
	}
	sub.base = uri.String()
	if c.resources[sub.base] != nil && sub.pointer != "" {
		c.fail(sub.pointer+"/"+key, codeBad, "two subschemas have the same URI", "change one of them")
		return
	}
	c.resources[sub.base] = sub
}

func (c *compiler) anchor(sub *subschema, uri, key string) {
	if other := c.anchors[uri]; other != nil && other != sub {
		c.fail(sub.pointer+"/"+key, codeBad, "two subschemas have the same anchor", "change one of them")
		return
	}
	c.anchors[uri] = sub
}

// addChildren adds the subschemas of a list.
func (c *compiler) addChildren(sub *subschema, keyword string, list []any) {
	for i, value := range list {
		c.addChild(sub, keyword, strconv.Itoa(i), value, sub.pointer+"/"+keyword+"/"+strconv.Itoa(i))
	}
}

func (c *compiler) addChild(sub *subschema, keyword, name string, value any, at string) {
	if inner := c.add(value, at, sub.base); inner != nil {
		sub.children[keyword] = append(sub.children[keyword], child{name, inner})
	}
}

// subschema is a schema within a schema, or the root.
type subschema struct {
	// pointer is its JSON pointer from the root.
	pointer string
	// base is the base URI of its references.
	base string
	// dialect is the dialect of the root.
	dialect dialect
	// keys are its members; nil if it is true or false.
	keys map[string]any
	// never is set for the schema false.
	never bool
	// children are its subschemas, by keyword.
	children map[string][]child
	// ref is the target of $ref.
	ref *subschema
	// dynamic are the possible targets of $dynamicRef or $recursiveRef.
	dynamic []*subschema

	node *node
	plan *decodePlan
}

// child is a subschema with its key or index.
type child struct {
	name   string
	schema *subschema
}

// single returns the subschema of a keyword with one schema.
func (sub *subschema) single(keyword string) *subschema {
	if list := sub.children[keyword]; len(list) > 0 {
		return list[0].schema
	}
	return nil
}

// text returns the value of a string keyword, or "".
func (sub *subschema) text(keyword string) string {
	s, _ := sub.keys[keyword].(string)
	return s
}

// refersTo reports whether $dynamicRef names this anchor.
func (sub *subschema) refersTo(name any) bool {
	_, fragment, _ := strings.Cut(sub.text("$dynamicRef"), "#")
	return fragment == name
}

// onlyRef reports whether siblings of $ref are ignored, as before draft 2019-09.
func (sub *subschema) onlyRef() bool { return sub.ref != nil && sub.dialect < draft2019 }

// sameInstance returns the subschemas that apply to the same value. Of those in dynamic, only
// one applies.
func (sub *subschema) sameInstance() []*subschema {
	if sub.onlyRef() {
		return []*subschema{sub.ref}
	}
	var list []*subschema
	if sub.ref != nil {
		list = append(list, sub.ref)
	}
	for _, name := range sortedNames(sub.children) {
		if keywords[name].inPlace {
			for _, s := range sub.children[name] {
				list = append(list, s.schema)
			}
		}
	}
	return list
}

// Codes of diagnostics.
const (
	codeBad     = "bad-schema"
	codeUnsafe  = "unsafe-schema"
	codeRemote  = "remote-schema"
	codePattern = "bad-pattern"
	codeFormat  = "unknown-format"
	codeKeyword = "unknown-keyword"
	codeDefault = "bad-default"
)

// maxDiagnostics bounds the diagnostics of a schema, and maxWarnings the warnings among them.
const (
	maxDiagnostics = 50
	maxWarnings    = 20
)

// problems collects the diagnostics of a schema.
type problems struct {
	whole  diag.Range
	origin Positions
	list   diag.List
	// warnings counts the warnings, so that they do not displace errors.
	warnings int
}

// fail reports an error at a JSON pointer.
func (p *problems) fail(pointer, code, summary, detail string) {
	p.add(diag.Error, pointer, code, summary, detail)
}

// warn reports a warning at a JSON pointer.
func (p *problems) warn(pointer, code, summary, detail string) {
	if p.warnings++; p.warnings <= maxWarnings {
		p.add(diag.Warning, pointer, code, summary, detail)
	}
}

func (p *problems) add(severity diag.Severity, pointer, code, summary, detail string) {
	if len(p.list) >= maxDiagnostics {
		return
	}
	where, exact := p.locate(pointer)
	if !exact && pointer != "" {
		summary += fmt.Sprintf(" (at %s of the schema)", clip(pointer, maxSegmentBytes))
	}
	p.list = append(p.list, diag.Diagnostic{Severity: severity, Code: code, Summary: summary, Detail: detail, Range: where})
}

// locate returns the range of the subschema at pointer, or else of its nearest ancestor with a
// range. exact means that it is the subschema itself.
func (p *problems) locate(pointer string) (where diag.Range, exact bool) {
	for at := pointer; p.origin != nil; {
		if where, ok := p.origin(at); ok {
			return where, at == pointer
		}
		slash := strings.LastIndexByte(at, '/')
		if slash < 0 {
			break
		}
		at = at[:slash]
	}
	return p.whole, false
}
