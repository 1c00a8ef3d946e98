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
	d := &compiler{
		problems: problems{whole: whole, origin: origin}, dialect: draft2020,
		byPointer: map[string]*subschema{}, resources: map[string]*subschema{}, anchors: map[string]*subschema{}, dynamic: map[string][]*subschema{}, patterns: map[string]*pattern{},
	}
	if len(raw) > maxSchemaBytes {
		d.fail("", codeUnsafe, fmt.Sprintf("the schema is longer than %d bytes", maxSchemaBytes), "split the tool, or make the schema simpler")
		return d
	}
	decoder := decoder{data: raw, exact: true, path: make(location, 0, maxSchemaDepth)}
	value, ok := decoder.document(nil)
	if !ok {
		d.fail("", codeBad, "the schema "+decoder.flaw, "")
		return d
	}
	d.value = value
	d.findDialect()
	d.root = d.add(value, "", "")
	d.resolve()
	return d
}

// findDialect sets the dialect by $schema.
func (d *compiler) findDialect() {
	keys, _ := d.value.(map[string]any)
	uri, ok := keys["$schema"].(string)
	if !ok {
		return
	}
	dialect, known := dialectOf(uri)
	if !known {
		d.fail("/$schema", codeBad, fmt.Sprintf("the dialect %q of JSON Schema is not supported", clip(uri, maxNameBytes)),
			`remove "$schema", or write "https://json-schema.org/draft/2020-12/schema"`)
		return
	}
	d.dialect = dialect
}

// add adds the subschema value and its children. It returns nil if value is not a schema, or
// there are too many.
func (d *compiler) add(value any, at, base string) *subschema {
	if known := d.byPointer[at]; known != nil {
		return known
	}
	if depth := depthOf(at); depth > maxSchemaDepth {
		d.fail(at, codeUnsafe, fmt.Sprintf("the schema is nested deeper than %d levels", maxSchemaDepth), `move parts of it to "$defs"`)
		return nil
	}
	if len(d.byPointer) >= maxSubschemas {
		d.fail(at, codeUnsafe, fmt.Sprintf("the schema contains more than %d subschemas", maxSubschemas), "make it simpler")
		return nil
	}
	p := &subschema{pointer: at, base: base, dialect: d.dialect, children: map[string][]child{}}
	switch value := value.(type) {
	case bool:
		p.never = !value
	case map[string]any:
		p.keys = value
	default:
		d.fail(at, codeBad, "a schema must be an object, true or false", "")
		return nil
	}
	d.byPointer[at] = p
	d.order = append(d.order, p)
	d.identify(p)
	for _, name := range sortedNames(p.keys) {
		d.addKeyword(p, name, p.keys[name])
	}
	return p
}

// finish builds the decode plans and the rules.
func (d *compiler) finish() *Schema {
	s := &Schema{plan: d.planFor(d.root)}
	for _, pointer := range d.reader.BigInts {
		s.plan.markBig(strings.Split(pointer, "/")[1:])
	}
	s.node = d.build(d.root)
	d.completeDefaults()
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
func (d *compiler) identify(p *subschema) {
	key := "$id"
	if d.dialect == draft4 {
		key = "id"
	}
	_, hasRef := p.keys["$ref"]
	if id, ok := p.keys[key].(string); ok && (!hasRef || d.dialect >= draft2019) {
		d.name(p, key, id)
	}
	if p.pointer == "" {
		d.resources[p.base] = p
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if _, known := d.dialect.lookup(key); !known {
			continue
		}
		if name, ok := p.keys[key].(string); ok {
			d.anchor(p, p.base+"#"+name, key)
		}
	}
	if name, ok := p.keys["$dynamicAnchor"].(string); ok {
		d.dynamic[name] = append(d.dynamic[name], p)
	}
	if p.keys["$recursiveAnchor"] == true || p.pointer == "" {
		d.dynamic["#"] = append(d.dynamic["#"], p)
	}
}

// name sets the URI of a subschema.
func (d *compiler) name(p *subschema, key, id string) {
	uri, err := resolveURI(p.base, id)
	if err != nil {
		d.fail(p.pointer+"/"+key, codeBad, fmt.Sprintf("%q must be a URI", key), "")
		return
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	if fragment != "" {
		if d.dialect >= draft2019 {
			d.fail(p.pointer+"/"+key, codeBad, fmt.Sprintf("%q must have no fragment", key), `write an "$anchor"`)
			return
		}
		d.anchor(p, p.base+"#"+fragment, key)
		if id[0] == '#' {
			return
		}
	}
	p.base = uri.String()
	if d.resources[p.base] != nil && p.pointer != "" {
		d.fail(p.pointer+"/"+key, codeBad, "two subschemas have the same URI", "change one of them")
		return
	}
	d.resources[p.base] = p
}

func (d *compiler) anchor(p *subschema, uri, key string) {
	if other := d.anchors[uri]; other != nil && other != p {
		d.fail(p.pointer+"/"+key, codeBad, "two subschemas have the same anchor", "change one of them")
		return
	}
	d.anchors[uri] = p
}

// addChildren adds the subschemas of a list.
func (d *compiler) addChildren(p *subschema, keyword string, list []any) {
	for i, value := range list {
		d.addChild(p, keyword, strconv.Itoa(i), value, p.pointer+"/"+keyword+"/"+strconv.Itoa(i))
	}
}

func (d *compiler) addChild(p *subschema, keyword, name string, value any, at string) {
	if inner := d.add(value, at, p.base); inner != nil {
		p.children[keyword] = append(p.children[keyword], child{name, inner})
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
func (p *subschema) single(keyword string) *subschema {
	if list := p.children[keyword]; len(list) > 0 {
		return list[0].schema
	}
	return nil
}

// text returns the value of a string keyword, or "".
func (p *subschema) text(keyword string) string {
	s, _ := p.keys[keyword].(string)
	return s
}

// refersTo reports whether $dynamicRef names this anchor.
func (p *subschema) refersTo(name any) bool {
	_, fragment, _ := strings.Cut(p.text("$dynamicRef"), "#")
	return fragment == name
}

// onlyRef reports whether siblings of $ref are ignored, as before draft 2019-09.
func (p *subschema) onlyRef() bool { return p.ref != nil && p.dialect < draft2019 }

// sameInstance returns the subschemas that apply to the same value. Of those in dynamic, only
// one applies.
func (p *subschema) sameInstance() []*subschema {
	if p.onlyRef() {
		return []*subschema{p.ref}
	}
	var list []*subschema
	if p.ref != nil {
		list = append(list, p.ref)
	}
	for _, name := range sortedNames(p.children) {
		if keywords[name].inPlace {
			for _, s := range p.children[name] {
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
	where, exact := p.place(pointer)
	if !exact && pointer != "" {
		summary += fmt.Sprintf(" (at %s of the schema)", clip(pointer, maxSegmentBytes))
	}
	p.list = append(p.list, diag.Diagnostic{Severity: severity, Code: code, Summary: summary, Detail: detail, Range: where})
}

// place returns the range of the subschema at pointer, or else of its nearest ancestor with a
// range. exact means that it is the subschema itself.
func (p *problems) place(pointer string) (where diag.Range, exact bool) {
	for at := pointer; ; {
		if where, ok := p.origin[at]; ok {
			return where, at == pointer
		}
		slash := strings.LastIndexByte(at, '/')
		if slash < 0 {
			return p.whole, false
		}
		at = at[:slash]
	}
}
