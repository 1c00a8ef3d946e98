package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

func TestRead_rejects(t *testing.T) {
	many := make([]string, 2501)
	for i := range many {
		many[i] = fmt.Sprintf(`"/p%d": {"get": {}, "put": {}}`, i)
	}
	for _, row := range []struct{ name, text, want string }{
		{"empty", "", "want one document"},
		{"list", "[]", "not an object"},
		{"text", "hello", "not an object"},
		{"broken JSON", `{"openapi": `, "offset "},
		{"broken YAML", "a: [", "line "},
		{"two JSON values", `{"openapi": "3.0.0"} {}`, "more text after the document"},
		{"two YAML documents", "a: 1\n---\nb: 2\n", "want one document"},
		{"double member", `{"openapi": "3.0.0", "openapi": "3.1.0"}`, "a second member"},
		{"deep JSON", `{"a": ` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}", "nested deeper than 200"},
		{"deep YAML", "a: " + strings.Repeat("[", 600) + strings.Repeat("]", 600), "nested deeper"},
		{"large YAML", strings.Repeat("a: 1\n", 2<<20), "larger than 8 MiB"},
		{"number", `{"a": 1e999}`, "a number out of range"},
		{"alias bomb", "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + bomb(), "more than 1,000,000 values"},
		{"Swagger", `{"swagger": "2.0"}`, "Swagger 2.0"},
		{"no version", `{"paths": {}}`, "not OpenAPI 3.0 or 3.1"},
		{"newer version", `{"openapi": "4.0.0"}`, "not OpenAPI 3.0 or 3.1"},
		{"version as a number", `{"openapi": 3.1}`, "not OpenAPI 3.0 or 3.1"},
		{"too many operations", `{"openapi": "3.0.0", "paths": {` + strings.Join(many, ",") + "}}", "more than 5,000 operations"},
		{"path elsewhere", `{"openapi": "3.0.0", "paths": {"/a": {"$ref": "other.json#/a"}}}`, "outside of the document"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := spec.Read([]byte(row.text)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// bomb returns aliases that stand for ten times as many values each.
func bomb() string {
	var b strings.Builder
	for i := range 8 {
		name := string(rune('a' + i))
		fmt.Fprintf(&b, "%c: &%[1]c [%s]\n", 'b'+i, strings.TrimSuffix(strings.Repeat("*"+name+", ", 10), ", "))
	}
	return b.String()
}

func TestRead_operations(t *testing.T) {
	const text = `
openapi: 3.1.0
security: [{basic: []}]
paths:
  x-extension: 1
  /a/{id}:
    parameters:
      - {$ref: '#/components/parameters/id'}
      - {name: q, in: query, description: of the path}
    summary: not an operation
    get:
      operationId: getA
      parameters: [{name: q, in: query, required: true, explode: false}, {name: f, in: query, content: {application/json: {schema: {type: object}}}}]
      security: [{unknown: []}, {basic: [], key: []}, {}]
      responses: {'404': {}, '200': {$ref: '#/components/responses/ok'}}
    post:
      requestBody: {$ref: '#/components/requestBodies/b~1c'}
    put:
      security: [{unknown: []}]
    patch:
      requestBody: {required: true, content: {multipart/form-data: {}}}
    delete:
      parameters: [{$ref: '#/components/parameters/loop'}]
components:
  parameters:
    id: {name: id, in: path, required: true, example: 7}
    loop: {$ref: '#/components/parameters/loop'}
  responses: {ok: {content: {text/plain: {}, application/problem+json: {}, application/json: {examples: {one: {value: {a: 1}}}}}}}
  requestBodies: {b/c: {content: {text/plain: {}, application/x-www-form-urlencoded: {}}}}
  securitySchemes: {basic: {type: http, scheme: Basic}, key: {type: apiKey, in: header, name: X-Key}, unknown: {type: mutualTLS}}
`
	d, err := spec.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range d.Operations {
		line := o.Key() + " " + o.ID
		for _, p := range o.Parameters {
			line += fmt.Sprintf("; %s %s %s %v %v %v %v", p.In, p.Name, p.Style, p.Required, p.Explode, p.JSON, p.Example)
		}
		if o.Body != nil {
			line += "; body " + o.Body.Media
		}
		for _, r := range o.Responses {
			line += fmt.Sprintf("; %s %s %v", r.Status, r.Media, r.Example != nil)
		}
		got = append(got, fmt.Sprintf("%s; %v; %s", line, o.Security, o.Problem))
	}
	want := []string{
		"GET /a/{id} getA; path id simple true false false 7; query q form true false false <nil>; query f form false true true <nil>; 200 application/json true; [[{basic basic  } {key apiKey header X-Key}] []]; ",
		"POST /a/{id} ; path id simple true false false 7; query q form false true false <nil>; body application/x-www-form-urlencoded; [[{basic basic  }]]; ",
		`PUT /a/{id} ; path id simple true false false 7; query q form false true false <nil>; []; security scheme "unknown" is not supported`,
		"PATCH /a/{id} ; path id simple true false false 7; query q form false true false <nil>; []; its request body has no supported media type: JSON, form or text",
		"DELETE /a/{id} ; path id simple true false false 7; query q form false true false <nil>; []; a chain of references without an end",
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("operation %d:\n got %q\nwant %q", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

// TestRead_sharedParts has a document whose references stand for 200 parameters with 200 examples
// in each of 5,000 operations.
func TestRead_sharedParts(t *testing.T) {
	repeat := func(n int, text string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = strings.ReplaceAll(text, "N", fmt.Sprint(i))
		}
		return strings.Join(list, ",")
	}
	operation := `{"parameters": [` + repeat(200, `{"$ref": "#/x/parameter"}`) + `], "requestBody": {"$ref": "#/x/body"}, "responses": {"200": {"$ref": "#/x/body"}}}`
	for _, row := range []struct {
		name, paths string
		operations  int
	}{
		{"path items", repeat(2500, `"/pN": {"$ref": "#/x/item"}`), 5000},
		{"operations", repeat(100, `"/pN": {"get": `+operation+`}`), 100},
	} {
		t.Run(row.name, func(t *testing.T) {
			chain := ""
			for i := range 30 {
				chain += fmt.Sprintf(`"c%d": {"$ref": "#/x/c%d"}, `, i, i+1)
			}
			examples := `"examples": {` + repeat(200, `"eN": {"$ref": "#/x/c0"}`) + `}`
			d, err := spec.Read([]byte(`{"openapi": "3.1.0", "paths": {` + row.paths + `}, "x": {` + chain + `"c30": {},
				"item": {"get": ` + operation + `, "put": ` + operation + `},
				"parameter": {"name": "q", "in": "query", ` + examples + `},
				"body": {"content": {"application/json": {` + examples + `}}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Operations) != row.operations {
				t.Errorf("%d operations", len(d.Operations))
			}
			first := d.Operations[0]
			for _, o := range d.Operations {
				if o.Problem != "" || len(o.Parameters) != 1 || o.Body == nil || len(o.Responses) != 1 {
					t.Fatalf("operation %s: %+v", o.Key(), o)
				}
				if o.Parameters[0] != first.Parameters[0] || o.Body != first.Body {
					t.Fatalf("operation %s: its parts were read again", o.Key())
				}
			}
		})
	}
}
