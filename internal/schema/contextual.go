package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
