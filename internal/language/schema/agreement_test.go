package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpd/mcpd/diag"
)

// compileOther compiles a schema only with the other validator.
func compileOther(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	d := decoder{data: raw, exact: true}
	value, ok := d.document(nil)
	if !ok {
		t.Fatalf("schema %s: %s", raw, d.flaw)
	}
	const address = "https://mcpd.invalid/schema"
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, f := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: f.name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !f.valid(s) {
				return errors.New("must be " + f.words)
			}
			return nil
		}})
	}
	if err := c.AddResource(address, value); err != nil {
		t.Fatalf("schema %s: %v", raw, err)
	}
	s, err := c.Compile(address)
	if err != nil {
		t.Fatalf("schema %s is valid for Compile, but not for the other validator: %v", raw, err)
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

// FuzzAgreement generates schemas and values from a seed. It compares both validators, and
// checks the contract of Args.
func FuzzAgreement(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(agree)
}

func TestSchema_agreesWithOtherValidator(t *testing.T) {
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
	other := compileOther(t, raw)
	for range 12 {
		text := marshal(t, g.value(3))
		d := decoder{data: text, exact: true}
		value, ok := d.document(nil)
		if !ok {
			t.Fatalf("value %s: %s", text, d.flaw)
		}
		found := s.Validate(text)
		err := other.Validate(value)
		if (len(found) == 0) != (err == nil) {
			t.Fatalf("schema %s\nvalue %s\nrules: %v\nother validator: %v", raw, text, found, err)
		}
		checkViolations(t, found)
		checkDecode(t, s, text)
	}
}

func checkViolations(t *testing.T, list []Violation) {
	t.Helper()
	if len(list) > maxViolations {
		t.Errorf("%d violations", len(list))
	}
	sorted := slices.IsSortedFunc(list, func(a, b Violation) int {
		return compareMismatches(mismatch{path: a.Path, message: a.Message}, mismatch{path: b.Path, message: b.Message})
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

// checkDecode checks that the result of Decode is valid and complete, and that value and text are
// equal.
func checkDecode(t *testing.T, s *Schema, text []byte) {
	t.Helper()
	before := bytes.Clone(text)
	args, found := s.Decode(text, nil)
	value, out := args.Value, args.Text
	if !bytes.Equal(before, text) {
		t.Fatalf("schema %s: Decode changed %s to %s", s.raw, before, text)
	}
	if len(found) > 0 {
		if value != nil || out != nil {
			t.Fatalf("schema %s: Decode(%s) returns a value and violations", s.raw, text)
		}
		checkViolations(t, found)
		return
	}
	d := decoder{data: out}
	again, ok := d.document(s.plan)
	if !ok || !json.Valid(out) || !reflect.DeepEqual(any(value), again) {
		t.Fatalf("schema %s: Decode(%s) = %v, but the text is %s", s.raw, text, value, out)
	}
	if found := s.Validate(out); len(found) > 0 {
		t.Fatalf("schema %s: Decode(%s) gives %s: %v", s.raw, text, out, found)
	}
	if twice, found := s.Decode(out, nil); len(found) > 0 || &twice.Text[0] != &out[0] {
		t.Fatalf("schema %s: Decode(%s) gives %s, and Decode of that %s: %v", s.raw, text, out, twice.Text, found)
	}
}

// suiteVariable names the directory of a checkout of
// github.com/json-schema-org/JSON-Schema-Test-Suite.
const suiteVariable = "JSON_SCHEMA_TEST_SUITE"

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// differences are official cases with a different result on purpose, by file and by the prefix
// of the group.
var differences = map[string]string{
	"format.json":               "",                      // formats are asserted, not annotations
	"content.json":              "",                      // contents are annotations, since draft 2019-09
	"ecmascript-regex.json":     "",                      // patterns are RE2
	"hostname.json":             "validation of A-label", // the IDNA rules for characters are not checked
	"idn-hostname.json":         "",
	"bignum.json":               "", // numbers that are not declared integers are float64
	"zeroTerminatedFloats.json": "", // 1.0 is an integer, since draft 6
}

func TestSchema_officialSuite(t *testing.T) {
	root := os.Getenv(suiteVariable)
	if root == "" {
		t.Skipf("SKIPPED: set %s to a checkout of github.com/json-schema-org/JSON-Schema-Test-Suite", suiteVariable)
	}
	for _, draft := range []string{"draft2020-12", "draft2019-09", "draft7", "draft6", "draft4"} {
		for _, pattern := range []string{"*.json", "optional/format/*.json", "optional/*.json"} {
			files, err := filepath.Glob(filepath.Join(root, "tests", draft, pattern))
			if err != nil || len(files) == 0 {
				t.Fatalf("no cases of %s/%s: %v", draft, pattern, err)
			}
			for _, file := range files {
				runSuiteFile(t, draft, file)
			}
		}
	}
}

func runSuiteFile(t *testing.T, draft, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	name := draft + "/" + filepath.Base(file)
	for _, group := range groups {
		if begins, ok := differences[filepath.Base(file)]; ok && strings.HasPrefix(group.Description, begins) {
			continue
		}
		s, problems := Compile(withDraft(group.Schema, draft), diag.Range{}, nil)
		if s == nil {
			t.Logf("%s: %s: rejected: %v", name, group.Description, problems)
			continue
		}
		for _, test := range group.Tests {
			if valid := len(s.Validate(test.Data)) == 0; valid != test.Valid {
				t.Errorf("%s: %s: %s: valid %t, want %t", name, group.Description, test.Description, valid, test.Valid)
			}
		}
	}
}

// withDraft adds the draft to a schema without one.
func withDraft(schema json.RawMessage, draft string) json.RawMessage {
	uri := map[string]string{"draft7": "draft-07", "draft6": "draft-06", "draft4": "draft-04"}[draft]
	if uri == "" || schema[0] != '{' || strings.Contains(string(schema), `"$schema"`) {
		return schema
	}
	rest := strings.TrimSpace(string(schema[1:]))
	comma := ","
	if rest == "}" {
		comma = ""
	}
	return json.RawMessage(`{"$schema":"http://json-schema.org/` + uri + `/schema#"` + comma + rest)
}
