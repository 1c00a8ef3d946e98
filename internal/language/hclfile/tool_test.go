package hclfile

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// decodeTools decodes a tool file without errors.
func decodeTools(t *testing.T, path, source string, scope Scope) definition.Definitions {
	t.Helper()
	file, problems := Parse(Source{Path: path, Bytes: []byte(source)}, ToolsKind)
	if file == nil {
		t.Fatal(problems)
	}
	if scope.Locals == nil {
		locals, problems := JoinLocals([]*File{file}, scope.Vars, false)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		scope.Locals = locals
	}
	defs, more := file.Decode(scope)
	if problems = append(problems, more...); len(problems) > 0 {
		t.Fatal(problems)
	}
	return defs
}

// perMember writes each member of a JSON text on a separate line.
func perMember(raw []byte) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(string(raw), ",") {
		b.WriteString(line + "\n")
	}
	return b.String()
}

const everyTypeAndConstraint = `
tool "t" {
  input "s" {
    type        = string
    title       = "Name"
    description = "Who"
    header      = "Region"
    default     = "C-1"
    enum        = ["C-1", "C-2"]
    examples    = ["C-2"]
    format      = "hostname"
    pattern     = "^C"
    min_length  = 1
    max_length  = 9
  }
  input "n" {
    type = number
    min  = 0.5
    max  = 1e3
  }
  input "l" {
    type      = list(map(integer))
    min_items = 1
    max_items = 2
    unique    = true
  }
  input "o" {
    type     = object({ a = string, b = optional(bool, true), c = optional(object({ d = any })) })
    required = false
  }
  input "f" {
    required  = false
    sensitive = true
    field "z" { type = string }
    field "a" {
      field "deep" {
        type      = any
        required  = false
        sensitive = true
      }
    }
  }
  input "g" {
    field "secret.part" {
      type      = string
      sensitive = true
    }
  }
  run = "return 1"
}
`

func TestInputs_schemaOrder(t *testing.T) {
	tool := decodeTools(t, "x.hcl", everyTypeAndConstraint, Scope{}).Tools[0]
	want := `{"type":"object","properties":{` +
		`"s":{"type":"string","title":"Name","description":"Who","x-mcp-header":"Region","default":"C-1","enum":["C-1","C-2"],"examples":["C-2"],"format":"hostname","pattern":"^C","minLength":1,"maxLength":9},` +
		`"n":{"type":"number","minimum":0.5,"maximum":1000},` +
		`"l":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,"items":{"type":"object","additionalProperties":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}}},` +
		`"o":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean","default":true},"c":{"type":"object","properties":{"d":{}},"required":["d"],"additionalProperties":false}},"required":["a"],"additionalProperties":false},` +
		`"f":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"object","properties":{"deep":{}},"additionalProperties":false}},"required":["z","a"],"additionalProperties":false},` +
		`"g":{"type":"object","properties":{"secret.part":{"type":"string"}},"required":["secret.part"],"additionalProperties":false}},` +
		`"required":["n","l","g"],"additionalProperties":false}`
	if diff := cmp.Diff(perMember([]byte(want)), perMember(tool.Input)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid(tool.Input) {
		t.Error("the schema is not JSON")
	}
	if diff := cmp.Diff([]string{"/f", "/g/secret.part"}, tool.Sensitive); diff != "" {
		t.Error(diff)
	}
}

func TestInputs_origins(t *testing.T) {
	const source = everyTypeAndConstraint
	tool := decodeTools(t, "x.hcl", source, Scope{}).Tools[0]
	for pointer, want := range map[string]string{
		"/properties/s":                                 `input "s"`,
		"/properties/s/type":                            `string`,
		"/properties/s/pattern":                         `"^C"`,
		"/properties/s/enum":                            `["C-1", "C-2"]`,
		"/properties/s/x-mcp-header":                    `"Region"`,
		"/properties/n/maximum":                         `1e3`,
		"/properties/l/items":                           `map(integer)`,
		"/properties/l/items/additionalProperties":      `integer`,
		"/properties/o/properties/c/properties/d":       `d`,
		"/properties/f":                                 `input "f"`,
		"/properties/f/properties/a/properties/deep":    `field "deep"`,
		"/properties/g/properties/secret.part/type":     `string`,
		"/properties/l/items/additionalProperties/type": `integer`,
	} {
		r, ok := tool.InputOrigin.At(pointer)
		if got := source[r.Start.Byte:r.End.Byte]; !ok || got != want {
			t.Errorf("%s has the text %q, want %q", pointer, got, want)
		}
	}
}

func TestInputs_none(t *testing.T) {
	tool := decodeTools(t, "x.hcl", "tool \"t\" {\n  run = \"return 1\"\n}\n", Scope{}).Tools[0]
	if got := string(tool.Input); got != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Error(got)
	}
	if tool.Output != nil || tool.HasDescription || !tool.Idempotent || tool.ReadOnly != nil ||
		tool.Timeout != time.Second || tool.Grant.HTTP != nil {
		t.Errorf("wrong defaults: %+v", tool)
	}
	open := decodeTools(t, "x.hcl", "tool \"t\" {\n  extra_arguments = true\n  run = \"return 1\"\n}\n", Scope{}).Tools[0]
	if got := string(open.Input); got != `{"type":"object","properties":{},"additionalProperties":true}` {
		t.Error(got)
	}
}

func TestInputs_computed(t *testing.T) {
	tool := decodeTools(t, "x.hcl", `
tool "t" {
  input "tenant" {
    type    = string
    pattern = "^t"
    from    = "principal.claims.tenant"
  }
  input "id" { type = string }
  run = "return 1"
}
`, Scope{}).Tools[0]
	if strings.Contains(string(tool.Input), "tenant") {
		t.Error(string(tool.Input))
	}
	from := tool.From[0]
	if from.Name != "tenant" || from.Expr.Language != definition.CEL || from.Expr.Text.Body() != "principal.claims.tenant" || string(from.Schema) != `{"type":"string","pattern":"^t"}` {
		t.Errorf("%+v", from)
	}
}

func TestInputs_wholeSchema(t *testing.T) {
	const file = "{\n  \"type\": \"object\",\n  \"$defs\": {\"b\": {}, \"a\": {\"$anchor\": \"x\"}},  \"properties\": {}\n}\n"
	scope := Scope{ReadFile: func(string) ([]byte, error) { return []byte(file), nil }}
	for expr, want := range map[string]string{
		`file("x.json")`:           file,
		"<<JSON\n" + file + "JSON": file,
		`jsonencode({ type = "object", b = 1, a = [2, { d = 3, c = null }] })`: `{"type":"object","b":1,"a":[2,{"d":3,"c":null}]}`,
		`{ type = "object", "z" = 1, y = local.y }`:                            `{"type":"object","z":1,"y":{"a":1,"b":2}}`,
		`({ type = "object" })`:                                                `{"type":"object"}`,
		`jsondecode(file("x.json"))`:                                           `{"$defs":{"a":{"$anchor":"x"},"b":{}},"properties":{},"type":"object"}`,
	} {
		source := "locals {\n  y = { b = 2, a = 1 }\n}\ntool \"t\" {\n  input_schema = " + expr + "\n  output_schema = " + expr + "\n  run = \"return 1\"\n}\n"
		tool := decodeTools(t, "x.hcl", source, scope).Tools[0]
		if string(tool.Input) != want || string(tool.Output) != want {
			t.Errorf("%s: %s", expr, cmp.Diff(want, string(tool.Input)))
		}
	}
	tool := decodeTools(t, "x.hcl", "tool \"t\" {\n  input_schema = { type = \"object\", properties = { a = { type = \"string\" } } }\n  run = \"return 1\"\n}\n", Scope{}).Tools[0]
	if where, ok := tool.InputOrigin.At("/properties/a/type"); !ok || where.String() != "x.hcl:2:65" {
		t.Errorf("got %v, %t", where, ok)
	}
}

func TestGrant_headerSecrets(t *testing.T) {
	defs := decodeTools(t, "x.hcl", `
tool "t" {
  allow {
    http "crm" {
      hosts            = ["CRM.internal:443", "api.example.com:8443", "[::1]:80"]
      methods          = ["GET", "POST"]
      paths            = ["/customers/*"]
      max_response     = "1MiB"
      redirects        = 2
      private_networks = true
      timeout          = "3s"
      header "Authorization" { value = "Bearer ${secret.token}${local.x}" }
      header "X-Basic" { value = "Basic ${base64encode("u:${secret.token}")}" }
      header "X-Raw" { value = secret.token }
      header "X-Plain" { value = "v${1 + 1}" }
    }
    http "other" { hosts = ["*.example.com:443"] }
  }
  run = "return 1"
}
locals {
  x = "!"
}
`, Scope{Secrets: []string{"token"}})
	literal := func(s string) grant.Part { return grant.Part{Literal: s} }
	token := grant.Part{Secret: "token"}
	want := grant.Set{HTTP: []grant.HTTP{
		{
			Name: "crm", Hosts: []string{"crm.internal:443", "api.example.com:8443", "[::1]:80"}, Methods: []string{"GET", "POST"},
			Paths: []string{"/customers/*"}, MaxResponse: 1 << 20, Timeout: 3 * time.Second, Redirects: 2, PrivateNetworks: true,
			Headers: []grant.Header{
				{Name: "Authorization", Value: grant.Value{Parts: []grant.Part{literal("Bearer "), token, literal("!")}}},
				{Name: "X-Basic", Value: grant.Value{Parts: []grant.Part{
					literal("Basic "), {Base64: &grant.Value{Parts: []grant.Part{literal("u:"), token}}},
				}}},
				{Name: "X-Raw", Value: grant.Value{Parts: []grant.Part{token}}},
				{Name: "X-Plain", Value: grant.Value{Parts: []grant.Part{literal("v2")}}},
			},
		},
		{Name: "other", Hosts: []string{"*.example.com:443"}},
	}}
	if diff := cmp.Diff(want, defs.Tools[0].Grant); diff != "" {
		t.Error(diff)
	}
	if got := defs.Tools[0].GrantRanges["http.other"].String(); got != "x.hcl:17:5" {
		t.Error(got)
	}
}

func TestCode_positions(t *testing.T) {
	files := map[string][]byte{"crm/lib/x.ts": []byte("return 1 as number;\n")}
	file, problems := Parse(Source{Path: "tools.d/crm/a.hcl", RelDir: "crm", Bytes: []byte(
		"tool \"a\" {\n  run = \"x \\\"é\\\" $${y} \\n z\"\n}\ntool \"c\" {\n  run = <<-TS\n      é\n        two\n    TS\n}\ntool \"b\" {\n  run = file(\"lib/x.ts\")\n}\n")}, ToolsKind)
	if file == nil {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(Scope{ReadFile: func(name string) ([]byte, error) {
		if content, ok := files[name]; ok {
			return content, nil
		}
		return nil, errors.New("no such file")
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	quoted := defs.Tools[0].Run
	if got, want := quoted.Text.Body(), "x \"é\" ${y} \n z"; got != want || quoted.Language != definition.JavaScript {
		t.Errorf("%q, want %q", got, want)
	}
	for part, want := range map[string]diag.Pos{
		"é": {Line: 2, Column: 14, Byte: 24}, "${y}": {Line: 2, Column: 18, Byte: 29}, "y}": {Line: 2, Column: 21, Byte: 32}, "z": {Line: 2, Column: 27, Byte: 38},
	} {
		if got := quoted.Text.Pos(strings.Index(quoted.Text.Body(), part)); got != want {
			t.Errorf("%s is at %+v, want %+v", part, got, want)
		}
	}
	flush := defs.Tools[1].Run
	if flush.Text.Body() != "é\n  two\n" || flush.Language != definition.TypeScript {
		t.Errorf("%q", flush.Text.Body())
	}
	if got := flush.Text.Pos(strings.Index(flush.Text.Body(), "two")); got.Line != 7 || got.Column != 9 {
		t.Errorf("two is at %+v", got)
	}
	read := defs.Tools[2].Run
	if read.Path != "crm/lib/x.ts" || read.Text.File() != "tools.d/crm/lib/x.ts" || read.Language != definition.TypeScript || read.Text.Pos(7).Column != 8 {
		t.Errorf("%+v", read)
	}
}

func TestParseJSON_sameAsHCL(t *testing.T) {
	const native = `
tool "get" {
  description = "a ${var.v} b"
  read_only   = true
  labels      = { team = "crm" }
  input "id" {
    type    = list(string)
    default = ["${var.v}", "y"]
  }
  run = "return ` + "`é \\\"$${input.id}`" + `;"
}
policy "p" {
  tools  = ["get"]
  deny   = "a == \"b\""
  reason = "no"
}
test "t" {
  tool  = "get"
  input = { id = [1.5, null] }
  mock "http.a" "GET /" { json = { x = true } }
  mock "http.a" "GET /x" { text = "x" }
  expect { text = "ok" }
}
`
	const inJSON = `{
  "tool": {"get": {
    "description": "a ${var.v} b", "read_only": true, "labels": {"team": "crm"},
    "input": {"id": {"type": "list(string)", "default": ["${var.v}", "y"]}},
    "run": "return ` + "`\\u00e9 \\\"${input.id}`" + `;"
  }},
  "policy": {"p": {"tools": ["get"], "deny": "a == \"b\"", "reason": "no"}},
  "test": [{"t": {"tool": "get", "input": {"id": [1.5, null]}, "mock": {"http.a": [{"GET /": {"json": {"x": true}}}, {"GET /x": {"text": "x"}}]}, "expect": {"text": "ok"}}}]
}`
	scope := Scope{Vars: map[string]definition.Variable{"v": {Value: json.RawMessage(`"x"`)}}}
	a, b := decodeTools(t, "x.hcl", native, scope), decodeTools(t, "x.hcl.json", inJSON, scope)
	ignored := cmp.FilterPath(func(p cmp.Path) bool {
		last := p.Last().String()
		return strings.HasSuffix(last, "Range") || strings.HasSuffix(last, "Origin") || last == ".Hashes" || last == ".GrantRanges"
	}, cmp.Ignore())
	texts := cmp.Transformer("body", func(t diag.Text) string { return t.Body() })
	if diff := cmp.Diff(a, b, ignored, texts); diff != "" {
		t.Error(diff)
	}
	run := b.Tools[0].Run.Text
	if pos := run.Pos(strings.Index(run.Body(), "input")); inJSON[pos.Byte:pos.Byte+5] != "input" || pos.Line != 5 {
		t.Errorf("input is at %+v", pos)
	}
}

func TestPolicy_invalidDenies(t *testing.T) {
	for _, body := range []string{
		`deny = true`, `allow = true`, `allow = "true"
		deny = "false"`, `disclose = "hide"`, `requires_approval = true`, "deny = <<JS\n1\nJS",
	} {
		file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte("policy \"p\" {\nreason = \"no\"\n" + body + "\n}\n")}, ToolsKind)
		if file == nil {
			t.Fatal(problems)
		}
		defs, problems := file.Decode(Scope{})
		if len(problems) != 1 || !problems.HasErrors() {
			t.Errorf("%s: got %v", body, problems)
		}
		if p := defs.Policies[0]; p.Allow != nil || p.Deny == nil {
			t.Errorf("%s: got allow %v, deny %v", body, p.Allow, p.Deny)
		}
	}
}

func TestTestBlock_resourcesAndPrompts(t *testing.T) {
	tests := decodeTools(t, "x.hcl", `
test "a resource" {
  resource = "crm://customers/C-1"
  expect {
    text      = "x"
    mime_type = "text/plain"
  }
}
test "a prompt" {
  prompt = "review"
  input  = { id = "INC-1" }
  expect {
    messages = [
      { role = "user", text = "Review \"INC-1\"" },
      { role = "assistant", content = { type = "image", data = "AAAA" } },
      { role = "user", content = "Thanks" },
    ]
  }
}
test "no arguments" {
  prompt = "review"
  input  = {}
  expect { error = "INVALID_INPUT" }
}
`, Scope{}).Tests
	resource, prompt, none := tests[0], tests[1], tests[2]
	if resource.Resource != "crm://customers/C-1" || resource.Tool+resource.Prompt != "" || *resource.Expect.Text != "x" ||
		resource.Expect.MIMEType != "text/plain" || resource.TargetRange.Start.Line != 3 {
		t.Errorf("got %+v", resource)
	}
	const want = `[{"role":"user","content":{"type":"text","text":"Review \"INC-1\""}},{"role":"assistant","content":{"data":"AAAA","type":"image"}},` +
		`{"role":"user","content":{"type":"text","text":"Thanks"}}]`
	if string(prompt.Expect.Messages) != want || prompt.Prompt != "review" || string(prompt.Input) != `{"id":"INC-1"}` {
		t.Errorf("got %+v with %s", prompt, prompt.Expect.Messages)
	}
	if string(none.Input) != "{}" || none.Expect.Messages != nil {
		t.Errorf("got %+v", none)
	}
}
