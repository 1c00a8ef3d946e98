package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// address is the URI of a schema that gives itself none.
const address = "https://mcpd.invalid/schema"

// errElsewhere is why nothing is loaded.
var errElsewhere = errors.New("nothing is loaded from elsewhere")

// nowhereLoader loads nothing.
type nowhereLoader struct{}

func (nowhereLoader) Load(string) (any, error) { return nil, errElsewhere }

// A contextual schema is one with keywords that the rules do not cover, for
// the validator of santhosh-tekuri/jsonschema. That one cannot be stopped, so
// what it may have to do is estimated before it starts.
type contextual struct {
	schema *jsonschema.Schema
	// effort is how many schemas the values along one branch of a whole are
	// held against, weight the sum of those of the patterns, and divisors how
	// many times multipleOf occurs.
	effort, weight, divisors int
}

// contextualPatience is how many steps validation may be estimated to take.
const contextualPatience = 3_000_000

// How many steps of some 25 ns the other validator takes at most, to hold a
// value against a schema, to divide a number, and for the weight of a pattern
// and a byte of text.
const (
	costOfPart   = 10
	costOfDivide = 500
	costOfWeight = 0.25
)

// faults returns what is wrong with a value.
func (c *contextual) faults(v any, t translation) []fault {
	var size measure
	size.add(v)
	steps := costOfPart*float64(size.values)*float64(c.effort) +
		costOfDivide*float64(size.numbers)*float64(c.divisors) + costOfWeight*float64(size.text)*float64(c.weight)
	if steps > contextualPatience {
		return []fault{{message: tooCostly}}
	}
	err := c.schema.Validate(v)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return t.faults(e)
	}
	return []fault{{message: notAllowed}}
}

// A measure is the size of a value: how many values and numbers it holds, and
// how many bytes of text.
type measure struct{ values, numbers, text int }

func (m *measure) add(v any) {
	m.values++
	switch v := v.(type) {
	case int64, float64, *big.Int:
		m.numbers++
	case string:
		m.text += len(v)
	case []any:
		for _, item := range v {
			m.add(item)
		}
	case map[string]any:
		for name, value := range v {
			m.text += len(name)
			m.add(value)
		}
	}
}

// compileContextual compiles a schema for the other validator, with our
// formats and patterns. It returns nil when it reported a mistake.
func (d *document) compileContextual() *contextual {
	c := contextual{effort: d.effort}
	for _, p := range d.listed {
		if text, ok := p.keys["pattern"].(string); ok {
			c.weight += d.patterns[text].weight
		}
		for _, s := range p.subs["patternProperties"] {
			c.weight += d.patterns[s.name].weight
		}
		if f := formats[p.text("format")]; f != nil {
			c.weight += 16 * f.cost
		}
		if _, ok := p.keys["multipleOf"]; ok {
			c.divisors++
		}
	}
	compiler := newCompiler()
	err := compiler.AddResource(address, withoutBig(d.value))
	if err == nil {
		if c.schema, err = compiler.Compile(address); err == nil {
			return &c
		}
	}
	d.failContextual(err)
	return nil
}

// withoutBig returns decoded JSON with large integers as the other validator takes them.
func withoutBig(v any) any {
	switch v := v.(type) {
	case *big.Int:
		return json.Number(v.String())
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = withoutBig(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, value := range v {
			object[name] = withoutBig(value)
		}
		return object
	}
	return v
}

// correctSchema is what to do about a mistake that only the message explains.
const correctSchema = "correct it as JSON Schema 2020-12 has it"

// failContextual reports why the other validator does not compile the schema.
func (d *document) failContextual(err error) {
	at := d.contextual
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if inner, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			for _, f := range newTranslation(nil, false).faults(inner) {
				d.fail(f.path, codeBad, "the schema is not valid: this "+f.message, correctSchema)
			}
			if d.list.HasErrors() {
				return
			}
		}
	}
	if errors.Is(err, errElsewhere) {
		d.fail(at, codeRemote, "the schema refers to another document, and nothing is loaded from elsewhere", "copy what is needed to \"$defs\", and write \"#/$defs/name\"")
		return
	}
	d.fail(at, codeBad, fmt.Sprintf("the schema cannot be compiled: %s", clip(err.Error(), 4*longestSegment)), correctSchema)
}

// newCompiler returns a compiler of the other validator that asserts the same
// formats and matches patterns in the same way.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhereLoader{})
	c.AssertFormat()
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) {
		p, err := compilePattern(text)
		if err != nil {
			return nil, err
		}
		return p, nil
	})
	for _, f := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: f.name, Validate: f.validate})
	}
	for _, other := range []string{"period", "semver"} {
		c.RegisterFormat(&jsonschema.Format{Name: other, Validate: func(any) error { return nil }})
	}
	return c
}

// validate is valid for the other validator.
func (f *format) validate(v any) error {
	if s, ok := v.(string); ok && !f.valid(s) {
		return fmt.Errorf("must be %s", f.words)
	}
	return nil
}

// A translation turns the errors of the other validator into faults.
type translation struct {
	// guide is that of the whole value.
	guide *guide
	run   *run
	// found counts faults, of which a certain number is enough.
	found *int
}

func newTranslation(g *guide, arguments bool) translation {
	return translation{guide: g, run: &run{arguments: arguments}, found: new(int)}
}

func (t translation) faults(e *jsonschema.ValidationError) []fault {
	if *t.found++; *t.found > mostFaults {
		return nil
	}
	at := pointerTo(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return nearest(at, t.branches(e))
	case *kind.OneOf:
		if k.Subschemas == nil {
			return nearest(at, t.branches(e))
		}
		return []fault{{path: at, message: ambiguous}}
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		var list []fault
		for _, cause := range e.Causes {
			list = append(list, t.faults(cause)...)
		}
		return list
	case *kind.Type:
		want := types(0)
		for _, name := range k.Want {
			want |= typeNamed(name)
		}
		got := typeNamed(k.Got)
		return []fault{{path: at, message: want.mustBe(got), want: want, got: got}}
	case *kind.Enum:
		return []fault{{path: at, message: listed(k.Want), choice: true}}
	case *kind.Const:
		return []fault{{path: at, message: listed([]any{k.Want}), choice: true}}
	}
	if list := t.inObject(e, at); list != nil {
		return list
	}
	return []fault{{path: at, message: simple(e.ErrorKind)}}
}

// branches returns the faults of each alternative, in an order that does not
// depend on chance.
func (t translation) branches(e *jsonschema.ValidationError) [][]fault {
	var list [][]fault
	for _, cause := range e.Causes {
		faults := t.faults(cause)
		slices.SortFunc(faults, compareFaults)
		list = append(list, faults)
	}
	return list
}

// inObject returns the faults of the members of an object.
func (t translation) inObject(e *jsonschema.ValidationError, at string) []fault {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(at, k.Missing, func(string) string { return isRequired })
	case *kind.DependentRequired:
		return each(at, k.Missing, func(string) string { return fmt.Sprintf(requiredBy, k.Prop) })
	case *kind.Dependency:
		return each(at, k.Missing, func(string) string { return fmt.Sprintf(requiredBy, k.Prop) })
	case *kind.AdditionalProperties:
		return each(at, k.Properties, func(name string) string { return t.unknown(e.InstanceLocation, name) })
	case *kind.PropertyNames:
		var list []fault
		for _, cause := range e.Causes {
			for _, f := range t.faults(cause) {
				list = append(list, each(at, []string{k.Property}, func(string) string { return badName + f.message })...)
			}
		}
		return list
	case *kind.FalseSchema:
		last := len(e.InstanceLocation) - 1
		if last >= 0 && t.guide.to(e.InstanceLocation[:last]).lacks(e.InstanceLocation[last]) {
			return []fault{{path: at, message: t.unknown(e.InstanceLocation[:last], e.InstanceLocation[last])}}
		}
	}
	return nil
}

// unknown is what is wrong with a member of the object at a place.
func (t translation) unknown(at []string, name string) string {
	t.run.path = make(location, len(at)+1)
	var declared []string
	if g := t.guide.to(at); g != nil {
		declared = sortedNames(g.members)
	}
	return t.run.unknown(name, declared[:min(len(declared), mostCandidates)])
}

func each(at string, names []string, words func(string) string) []fault {
	var list []fault
	for _, name := range names {
		list = append(list, fault{path: at + "/" + escapePointer(clip(name, longestSegment)), message: words(name)})
	}
	return list
}

// simple returns the words for a kind of error that stands alone.
func simple(e jsonschema.ErrorKind) string {
	switch k := e.(type) {
	case *kind.Minimum:
		return fmt.Sprintf(atLeast, inDigits(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf(atMost, inDigits(k.Want))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf(greaterThan, inDigits(k.Want))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf(lessThan, inDigits(k.Want))
	case *kind.MultipleOf:
		return fmt.Sprintf(multipleOf, inDigits(k.Want))
	case *kind.MinLength:
		return count(k.Want, leastText, "character")
	case *kind.MaxLength:
		return count(k.Want, mostText, "character")
	case *kind.Pattern:
		return fmt.Sprintf(matching, k.Want)
	case *kind.Format:
		if f := formats[k.Want]; f != nil {
			return fmt.Sprintf(formatted, f.words)
		}
	case *kind.Not:
		return excluded
	}
	return counted(e)
}

// counted returns the words for a wrong count of items or members.
func counted(e jsonschema.ErrorKind) string {
	switch k := e.(type) {
	case *kind.MinItems:
		return count(k.Want, leastCount, "item")
	case *kind.MaxItems:
		return count(k.Want, mostCount, "item")
	case *kind.AdditionalItems:
		return "has more items than the schema allows"
	case *kind.UniqueItems:
		return fmt.Sprintf(equalItems, k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return count(1, leastCount, "item") + " " + thatFits
	case *kind.MinContains:
		return count(k.Want, leastCount, "item") + " " + thatFits
	case *kind.MaxContains:
		return count(k.Want, mostCount, "item") + " " + thatFits
	case *kind.MinProperties:
		return count(k.Want, leastCount, "member")
	case *kind.MaxProperties:
		return count(k.Want, mostCount, "member")
	}
	return notAllowed
}

// inDigits returns a number in digits.
func inDigits(r *big.Rat) string {
	if r.IsInt() && len(r.Num().String()) <= 20 {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return numeral(f)
}

func pointerTo(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(escapePointer(clip(name, longestSegment)))
	}
	return b.String()
}

func compareFaults(a, b fault) int {
	return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.message, b.message))
}

// to returns the guide of the part at a place.
func (g *guide) to(names []string) *guide {
	for _, name := range names {
		switch {
		case g == nil:
			return nil
		case g.members[name] != nil:
			g = g.members[name].guide
		case g.rest != nil:
			g = g.rest
		default:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 {
				return nil
			}
			g = g.item(i)
		}
	}
	return g
}

// lacks reports whether the guide knows members, but none of this name.
func (g *guide) lacks(name string) bool {
	return g != nil && g.members != nil && g.members[name] == nil
}
