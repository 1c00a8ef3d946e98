package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/ops/openapi"
)

// An import reads its files before its question, and the user may save them before the answer.
func TestImport_fileChangesDuringQuestion(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, path string){
		"edited": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("tool \"mine\" {}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSandbox(t)
			e, err := scenarioEnv(s.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			other, err := readCandidate(e, "mcpd.hcl")
			if err != nil {
				t.Fatal(err)
			}
			tools, err := readCandidate(e, "tools.d/a.hcl")
			if err != nil {
				t.Fatal(err)
			}
			other.after, tools.after = []byte("# new\n"), []byte("# new\n")
			path := filepath.Join(s.dir, "tools.d", "a.hcl")
			change(t, path)
			before, missing := os.ReadFile(path)
			if err := writeAll(e, other, tools); err == nil || !strings.Contains(err.Error(), "tools.d/a.hcl has changed during the import") {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(path); string(after) != string(before) || (err == nil) != (missing == nil) {
				t.Errorf("the file contains %q, %v", after, err)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "mcpd.hcl")); err == nil {
				t.Error("mcpd.hcl was written")
			}
		})
	}
}

// jsonObject is a JSON object of a document.
type jsonObject = map[string]any

// apiDocument returns a document with GET /pets/{id} of api.example.com, after a change.
func apiDocument(change func(root, operation jsonObject)) string {
	operation := jsonObject{
		"operationId": "getPet", "summary": "Returns a pet",
		"parameters": []any{jsonObject{"name": "id", "in": "path", "required": true, "schema": jsonObject{"type": "string"}}},
		"responses":  jsonObject{"200": jsonObject{"content": jsonObject{"application/json": jsonObject{"schema": jsonObject{"type": "object"}}}}},
	}
	root := jsonObject{
		"openapi": "3.0.3", "servers": []any{jsonObject{"url": "https://api.example.com/v1"}},
		"paths": jsonObject{"/pets/{id}": jsonObject{"get": operation}},
	}
	change(root, operation)
	text, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// apiWith returns a document whose operation has other members.
func apiWith(members jsonObject) string {
	return apiDocument(func(_, operation jsonObject) { maps.Copy(operation, members) })
}

// apiBody returns members of an operation with a JSON body of a schema.
func apiBody(schema any) jsonObject {
	return jsonObject{"requestBody": jsonObject{"required": true, "content": jsonObject{"application/json": jsonObject{"schema": schema}}}}
}

// apiQuery returns members of an operation with query parameters of the schemas.
func apiQuery(schemas ...jsonObject) jsonObject {
	var all []any
	for i, schema := range schemas {
		all = append(all, jsonObject{"name": fmt.Sprint("q", i), "in": "query", "required": true, "schema": schema})
	}
	return jsonObject{"parameters": append(all, jsonObject{"name": "id", "in": "path", "required": true, "schema": jsonObject{"type": "string"}})}
}

// apiSchemas returns a document whose operation takes the first of the schemas.
func apiSchemas(all jsonObject) string {
	return apiDocument(func(root, operation jsonObject) {
		root["components"] = jsonObject{"schemas": all}
		maps.Copy(operation, apiBody(jsonObject{"$ref": "#/components/schemas/s0"}))
	})
}

// linkedSchemas returns schemas in which each one refers to the next.
func linkedSchemas(n int, link func(next jsonObject) jsonObject) jsonObject {
	all := jsonObject{fmt.Sprint("s", n): jsonObject{"type": "string"}}
	for i := range n {
		all[fmt.Sprint("s", i)] = link(jsonObject{"$ref": fmt.Sprint("#/components/schemas/s", i+1)})
	}
	return all
}

// apiWithText returns a document with a text in each place for texts, except paths and servers.
func apiWithText(text string) string {
	return apiDocument(func(root, operation jsonObject) {
		schema := jsonObject{"type": "object", "title": text, "description": text, "required": []any{text}, "properties": jsonObject{
			text:   jsonObject{"type": "string", "description": text, "default": text, "enum": []any{text, "other"}, "format": text},
			"list": jsonObject{"type": "array", "items": jsonObject{"type": "string", "pattern": text}},
		}}
		operation["operationId"], operation["summary"], operation["description"], operation["tags"] = text, text, text, []any{text}
		operation["parameters"] = append(operation["parameters"].([]any),
			jsonObject{"name": text, "in": "query", "required": true, "description": text, "example": text, "schema": jsonObject{"type": "string", "default": text}},
			jsonObject{"name": text + "[]", "in": "query", "style": "deepObject", "schema": schema},
			jsonObject{"name": text + "json", "in": "query", "required": true, "content": jsonObject{"application/json": jsonObject{"schema": jsonObject{"type": "object"}}}, "example": jsonObject{text: "<" + text + ">"}})
		maps.Copy(operation, apiBody(schema))
		operation["responses"] = jsonObject{"200": jsonObject{"description": text, "content": jsonObject{
			"application/json": jsonObject{"schema": schema, "example": jsonObject{text: text}}}}}
		root["info"] = jsonObject{"title": text, "version": text}
		root["security"] = []any{jsonObject{text: []any{}}}
		root["components"] = jsonObject{"securitySchemes": jsonObject{text: jsonObject{"type": "apiKey", "in": "query", "name": text}}}
	})
}

// apiAtPath returns a document with its operation at a path, and parameters for it.
func apiAtPath(path string, parameters ...string) string {
	return apiDocument(func(root, operation jsonObject) {
		var all []any
		for _, name := range parameters {
			all = append(all, jsonObject{"name": name, "in": "path", "required": true, "schema": jsonObject{"type": "string"}})
		}
		operation["parameters"] = all
		root["paths"] = jsonObject{path: jsonObject{"get": operation}}
	})
}

// apiOnServer returns a document with the URL of its server.
func apiOnServer(url string, variables jsonObject) string {
	return apiDocument(func(root, _ jsonObject) { root["servers"] = []any{jsonObject{"url": url, "variables": variables}} })
}

// apiOperations returns a document with n operations.
func apiOperations(n int, id func(i int) string) string {
	return apiDocument(func(root, operation jsonObject) {
		paths := jsonObject{}
		for i := range n {
			one := maps.Clone(operation)
			one["operationId"] = id(i)
			paths[fmt.Sprintf("/p%d/{id}", i)] = jsonObject{"get": one}
		}
		root["paths"] = paths
	})
}

// hostileDocuments are documents that try to write something else than tools for their operations, to
// reach another server, or to use the machine up. refused matches the output if the import
// refuses the document or its operation; otherwise it imports it.
func hostileDocuments() map[string]struct{ text, refused string } {
	const yaml = "openapi: 3.1.0\nservers: [{url: 'https://api.example.com'}]\n"
	long := strings.Repeat("x", 10<<20)
	deep := func(n int) string {
		return `{"openapi": "3.1.0", "paths": ` + strings.Repeat(`{"a": `, n) + "1" + strings.Repeat("}", n) + "}"
	}
	var operations strings.Builder
	operations.WriteString(`{"openapi": "3.1.0", "paths": {"/": {}`)
	for i := range 100_000 {
		fmt.Fprintf(&operations, `, "/p%d/{id}": {"get": {}}`, i)
	}
	enum := make([]any, 100_000)
	for i := range enum {
		enum[i] = fmt.Sprint("value ", i)
	}
	enums := make([]jsonObject, 100)
	for i := range enums {
		enums[i] = jsonObject{"type": "string", "enum": enum[:200]}
	}
	wide := jsonObject{}
	for i := range 1001 {
		wide[fmt.Sprint("m", i)] = jsonObject{"type": "string"}
	}
	parameters := make([]jsonObject, 300)
	for i := range parameters {
		parameters[i] = jsonObject{"type": "string"}
	}
	return map[string]struct{ text, refused string }{
		// References.
		"chain of references":      {apiSchemas(linkedSchemas(30, func(next jsonObject) jsonObject { return next })), ""},
		"long chain of references": {apiSchemas(linkedSchemas(1000, func(next jsonObject) jsonObject { return next })), ""},
		"cycle of references":      {apiSchemas(jsonObject{"s0": jsonObject{"$ref": "#/components/schemas/s1"}, "s1": jsonObject{"$ref": "#/components/schemas/s0"}}), ""},
		"recursive schema":         {apiSchemas(jsonObject{"s0": jsonObject{"type": "object", "properties": jsonObject{"children": jsonObject{"type": "array", "items": jsonObject{"$ref": "#/components/schemas/s0"}}}}}), ""},
		"schemas that double": {apiSchemas(linkedSchemas(40, func(next jsonObject) jsonObject {
			return jsonObject{"type": "object", "properties": jsonObject{"a": next, "b": next}}
		})), ""},
		"schemas that double in all": {apiSchemas(linkedSchemas(40, func(next jsonObject) jsonObject { return jsonObject{"allOf": []any{next, next}} })), ""},
		"deep schema":                {apiSchemas(linkedSchemas(180, func(next jsonObject) jsonObject { return jsonObject{"type": "array", "items": next} })), ""},
		"wide schema":                {apiSchemas(jsonObject{"s0": jsonObject{"type": "object", "properties": wide}}), ""},
		"parameter that is itself": {apiDocument(func(root, operation jsonObject) {
			operation["parameters"] = []any{jsonObject{"$ref": "#/components/parameters/p"}}
			root["components"] = jsonObject{"parameters": jsonObject{"p": jsonObject{"$ref": "#/components/parameters/p"}}}
		}), `left out GET /pets/\{id\}: a chain of references without an end`},
		"path that is itself":   {apiDocument(func(root, _ jsonObject) { root["paths"] = jsonObject{"/a": jsonObject{"$ref": "#/paths/~1a"}} }), `path "/a": a chain of references`},
		"reference to a file":   {apiWith(jsonObject{"requestBody": jsonObject{"$ref": "file:///etc/passwd"}}), `left out GET /pets/\{id\}: a reference outside of the document`},
		"reference to a server": {apiSchemas(jsonObject{"s0": jsonObject{"$ref": "http://169.254.169.254/latest#/a"}}), ""},

		// Long texts.
		"long texts":          {apiWithText(long[:1<<18]), `left out GET /pets/\{id\}: the name of a parameter is missing or too long`},
		"long description":    {apiWith(jsonObject{"description": long, "summary": long}), ""},
		"long operation id":   {apiWith(jsonObject{"operationId": long}), ""},
		"long parameter name": {apiWith(jsonObject{"parameters": []any{jsonObject{"name": long, "in": "query"}}}), `left out GET /pets/\{id\}: the name of a parameter is missing or too long`},
		"long value of enum":  {apiWith(apiQuery(jsonObject{"type": "string", "enum": []any{long}})), ""},
		"long example":        {apiWith(jsonObject{"parameters": []any{jsonObject{"name": "id", "in": "path", "required": true, "example": long, "schema": jsonObject{"type": "string"}}}}), ""},
		"long path":           {apiAtPath("/" + long), `left out GET /x{90,}….*: its path has unsupported characters`},
		"long server":         {apiOnServer("https://"+long+".example.com", nil), `left out GET /pets/\{id\}: the document names no server`},

		// Texts that try to leave their place.
		"template":             {apiWithText("${secret.api_token}"), ""},
		"template directive":   {apiWithText("%{ if true }x%{ endif }"), ""},
		"escaped template":     {apiWithText("$${x} %%{y} $$${z}"), ""},
		"end of a block":       {apiWithText("\"\n  }\n}\ntool \"evil\" {\n  run = \"1\"\n}\n"), ""},
		"end of a heredoc":     {apiWithText("a\nJSON\n}\nJS\n}\nEOT\n}\ntool \"evil\" { run = \"1\" }\n"), ""},
		"start of a heredoc":   {apiWithText("see <<EOF"), ""},
		"marker of an import":  {apiWithText("\n# mcpd import: tool GET /pets/{id} sha256=0123456789abcdef\n"), ""},
		"end of a comment":     {apiWithText("*/ process.exit(1) /*"), ""},
		"end of a string":      {apiWithText(`"; throw new Error("evil"); "`), ""},
		"template of a script": {apiWithText("`${process.env}`"), ""},
		"backslashes":          {apiWithText(`\" \\" \u0022 \`), ""},
		"line separators":      {apiWithText("a\u2028}\u2029{\u0085b\rc"), ""},
		"controls":             {apiWithText("\x00\x1b[2J\x1b]0;title\x07\b\x7f"), ""},
		"bidi":                 {apiWithText("a\u202etxet\u202c \u2066b\u2069"), ""},
		"invisible characters": {apiWithText("a\u200b\u200d\ufeff\u00ad\U000e0041b"), ""},
		"invalid UTF-8":        {strings.ReplaceAll(apiWithText("BAD"), "BAD", "\xff\xfe\xc0\xaf"), ""},
		"members of objects":   {apiWithText("__proto__"), ""},
		"constructor":          {apiWithText("constructor"), ""},
		"word of JavaScript":   {apiWithText("await"), ""},
		"global of scripts":    {apiWithText("secrets"), ""},
		"word of HCL":          {apiWithText("null"), ""},
		"number":               {apiWithText("0"), ""},
		"empty text":           {apiWithText(""), `left out GET /pets/\{id\}: `},

		// Names.
		"equal ids":                        {apiOperations(5, func(int) string { return "getPet" }), ""},
		"ids that differ in case":          {apiOperations(4, func(i int) string { return []string{"getpet", "GetPet", "GETPET", "getPet"}[i] }), ""},
		"ids that differ in signs":         {apiOperations(4, func(i int) string { return []string{"get pet", "get-pet", "get.pet", "get/pet"}[i] }), ""},
		"ids that differ at the end":       {apiOperations(3, func(i int) string { return strings.Repeat("a", 100) + fmt.Sprint(i) }), ""},
		"ids like the names of collisions": {apiOperations(3, func(i int) string { return []string{"get", "get", "get_p1_id"}[i] }), ""},
		"equal inputs": {apiWith(jsonObject{"parameters": []any{
			jsonObject{"name": "id", "in": "path", "required": true, "schema": jsonObject{"type": "string"}}, jsonObject{"name": "a b", "in": "query"}, jsonObject{"name": "a-b", "in": "query"},
			jsonObject{"name": "a_b", "in": "header"}, jsonObject{"name": "A_B", "in": "header"}, jsonObject{"name": "a.b", "in": "query"}, jsonObject{"name": "id", "in": "query"},
		}}), ""},

		// Paths and servers.
		"path that climbs":            {apiAtPath("/../admin"), `left out GET /\.\./admin: its path has unsupported characters`},
		"encoded path that climbs":    {apiAtPath("/a/%2e%2e/b"), `left out GET /a/%2e%2e/b: its path has unsupported characters`},
		"path of a host":              {apiAtPath("//evil.example.com/x"), `left out GET //evil.example.com/x: its path has unsupported characters`},
		"path with a query":           {apiAtPath("/a?x=1#y"), `left out GET /a\?x=1#y: its path has unsupported characters`},
		"path with a backslash":       {apiAtPath(`/\evil.example.com`), `unsupported characters`},
		"path of a wildcard":          {apiAtPath("/*"), `left out GET /\*: its path has unsupported characters`},
		"path with a line end":        {apiAtPath("/a\nJS\n"), `unsupported characters`},
		"path with a brace":           {apiAtPath("/a/{", "a"), `left out GET /a/\{: its path has unsupported characters`},
		"path with a parameter twice": {apiAtPath("/a/{id}/{id}", "id"), ""},
		"path without parameter":      {apiAtPath("/a/{id}"), `left out GET /a/\{id\}: its path has \{id\}`},
		"server with a user":          {apiOnServer("https://api.example.com@evil.example.com", nil), `without a user`},
		"server in a file":            {apiOnServer("file:///etc/passwd", nil), `gives no host`},
		"server of a script":          {apiOnServer("javascript://api.example.com/%0aalert(1)", nil), `must be http or https`},
		"server of the cloud":         {apiOnServer("http://169.254.169.254/latest", nil), `private network`},
		"server as a number":          {apiOnServer("https://2130706433", nil), `malformed`},
		"server with zeros":           {apiOnServer("https://0177.0.0.1", nil), `malformed`},
		"server in hexadecimal":       {apiOnServer("https://127.0.0x1", nil), `malformed`},
		"server in other letters":     {apiOnServer("https://\u0430pi.example.com", nil), `malformed`},
		"server of a wildcard":        {apiOnServer("https://*.example.com", nil), `malformed`},
		"server with a port":          {apiOnServer("https://api.example.com:99999", nil), `left out GET /pets/\{id\}: `},
		"server of a variable":        {apiOnServer("https://{host}", jsonObject{"host": jsonObject{"default": "user@evil.example.com"}}), `without a user`},
		"server of a template":        {apiOnServer("https://${secret.x}.example.com", nil), `malformed`},

		// Schemas.
		"examples of other types":   {apiWith(jsonObject{"parameters": []any{jsonObject{"name": "id", "in": "path", "required": true, "example": jsonObject{"a": []any{1}}, "schema": jsonObject{"type": "integer", "enum": []any{"x"}, "minimum": 7}}}}), ""},
		"large enum":                {apiWith(apiQuery(jsonObject{"type": "string", "enum": enum})), ""},
		"many enums":                {apiWith(apiQuery(enums...)), `left out GET /pets/\{id\}: `},
		"nested repeats":            {apiWith(apiQuery(jsonObject{"type": "string", "pattern": "((a{1000}){1000}){1000}"}, jsonObject{"type": "string", "pattern": "(a{500}){500}"})), ""},
		"ambiguous repeats":         {apiWith(apiQuery(jsonObject{"type": "string", "pattern": "^(a+)+$"}, jsonObject{"type": "string", "pattern": "^((a|a)*)*b$"})), ""},
		"patterns of other engines": {apiWith(apiQuery(jsonObject{"type": "string", "pattern": "(?=a)b"}, jsonObject{"type": "string", "pattern": `(a)\1`}, jsonObject{"type": "string", "pattern": "["})), ""},
		"large pattern":             {apiWith(apiQuery(jsonObject{"type": "string", "pattern": strings.Repeat(`[^\pL\pM]`, 100_000)})), ""},
		"numbers out of range":      {apiWith(apiQuery(jsonObject{"type": "integer", "minimum": 1e300, "maximum": -1e300}, jsonObject{"type": "string", "minLength": 1e15}, jsonObject{"type": "array", "minItems": 1e15, "items": jsonObject{}})), ""},
		"other types":               {apiWith(jsonObject{"operationId": 1, "summary": []any{}, "tags": "x", "parameters": jsonObject{}, "requestBody": 5, "responses": []any{}, "security": 1}), `left out GET /pets/\{id\}: `},
		"schema of other types":     {apiWith(apiBody(jsonObject{"type": []any{1, nil, "object"}, "properties": []any{1}, "required": "x", "enum": jsonObject{}, "items": 1, "allOf": 2, "anyOf": []any{nil, 3}})), ""},
		"line ends in headers": {apiDocument(func(root, operation jsonObject) {
			operation["security"] = []any{jsonObject{"k": []any{}}}
			root["components"] = jsonObject{"securitySchemes": jsonObject{"k": jsonObject{"type": "apiKey", "in": "header", "name": "X\r\nHost: evil.example.com"}}}
		}), `its API key is in a header that cannot be set`},
		"host as a header": {apiDocument(func(root, operation jsonObject) {
			operation["security"] = []any{jsonObject{"k": []any{}}}
			root["components"] = jsonObject{"securitySchemes": jsonObject{"k": jsonObject{"type": "apiKey", "in": "header", "name": "Host"}}}
		}), `its API key is in a header that cannot be set`},
		"name of a header": {apiWith(jsonObject{"parameters": []any{jsonObject{"name": "x\r\nHost: evil.example.com", "in": "header"}}}), `the name of a header is malformed`},
		"media type":       {apiWith(jsonObject{"requestBody": jsonObject{"content": jsonObject{"application/json\r\nx: y": jsonObject{}, "a/b\"c": jsonObject{}}}}), `no supported media type`},
		"status":           {apiWith(jsonObject{"responses": jsonObject{"2\n00": jsonObject{}, "2\"}": jsonObject{}, "20${x}": jsonObject{}}}), ""},

		// Sizes.
		"many operations":          {operations.String() + "}}", `path "/p[0-9]+/\{id\}": more than 5,000 operations`},
		"many parameters":          {apiWith(apiQuery(parameters...)), `more than 200 parameters`},
		"operations beyond a file": {apiOperations(2_000, func(i int) string { return "" }), `the tools take more than 1 MiB`},
		"deep JSON":                {deep(300), `offset [0-9]+: nested deeper than 200`},
		"unfinished JSON":          {deep(10)[:50], `offset 49: not JSON`},
		"member twice":             {`{"openapi": "3.1.0", "openapi": "3.0.0"}`, `offset [0-9]+: a second member`},
		"aliases that multiply": {yaml + "a: &a [x, x, x, x, x, x, x, x]\n" + func() (all string) {
			for c := 'b'; c < 'k'; c++ {
				all += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 7), c-1)
			}
			return all
		}(), `read YAML: line [0-9]+: `},
		"alias of itself":   {yaml + "a: &a [*a]\n", `read YAML: line [0-9]+: `},
		"merge of itself":   {yaml + "paths: &a {<<: *a}\n", `read YAML: line [0-9]+: `},
		"tag of a language": {yaml + "paths: !!python/object/apply:os.system ['id']\n", `read YAML: line [0-9]+: `},
		"several documents": {yaml + "---\n" + yaml, `want one document`},
		"tabs":              {yaml + "paths:\n\t/a: {}\n", `read YAML: line [0-9]+: `},
	}
}

// An import refuses a hostile document with the place, or writes files that mcpd check accepts, with
// only tools for the operations of the document, and with the hostile texts as texts.
func TestImport_hostileDocuments(t *testing.T) {
	t.Parallel()
	for name, row := range hostileDocuments() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sandbox{dir}.write(t, "api.json", row.text)
			if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := inProcess(t, dir, nil, "import", "openapi", "api.json", "--yes")
			if strings.ContainsFunc(stdout+stderr, unsafeRune) || len(stdout+stderr) > 64<<10 {
				t.Errorf("the output is not safe to print: %.500q", stdout+stderr)
			}
			if code != exitOK || row.refused != "" {
				if code != exitFindings || row.refused == "" || !regexp.MustCompile(row.refused).MatchString(stderr) {
					t.Errorf("exit code %d, want %q: %.2000s%.2000s", code, row.refused, stdout, stderr)
				}
				if entries, _ := os.ReadDir(filepath.Join(dir, "tools.d")); len(entries) > 0 {
					t.Errorf("the import wrote %v", entries)
				}
				return
			}
			checkImported(t, dir)
		})
	}
}

// unsafeRune reports a character that can hide or reorder other ones.
func unsafeRune(r rune) bool {
	return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// checkImported checks the files of an import of a document with operations of api.example.com.
func checkImported(t *testing.T, dir string) {
	t.Helper()
	if code, stdout, stderr := inProcess(t, dir, nil, "check"); code != exitOK || !strings.HasPrefix(stdout, "ok: ") || stderr != "" {
		t.Errorf("mcpd check: exit code %d: %.2000s%.2000s", code, stdout, stderr)
	}
	if code, stdout, stderr := inProcess(t, dir, nil, "test"); code != exitOK && !strings.Contains(stdout+stderr, "no tests") {
		t.Errorf("mcpd test: exit code %d: %.2000s%.2000s", code, stdout, stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tools.d", "api.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	config, _ := os.ReadFile(filepath.Join(dir, "mcpd.hcl")) // missing without secrets
	if all := string(text) + string(config); strings.ContainsFunc(all, unsafeRune) {
		at := strings.IndexFunc(all, unsafeRune)
		t.Errorf("the files have invisible characters: %q", all[max(0, at-100):min(len(all), at+20)])
	}
	secret := regexp.MustCompile(`(?m)^secret "(api_[a-z0-9_]+)"`)
	var scope hclfile.Scope
	for _, m := range secret.FindAllStringSubmatch(string(config), -1) {
		scope.Secrets = append(scope.Secrets, m[1])
	}
	file, problems := hclfile.Parse(hclfile.Source{Path: "api.hcl", Bytes: text}, hclfile.ToolsKind)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	defs, problems := file.Decode(scope)
	if problems.HasErrors() || len(defs.Policies)+len(defs.Hooks)+len(defs.Prompts)+len(defs.Resources) > 0 {
		t.Fatalf("%v: the file has other definitions", problems)
	}
	if markers := strings.Count("\n"+string(text), "\n# mcpd import: tool GET /"); markers != len(defs.Tools) || markers == 0 {
		t.Errorf("%d markers of %d tools", markers, len(defs.Tools))
	}
	plain := regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	for _, tool := range defs.Tools {
		if !plain.MatchString(tool.Name) {
			t.Errorf("tool %q", tool.Name)
		}
		allowed := tool.Grant
		if len(allowed.HTTP) != 1 || !slices.Equal(allowed.HTTP[0].Hosts, []string{"api.example.com:443"}) || allowed.HTTP[0].PrivateNetworks {
			t.Errorf("tool %s may send requests to %+v", tool.Name, allowed.HTTP)
		}
		if allowed.HTTP = nil; slices.ContainsFunc(allowed.Secrets, func(name string) bool { return !slices.Contains(scope.Secrets, name) }) {
			t.Errorf("tool %s reads the secrets %v", tool.Name, allowed.Secrets)
		}
		if allowed.Secrets = nil; !allowed.IsEmpty() {
			t.Errorf("tool %s has other grants: %+v", tool.Name, allowed)
		}
	}
}

// With another error in the files, the errors are printed instead.
func TestImportOpenAPI_otherErrors(t *testing.T) {
	snapshot := privdiff.Snapshot{Config: &definition.Config{Policies: []definition.Policy{{Name: "p", Targets: definition.Targets{Tools: []definition.Name{{Text: "drop_toy"}}}}}}}
	r := removal{was: snapshot, path: "tools.d/toys.hcl", earlier: map[string]openapi.EarlierTool{"DELETE /toys": {Name: "drop_toy"}}}
	unknown := diag.Diagnostic{Severity: diag.Error, Code: "unknown-tool"}
	var printed bytes.Buffer
	e := env{streams: streams{stderr: &printed}}
	if err := r.explain(e, diag.List{unknown, {Severity: diag.Error, Code: "syntax"}}); err != nil || printed.Len() > 0 {
		t.Errorf("with another error: %v\n%s", err, &printed)
	}
	if err := r.explain(e, diag.List{unknown}); err == nil || !strings.Contains(printed.String(), `policy "p" names tool "drop_toy", and the document no longer has DELETE /toys`) {
		t.Errorf("%v\n%s", err, &printed)
	}
}
