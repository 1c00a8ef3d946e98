package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

const (
	// largestSchema bounds the bytes of a schema, deepestSchema how many arrays
	// and objects of it may be open at once, and mostParts the schemas in it.
	maxSchemaBytes = 512 << 10
	maxSchemaDepth = 64
	maxSubschemas  = 4096
)

// A document is a schema that is being compiled.
type compiler struct {
	problems
	dialect dialect
	reader  Reader
	value   any
	root    *subschema
	// parts are by JSON pointer, and listed in the order in which they were found.
	byPointer map[string]*subschema
	order     []*subschema
	// resources are the parts that have a URI of their own; anchors are by URI with fragment.
	resources map[string]*subschema
	anchors   map[string]*subschema
	dynamic   map[string][]*subschema
	patterns  map[string]*pattern
	// unevaluated says that a keyword asks which members or items the others apply to, and
	// scoped that a reference depends on the resources that were entered.
	unevaluated, scoped bool
	// declaring counts the parts whose declared members were looked for, and meanings the
	// parts that all dynamic references together may refer to.
	declaredLookups, dynamicTargets int
}

// read decodes a schema and finds its parts. It returns nil when there is
// nothing to go on with.
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

// findDialect takes the dialect from $schema.
func (d *compiler) findDialect() {
	keys, _ := d.value.(map[string]any)
	uri, ok := keys["$schema"].(string)
	if !ok {
		return
	}
	dialect, known := dialectOf(uri)
	if !known {
		d.fail("/$schema", codeBad, fmt.Sprintf("this version knows no dialect %q of JSON Schema", clip(uri, maxNameBytes)),
			`remove "$schema", or write "https://json-schema.org/draft/2020-12/schema"`)
		return
	}
	d.dialect = dialect
}

// add adds the part that value is, and those within it. It returns nil when
// value is no schema, or one too many.
func (d *compiler) add(value any, at, base string) *subschema {
	if known := d.byPointer[at]; known != nil {
		return known
	}
	if depth := depthOf(at); depth > maxSchemaDepth {
		d.fail(at, codeUnsafe, fmt.Sprintf("the schema is nested deeper than %d levels", maxSchemaDepth), `move parts of it to "$defs"`)
		return nil
	}
	if len(d.byPointer) >= maxSubschemas {
		d.fail(at, codeUnsafe, fmt.Sprintf("the schema is made of more than %d schemas", maxSubschemas), "make it simpler")
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

// finish makes the guides and the rules.
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

// identify notes the URI and the anchors of a part.
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

// name gives a part the URI that it names itself by.
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
		d.fail(p.pointer+"/"+key, codeBad, "two parts of the schema have the same URI", "give each its own")
		return
	}
	d.resources[p.base] = p
}

func (d *compiler) anchor(p *subschema, uri, key string) {
	if other := d.anchors[uri]; other != nil && other != p {
		d.fail(p.pointer+"/"+key, codeBad, "two parts of the schema have the same anchor", "give each its own")
		return
	}
	d.anchors[uri] = p
}

// addSubs adds the schemas of a list.
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

// A part is one schema within a schema.
type subschema struct {
	// at is its JSON pointer from the root.
	pointer string
	// base is the URI that its references are relative to.
	base string
	// dialect is that of the whole.
	dialect dialect
	// keys are its members; nil when it is true or false.
	keys map[string]any
	// never is the schema false.
	never bool
	// subs are the parts within it, by keyword.
	children map[string][]child
	// ref is what $ref refers to.
	ref *subschema
	// dynamic are what $dynamicRef or $recursiveRef may refer to.
	dynamic []*subschema

	node *node
	plan *decodePlan
}

// A sub is a part within another, and its key or index there.
type child struct {
	name   string
	schema *subschema
}

// only returns the part under a keyword that takes one schema.
func (p *subschema) single(keyword string) *subschema {
	if list := p.children[keyword]; len(list) > 0 {
		return list[0].schema
	}
	return nil
}

// text returns the value of a keyword that is a string, or "".
func (p *subschema) text(keyword string) string {
	s, _ := p.keys[keyword].(string)
	return s
}

// refersTo reports whether $dynamicRef is by the name of an anchor.
func (p *subschema) refersTo(name any) bool {
	_, fragment, _ := strings.Cut(p.text("$dynamicRef"), "#")
	return fragment == name
}

// refAlone reports whether a reference is all that counts, as it was before
// draft 2019-09.
func (p *subschema) onlyRef() bool { return p.ref != nil && p.dialect < draft2019 }

// same returns the parts that are held against the same value, except for
// those in dynamic, of which one is.
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

// Codes of the diagnostics of this package.
const (
	codeBad     = "bad-schema"
	codeUnsafe  = "unsafe-schema"
	codeRemote  = "remote-schema"
	codePattern = "bad-pattern"
	codeFormat  = "unknown-format"
	codeKeyword = "unknown-keyword"
	codeDefault = "bad-default"
)

// mostProblems bounds how many diagnostics one schema is worth, and
// mostWarnings how many of them may be warnings.
const (
	maxDiagnostics = 50
	maxWarnings    = 20
)

// problems collects what is wrong with a schema.
type problems struct {
	whole  diag.Range
	origin Positions
	list   diag.List
	// warnings counts them, so that they leave room for errors.
	warnings int
}

// fail reports a mistake at a JSON pointer.
func (p *problems) fail(pointer, code, summary, detail string) {
	p.add(diag.Error, pointer, code, summary, detail)
}

// warn reports what may be a mistake.
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

// place returns where the part at pointer was written, or else what it stands
// in. It reports whether it is the place of the part itself.
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
