package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpd/mcpd/diag"
)

// compileOther compiles a schema for the other validator alone.
func compileOther(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	d := decoder{data: raw, exact: true}
	value, ok := d.document(nil)
	if !ok {
		t.Fatalf("schema %s: %s", raw, d.flaw)
	}
	c := newCompiler()
	if err := c.AddResource(address, value); err != nil {
		t.Fatalf("schema %s: %v", raw, err)
	}
	s, err := c.Compile(address)
	if err != nil {
		t.Fatalf("schema %s passes Compile, but not the other validator: %v", raw, err)
	}
	return s
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// FuzzAgreement makes schemas and values of a seed and holds both validators
// against each other, and Args against its contract.
func FuzzAgreement(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(agree)
}

func TestBothValidatorsAgree(t *testing.T) {
	for seed := range uint64(1000) {
		agree(t, seed<<32)
	}
}

func agree(t *testing.T, seed uint64) {
	g := newGenerator(seed)
	raw := marshal(t, g.root())
	s, problems := Compile(raw, diag.Range{}, nil)
	if s == nil {
		if !problems.HasErrors() {
			t.Fatalf("schema %s: no schema and no error", raw)
		}
		return
	}
	if s.contextual != nil {
		t.Fatalf("schema %s: not covered by the rules", raw)
	}
	other := compileOther(t, raw)
	for range 12 {
		text := marshal(t, g.value(3))
		d := decoder{data: text}
		value, ok := d.document(s.guide)
		if !ok {
			t.Fatalf("value %s: %s", text, d.flaw)
		}
		found := s.Value(text)
		err := other.Validate(value)
		if (len(found) == 0) != (err == nil) {
			t.Fatalf("schema %s\nvalue %s\nrules: %v\nother validator: %v", raw, text, found, err)
		}
		checkViolations(t, found)
		checkViolations(t, violations((&contextual{schema: other}).faults(value, newTranslation(s.guide, false))))
		checkArgs(t, s, text)
	}
}

func checkViolations(t *testing.T, list []Violation) {
	t.Helper()
	if len(list) > mostViolations {
		t.Errorf("%d violations", len(list))
	}
	sorted := slices.IsSortedFunc(list, func(a, b Violation) int {
		return compareFaults(fault{path: a.Path, message: a.Message}, fault{path: b.Path, message: b.Message})
	})
	if !sorted {
		t.Errorf("violations are not in order: %v", list)
	}
	for _, v := range list {
		if v.Message == "" || len(v.Message) > 8000 || !isPointer(v.Path) {
			t.Errorf("violation %+v", v)
		}
	}
}

// checkArgs checks that what Args returns fits the schema, reads the same as
// value and as text, and is complete.
func checkArgs(t *testing.T, s *Schema, text []byte) {
	t.Helper()
	before := bytes.Clone(text)
	value, out, found := s.Args(text, nil)
	if !bytes.Equal(before, text) {
		t.Fatalf("schema %s: Args changed %s to %s", s.raw, before, text)
	}
	if len(found) > 0 {
		if value != nil || out != nil {
			t.Fatalf("schema %s: Args(%s) returns a value beside violations", s.raw, text)
		}
		checkViolations(t, found)
		return
	}
	d := decoder{data: out}
	again, ok := d.document(s.guide)
	if !ok || !json.Valid(out) || !reflect.DeepEqual(any(value), again) {
		t.Fatalf("schema %s: Args(%s) = %v, but the text is %s", s.raw, text, value, out)
	}
	if found := s.Value(out); len(found) > 0 {
		t.Fatalf("schema %s: Args(%s) gives %s: %v", s.raw, text, out, found)
	}
	if _, twice, found := s.Args(out, nil); len(found) > 0 || &twice[0] != &out[0] {
		t.Fatalf("schema %s: Args(%s) gives %s, and Args of that %s: %v", s.raw, text, out, twice, found)
	}
}
