package hclfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// constraint is an argument that constrains values of certain types.
type constraint struct {
	name string
	// keyword is its name in JSON Schema.
	keyword string
	kinds   []kind
	// count: the value is an integer of at least 0.
	count bool
}

// constraintList holds the constraints in the order of schemas.
var constraintList = []constraint{
	{name: "format", keyword: "format", kinds: []kind{stringKind}},
	{name: "pattern", keyword: "pattern", kinds: []kind{stringKind}},
	{name: "min", keyword: "minimum", kinds: []kind{numberKind, integerKind, bigintKind}},
	{name: "max", keyword: "maximum", kinds: []kind{numberKind, integerKind, bigintKind}},
	{name: "min_length", keyword: "minLength", kinds: []kind{stringKind}, count: true},
	{name: "max_length", keyword: "maxLength", kinds: []kind{stringKind}, count: true},
	{name: "min_items", keyword: "minItems", kinds: []kind{listKind}, count: true},
	{name: "max_items", keyword: "maxItems", kinds: []kind{listKind}, count: true},
	{name: "unique", keyword: "uniqueItems", kinds: []kind{listKind}},
}

// formats are the asserted values of format.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri", "iri-reference",
	"json-pointer", "regex", "relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// bounds are the constraints of one field, for checks of other values.
type bounds struct {
	numbers map[string]cty.Value
	pattern *regexp.Regexp
	enum    []cty.Value
}

// constraints decodes the constraints of a field with a known type, then the values that must
// satisfy them.
func (d *decoder) constraints(b *hclsyntax.Block, f *field) {
	l := bounds{numbers: map[string]cty.Value{}}
	var found []keyword
	for i := range constraintList {
		c := &constraintList[i]
		if attr := b.Body.Attributes[c.name]; attr != nil {
			if value, ok := d.constraint(b, f.typ, c, &l); ok {
				found = append(found, keyword{c.keyword, value, attr.Expr.Range()})
			}
		}
	}
	d.checkEmptyRanges(b, &l)
	d.checkSafeIntegers(b, f, &l)
	d.exampleValues(b, f, &l)
	f.keywords = append(f.keywords, found...)
}

func (d *decoder) constraint(b *hclsyntax.Block, t *valueType, c *constraint, l *bounds) (json.RawMessage, bool) {
	if t.kind != anyKind && !slices.Contains(c.kinds, t.kind) {
		d.fail("wrong-constraint", d.f.rng(b.Body.Attributes[c.name].NameRange), fmt.Sprintf("%q does not apply to %s", c.name, t.describe()), cmp.Or(otherConstraint(c.name, t.kind), "remove it, or change the type"))
		return nil, false
	}
	switch {
	case c.name == "format":
		s := d.enumAttr(b.Body, c.name, formats...)
		return jsontext.AppendString(nil, s), s != ""
	case c.name == "pattern":
		return d.pattern(b.Body, l)
	case c.name == "unique":
		v, ok := d.boolean(b.Body, c.name, false)
		return appendJSON(nil, cty.BoolVal(v)), ok
	case c.count:
		n, ok := d.optionalInt(b.Body, c.name, 0, 1<<31-1)
		v := cty.NumberIntVal(int64(n))
		if ok {
			l.numbers[c.name] = v
		}
		return appendJSON(nil, v), ok
	default:
		v, ok := d.attrValue(b.Body, c.name, numberKind)
		if !ok {
			return nil, false
		}
		l.numbers[c.name] = v
		return appendJSON(nil, v), true
	}
}

// otherConstraint returns the constraint of a kind that corresponds to name.
func otherConstraint(name string, k kind) string {
	side, _, _ := strings.Cut(name, "_")
	if side != "min" && side != "max" {
		return ""
	}
	switch k {
	case stringKind:
		return fmt.Sprintf("write %s_length", side)
	case listKind:
		return fmt.Sprintf("write %s_items", side)
	case numberKind, integerKind, bigintKind:
		return "write " + side
	default:
		return ""
	}
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 4 << 10

func (d *decoder) pattern(body *hclsyntax.Body, b *bounds) (json.RawMessage, bool) {
	s, ok := d.text(body, "pattern")
	if !ok {
		return nil, false
	}
	b.pattern = d.regexp(s, body.Attributes["pattern"].Expr)
	return jsontext.AppendString(nil, s), b.pattern != nil
}

// regexp compiles an RE2 pattern, or reports its error.
func (d *decoder) regexp(s string, x hclsyntax.Expression) *regexp.Regexp {
	if len(s) > maxPattern {
		d.fail("too-large", d.f.rng(x.Range()), fmt.Sprintf("the pattern is longer than %d KiB", maxPattern>>10), "make it shorter, or match in the script")
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		detail := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		if strings.Contains(detail, "invalid or unsupported Perl syntax") || strings.Contains(detail, "invalid escape sequence") {
			detail += "; patterns are RE2, which has no look-around and no back-references"
		}
		d.fail("bad-value", d.f.rng(x.Range()), "the pattern is not a regular expression", detail)
		return nil
	}
	return re
}

// checkEmptyRanges reports constraints that exclude every value.
func (d *decoder) checkEmptyRanges(b *hclsyntax.Block, l *bounds) {
	for _, suffix := range []string{"", "_length", "_items"} {
		low, okLow := l.numbers["min"+suffix]
		high, okHigh := l.numbers["max"+suffix]
		if okLow && okHigh && low.GreaterThan(high).True() {
			first := b.Body.Attributes["min"+suffix]
			d.fail("contradiction", d.f.rng(b.Body.Attributes["max"+suffix].Expr.Range()),
				fmt.Sprintf("%q is smaller than %q, so no value is allowed", "max"+suffix, "min"+suffix), "correct one of them",
				diag.Note{Range: d.f.rng(first.Expr.Range()), Message: fmt.Sprintf("%q is set here", "min"+suffix)})
		}
	}
}

// safeInteger is the largest exact integer in JavaScript. Its negative is the smallest.
var safeInteger = cty.NumberIntVal(1<<53 - 1)

// checkSafeIntegers reports constraints of an argument that exclude every safe integer, and
// enum values that are not safe.
func (d *decoder) checkSafeIntegers(b *hclsyntax.Block, f *field, l *bounds) {
	if f.typ.kind != integerKind || !d.inInput {
		return
	}
	const detail = "write type = bigint, or type = string"
	for _, name := range []string{"min", "max"} {
		v, set := l.numbers[name]
		if set && (name == "min" && v.GreaterThan(safeInteger).True() || name == "max" && v.LessThan(safeInteger.Negate()).True()) {
			d.fail("contradiction", d.f.rng(b.Body.Attributes[name].Expr.Range()), "no value is allowed: integers range from -9007199254740991 to 9007199254740991", detail)
		}
	}
	for _, name := range []string{"enum", "default"} {
		attr := b.Body.Attributes[name]
		if attr == nil {
			continue
		}
		v, ok := d.eval.value(attr.Expr)
		if !ok {
			continue
		}
		values := []cty.Value{v}
		if name == "enum" && hasKind(v, listKind) {
			values = v.AsValueSlice()
		}
		for i, v := range values {
			if hasKind(v, integerKind) && v.Absolute().GreaterThan(safeInteger).True() {
				d.fail("contradiction", d.f.rng(itemExpr(attr.Expr, i).Range()), "the value is not between -9007199254740991 and 9007199254740991", detail)
			}
		}
	}
}

// exampleValues decodes default, examples and enum. They must have the type of the field; the
// default must also satisfy its constraints.
func (d *decoder) exampleValues(b *hclsyntax.Block, f *field, l *bounds) {
	var found []keyword
	if attr := b.Body.Attributes["default"]; attr != nil && b.Type == "output" {
		d.fail("unknown-argument", d.f.rng(attr.NameRange), "an output has no default", "return the value in the script")
	}
	for _, name := range []string{"enum", "examples"} {
		attr := b.Body.Attributes[name]
		if attr == nil {
			continue
		}
		values, ok := d.exampleList(attr, f.typ)
		if !ok {
			continue
		}
		if name == "enum" {
			l.enum = values
		}
		found = append(found, keyword{name, appendJSON(nil, cty.TupleVal(values)), attr.Expr.Range()})
	}
	if attr := b.Body.Attributes["default"]; attr != nil {
		if v, ok := d.eval.value(attr.Expr); ok && d.checkSize(attr.Expr, v) && d.checkType(attr.Expr, v, f.typ, "the default") && d.checkDefault(attr, v, l) {
			found = slices.Insert(found, 0, keyword{"default", appendJSON(nil, v), attr.Expr.Range()})
		}
	}
	f.keywords = append(f.keywords, found...)
}

func (d *decoder) exampleList(attr *hclsyntax.Attribute, t *valueType) ([]cty.Value, bool) {
	v, ok := d.eval.value(attr.Expr)
	if !ok || !d.checkSize(attr.Expr, v) {
		return nil, false
	}
	if !hasKind(v, listKind) || v.LengthInt() == 0 {
		d.fail("wrong-type", d.f.rng(attr.Expr.Range()), fmt.Sprintf("%q must be a list of at least one value", attr.Name), "write them in brackets: [\"a\", \"b\"]")
		return nil, false
	}
	values := make([]cty.Value, 0, v.LengthInt())
	seen := map[string]bool{}
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		x := itemExpr(attr.Expr, len(values))
		ok = d.checkType(x, item, t, fmt.Sprintf("a value of %q", attr.Name)) && ok
		text := string(appendJSON(nil, item))
		if attr.Name == "enum" && seen[text] {
			d.fail("duplicate", d.f.rng(x.Range()), "the value occurs twice in \"enum\"", "keep one of them")
		}
		seen[text] = true
		values = append(values, item)
	}
	return values, ok
}

// checkDefault reports a default that violates the constraints of its field.
func (d *decoder) checkDefault(attr *hclsyntax.Attribute, v cty.Value, b *bounds) bool {
	broken := b.broken(v)
	if broken == "" {
		return true
	}
	d.fail("contradiction", d.f.rng(attr.Expr.Range()), fmt.Sprintf("the default violates %q of the field", broken), "correct the default or the constraint")
	return false
}

// broken returns the name of a constraint that v violates, or "".
func (b *bounds) broken(v cty.Value) string {
	if b.enum != nil {
		text := string(appendJSON(nil, v))
		if !slices.ContainsFunc(b.enum, func(e cty.Value) bool { return string(appendJSON(nil, e)) == text }) {
			return "enum"
		}
	}
	switch {
	case hasKind(v, stringKind):
		if b.pattern != nil && !b.pattern.MatchString(v.AsString()) {
			return "pattern"
		}
		return b.outside(cty.NumberIntVal(int64(utf8.RuneCountInString(v.AsString()))), "_length")
	case hasKind(v, numberKind):
		return b.outside(v, "")
	case hasKind(v, listKind):
		return b.outside(cty.NumberIntVal(int64(v.LengthInt())), "_items")
	default:
		return ""
	}
}

// outside returns the name of a limit that n exceeds, or "".
func (b *bounds) outside(n cty.Value, suffix string) string {
	if low, ok := b.numbers["min"+suffix]; ok && n.LessThan(low).True() {
		return "min" + suffix
	}
	if high, ok := b.numbers["max"+suffix]; ok && n.GreaterThan(high).True() {
		return "max" + suffix
	}
	return ""
}
