package openapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// document returns a document with an operation at GET /pets/{id}.
func document(change func(root, operation map[string]any)) []byte {
	operation := map[string]any{
		"operationId": "getPet", "summary": "Returns a pet",
		"parameters": []any{map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}},
		"responses":  map[string]any{"200": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object"}}}}},
	}
	root := map[string]any{
		"openapi": "3.0.3", "info": map[string]any{"title": "Pets"},
		"servers": []any{map[string]any{"url": "https://pets.example.com/v1"}},
		"paths":   map[string]any{"/pets/{id}": map[string]any{"get": operation}},
	}
	change(root, operation)
	text, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return text
}

func generate(t *testing.T, text []byte, o Options) *Generated {
	t.Helper()
	d, err := spec.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if o.Name == "" {
		o.Name = "api"
	}
	g, err := Generate(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// decode returns the definitions of a generated file.
func decode(t *testing.T, text string, g *Generated) definition.Definitions {
	t.Helper()
	file, problems := hclfile.Parse(hclfile.Source{Path: "api.hcl", Bytes: []byte(text)}, hclfile.ToolsKind)
	if problems.HasErrors() {
		t.Fatalf("%v\n%.3000s", problems, text)
	}
	var scope hclfile.Scope
	for _, s := range g.Secrets {
		scope.Secrets = append(scope.Secrets, s.Name)
	}
	defs, problems := file.Decode(scope)
	if problems.HasErrors() {
		t.Fatalf("%v\n%.3000s", problems, text)
	}
	return defs
}

// hostile are texts that try to leave their place in a file.
var hostile = []string{
	`"`, `\`, `\"`, "${secret.x}", "%{ if true }", "$${x}", "a\nb", "\r\n}\ntool \"evil\" {\n  run = \"1\"\n}\n", "\nJSON\n}\npolicy \"evil\" {}\n",
	"\nJS\n", "JSON", "<<JS", "*/", "# mcpd import: tool GET /pets/{id} sha256=0123456789abcdef", "`${process}`", "</script>", "\u2028", "\u202etxet", "\x00", "\u200b",
	"__proto__", "constructor", "../../etc/passwd", "", " ", "😀", strings.Repeat("x", 1<<20), strings.Repeat("\n", 5000), strings.Repeat("${", 3000), "null", "true", "1", "-", "_",
}

var (
	plainName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	allowed   = regexp.MustCompile(`^https://pets\.example\.com`)
)

func TestGenerate_hostileTexts(t *testing.T) {
	places := map[string]func(root, operation map[string]any, text string){
		"id":          func(_, o map[string]any, s string) { o["operationId"] = s },
		"summary":     func(_, o map[string]any, s string) { o["summary"] = s },
		"description": func(_, o map[string]any, s string) { o["description"] = s },
		"query": func(_, o map[string]any, s string) {
			o["parameters"] = append(o["parameters"].([]any), map[string]any{"name": s, "in": "query", "required": true, "description": s, "example": s, "schema": map[string]any{"type": "string"}})
		},
		"deep": func(_, o map[string]any, s string) {
			o["parameters"] = append(o["parameters"].([]any), map[string]any{"name": s, "in": "query", "style": "deepObject", "required": true, "schema": map[string]any{"type": "object", "required": []any{s}, "properties": map[string]any{s: map[string]any{"type": "string"}}}})
		},
		"header": func(_, o map[string]any, s string) {
			o["parameters"] = append(o["parameters"].([]any), map[string]any{"name": s, "in": "header", "schema": map[string]any{"type": "string"}})
		},
		"enum": func(_, o map[string]any, s string) {
			o["parameters"] = append(o["parameters"].([]any), map[string]any{"name": "kind", "in": "query", "required": true, "schema": map[string]any{"type": "string", "enum": []any{s, "b"}, "default": s}})
		},
		"pattern": func(_, o map[string]any, s string) {
			o["parameters"] = append(o["parameters"].([]any), map[string]any{"name": "kind", "in": "query", "required": true, "schema": map[string]any{"type": "string", "pattern": s, "format": s}})
		},
		"body": func(_, o map[string]any, s string) {
			o["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"example": map[string]any{s: s}, "schema": map[string]any{"type": "object", "required": []any{s}, "properties": map[string]any{s: map[string]any{"type": "string", "description": s, "nullable": true}}}}}}
		},
		"media": func(_, o map[string]any, s string) {
			o["requestBody"] = map[string]any{"required": true, "content": map[string]any{s: map[string]any{"schema": map[string]any{"type": "object"}}}}
		},
		"response": func(_, o map[string]any, s string) {
			o["responses"] = map[string]any{s: map[string]any{}, "200": map[string]any{"content": map[string]any{"application/json": map[string]any{"example": map[string]any{s: s}, "schema": map[string]any{"type": "object", "properties": map[string]any{s: map[string]any{"description": s}}}}, s: map[string]any{}}}}
		},
		"security": func(r, _ map[string]any, s string) {
			r["security"] = []any{map[string]any{s: []any{}}}
			r["components"] = map[string]any{"securitySchemes": map[string]any{s: map[string]any{"type": "apiKey", "in": "header", "name": s}}}
		},
		"key": func(r, _ map[string]any, s string) {
			r["security"] = []any{map[string]any{s: []any{}}}
			r["components"] = map[string]any{"securitySchemes": map[string]any{s: map[string]any{"type": "apiKey", "in": "query", "name": s}}}
		},
		"path":   func(r, o map[string]any, s string) { r["paths"] = map[string]any{"/" + s: map[string]any{"get": o}} },
		"server": func(r, _ map[string]any, s string) { r["servers"] = []any{map[string]any{"url": s}} },
		"variable": func(r, _ map[string]any, s string) {
			r["servers"] = []any{map[string]any{"url": "https://{x}.example.com/{x}", "variables": map[string]any{"x": map[string]any{"default": s}}}}
		},
		"method": func(r, o map[string]any, s string) {
			r["paths"] = map[string]any{"/pets/{id}": map[string]any{s: o, "get": o}}
		},
		"reference": func(_, o map[string]any, s string) { o["requestBody"] = map[string]any{"$ref": s} },
	}
	for place, change := range places {
		t.Run(place, func(t *testing.T) {
			for _, text := range hostile {
				g := generate(t, document(func(r, o map[string]any) { change(r, o, text) }), Options{})
				if len(g.Tools)+len(g.Skipped) == 0 {
					t.Errorf("%.40q: no tool, and no reason", text)
				}
				file := Merge("", g).Text
				defs := decode(t, file, g)
				tests := slices.DeleteFunc(slices.Clone(g.Tools), func(one Tool) bool { return one.Test == "" })
				if len(defs.Tools) != len(g.Tools) || len(defs.Tests) != len(tests) || len(defs.Policies)+len(defs.Hooks)+len(defs.Prompts)+len(defs.Resources) > 0 {
					t.Errorf("%.40q: the file has other definitions:\n%.2000s", text, file)
				}
				for _, tool := range defs.Tools {
					if !plainName.MatchString(tool.Name) || len(tool.Name) > maxTool {
						t.Errorf("%.40q: tool %q", text, tool.Name)
					}
				}
				for _, s := range g.Secrets {
					if !plainName.MatchString(s.Name) {
						t.Errorf("%.40q: secret %q", text, s.Name)
					}
				}
				if again := Merge(file, g); again.Text != file || again.Unchanged != len(g.Tools)+len(tests) {
					t.Errorf("%.40q: a second import changes the file: %+v", text, again)
				}
				if place != "server" && place != "variable" && len(g.Tools) > 0 && !allowed.MatchString("https://"+hostOf(t, g.Tools[0].Text)) {
					t.Errorf("%.40q: another host: %s", text, g.Tools[0].Text)
				}
			}
		})
	}
}

func hostOf(t *testing.T, tool string) string {
	t.Helper()
	m := regexp.MustCompile(`hosts +=\s+\["([^"]*)"\]`).FindStringSubmatch(tool)
	if m == nil {
		t.Fatalf("no host in %s", tool)
	}
	return m[1]
}

// nested returns a schema of nested objects.
func nested(levels int) map[string]any {
	s := map[string]any{"type": "string"}
	for range levels {
		s = map[string]any{"type": "object", "required": []any{"in"}, "properties": map[string]any{"in": s}}
	}
	return s
}

func TestGenerate_bounds(t *testing.T) {
	reference := func(name string) map[string]any { return map[string]any{"$ref": "#/components/schemas/" + name} }
	wide := map[string]any{}
	for i := range 3000 {
		wide[fmt.Sprintf("p%d", i)] = nested(5)
	}
	fork := map[string]any{}
	for i := range 40 {
		fork[fmt.Sprintf("s%d", i)] = map[string]any{"type": "object", "properties": map[string]any{"a": reference(fmt.Sprintf("s%d", i+1)), "b": reference(fmt.Sprintf("s%d", i+1))}}
	}
	enum := make([]any, 100_000)
	for i := range enum {
		enum[i] = fmt.Sprint("v", i)
	}
	lists := map[string]any{"type": "string"}
	for range 11 {
		lists = map[string]any{"type": "array", "minItems": 20, "items": lists}
	}
	many := map[string]any{}
	for i := range 2000 {
		many[fmt.Sprint("x-", i)] = i
	}
	for name, schemas := range map[string]map[string]any{
		"keywords":  {"s0": many},
		"costly":    {"s0": map[string]any{"type": "string", "pattern": strings.Repeat("[a-z]{1000}", 80)}},
		"lists":     {"s0": lists},
		"deep":      {"s0": nested(60)},
		"wide":      {"s0": map[string]any{"type": "object", "properties": wide}},
		"recursive": {"s0": map[string]any{"type": "object", "properties": map[string]any{"child": reference("s0"), "children": map[string]any{"type": "array", "items": reference("s0")}}}},
		"cycle":     {"s0": reference("s1"), "s1": reference("s0")},
		"itself":    {"s0": reference("s0")},
		"fork":      fork,
		"all":       {"s0": map[string]any{"allOf": []any{reference("s0"), reference("s0"), reference("s0")}}},
		"enum":      {"s0": map[string]any{"type": "string", "enum": enum}},
		"numbers":   {"s0": map[string]any{"type": "array", "minItems": 1e300, "maxItems": -1, "items": map[string]any{"type": "integer", "minimum": 1e300, "maximum": -1e300}}},
		"lengths":   {"s0": map[string]any{"type": "string", "minLength": 1 << 50, "maxLength": 1}},
		"repeats":   {"s0": map[string]any{"type": "string", "pattern": "((a{500}){500}){500}"}},
		"words":     {"s0": map[string]any{"type": "yes", "properties": 3, "items": []any{1}, "required": "x", "enum": 5, "allOf": map[string]any{}, "anyOf": []any{nil, 4, []any{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			text := document(func(r, o map[string]any) {
				r["components"] = map[string]any{"schemas": schemas}
				content := map[string]any{"application/json": map[string]any{"schema": reference("s0")}}
				o["requestBody"] = map[string]any{"required": true, "content": content}
				o["responses"] = map[string]any{"200": map[string]any{"content": content}}
			})
			g := generate(t, text, Options{})
			if len(g.Tools) != 1 {
				t.Fatalf("%+v", g.Skipped)
			}
			if size := len(g.Tools[0].Text); size > 256<<10 {
				t.Errorf("%d bytes", size)
			}
			decode(t, Merge("", g).Text, g)
		})
	}
}

// Most rows have a twentieth of the work that the bound allows, and a twentieth of the bound.
func TestGenerate_tooComplex(t *testing.T) {
	reference := map[string]any{"$ref": "#/components/schemas/s0"}
	repeat := func(n int, one func(i int) any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = one(i)
		}
		return list
	}
	nested := map[string]any{}
	for i := range 40 {
		next := map[string]any{"$ref": fmt.Sprintf("#/components/schemas/s%d", i+1)}
		nested[fmt.Sprintf("s%d", i)] = map[string]any{"type": "object", "properties": map[string]any{"a": next, "b": next, "c": next}}
	}
	for name, row := range map[string]struct {
		schemas    map[string]any
		operations int
		bound      int
	}{
		"nested":   {nested, 200, maxWork / 20},
		"required": {map[string]any{"s0": map[string]any{"required": repeat(100_000, func(i int) any { return fmt.Sprint("r", min(i, 999)) })}}, 20, maxWork},
		"patterns": {map[string]any{"s0": map[string]any{"type": "string", "pattern": "(?i)" + strings.Repeat(`[^\pL\pM]`, 110)}}, 30, maxWork / 20},
		"enums":    {map[string]any{"s0": map[string]any{"enum": repeat(200, func(i int) any { return fmt.Sprint("value ", i) })}}, 15, maxWork / 20},
	} {
		t.Run(name, func(t *testing.T) {
			text := document(func(r, o map[string]any) {
				paths := map[string]any{}
				for i := range row.operations {
					paths[fmt.Sprintf("/p%d/{id}", i)] = map[string]any{"get": o}
				}
				schema := reference
				if name != "nested" {
					members := map[string]any{}
					for i := range 20 {
						members[fmt.Sprint("m", i)] = reference
					}
					schema = map[string]any{"type": "object", "properties": members}
				}
				o["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": schema}}}
				r["components"], r["paths"] = map[string]any{"schemas": row.schemas}, paths
			})
			d, err := spec.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			g := newGenerator(d, Options{Name: "api"})
			if g.schemas.maxWork != maxWork {
				t.Errorf("the bound is %d", g.schemas.maxWork)
			}
			g.schemas.maxWork = row.bound
			if _, err := g.generate(); err != errTooComplex {
				t.Errorf("got %v", err)
			}
			if most := row.bound + row.bound/5; g.schemas.work > most {
				t.Errorf("%d subschemas were read", g.schemas.work)
			}
		})
	}
}

// Agents and people choose tools by their descriptions.
func TestGenerate_description(t *testing.T) {
	for _, row := range []struct{ name, summary, description, want string }{
		{"summary", "Returns a pet", "", "Returns a pet"},
		{"description", "", "Finds it by its number.", "Finds it by its number."},
		{"both", "Returns a pet", "Finds it by its number.", "Returns a pet\n\nFinds it by its number."},
		{"equal", "Returns a pet", "Returns a pet", "Returns a pet"},
		{"none", "", "", "GET /pets/{id}"},
		{"blank", " \n", "\t", "GET /pets/{id}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := generate(t, document(func(_, o map[string]any) { o["summary"], o["description"] = row.summary, row.description }), Options{})
			tools := decode(t, Merge("", g).Text, g).Tools
			if len(tools) != 1 || tools[0].Description != row.want {
				t.Errorf("got %+v, want %q", tools, row.want)
			}
		})
	}
}

// An import ends as soon as its text exceeds the bound.
func TestGenerate_tooLarge(t *testing.T) {
	text := document(func(r, o map[string]any) {
		paths := map[string]any{}
		for i := range 100 {
			paths[fmt.Sprintf("/p%02d/{id}", i)] = map[string]any{"get": o}
		}
		r["paths"] = paths
	})
	d, err := spec.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	g := newGenerator(d, Options{Name: "api", MaxText: 10_000})
	if _, err := g.generate(); err != ErrTooLarge || len(g.out.Tools) < 2 || len(g.out.Tools) > 20 {
		t.Errorf("%v after %d tools", err, len(g.out.Tools))
	}
	if file := Merge("", &Generated{Tools: g.out.Tools}).Text; len(file) < g.text || len(file) > g.text+1000 {
		t.Errorf("counted %d bytes of %d", g.text, len(file))
	}
	if _, err := Generate(d, Options{Name: "api", MaxHCL: 10_000}); err != ErrTooLarge {
		t.Errorf("outside of heredocs: %v", err)
	}
	first := g.out.Tools[0]
	earlier := Earlier(Merge("", &Generated{Tools: g.out.Tools[:2]}).Text)
	if len(earlier) != 2 || earlier[first.Key] != (EarlierTool{Name: first.Name}) {
		t.Errorf("earlier tools %v", earlier)
	}
	owned := map[string]EarlierTool{}
	for key := range g.out.All {
		owned[key] = EarlierTool{Owned: true}
	}
	if _, err := Generate(d, Options{Name: "api", MaxText: 10_000, Earlier: owned}); err != nil {
		t.Errorf("tools of the author count: %v", err)
	}
}

func TestGenerate_selection(t *testing.T) {
	text := document(func(r, o map[string]any) {
		other := map[string]any{"operationId": "dropToy", "tags": []any{"toys"}, "responses": map[string]any{}}
		o["tags"] = []any{"pets"}
		r["paths"] = map[string]any{"/pets/{id}": map[string]any{"get": o}, "/pets/toys/ball": map[string]any{"delete": other}}
	})
	for _, row := range []struct {
		name string
		o    Options
		want string
	}{
		{"all", Options{}, "drop_toy get_pet"},
		{"tag", Options{Tags: []string{"toys"}}, "drop_toy"},
		{"method", Options{Methods: []string{"get"}}, "get_pet"},
		{"operation", Options{OperationIDs: []string{"dropToy"}}, "drop_toy"},
		{"path", Options{Paths: []string{"/pets/*"}}, "get_pet"},
		{"below", Options{Paths: []string{"/pets/**"}}, "drop_toy get_pet"},
		{"both", Options{Tags: []string{"toys"}, Methods: []string{"GET"}}, ""},
		{"prefix", Options{Methods: []string{"GET"}, Prefix: "zoo_"}, "zoo_get_pet"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var names []string
			for _, tool := range generate(t, text, row.o).Tools {
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestParsePlace(t *testing.T) {
	for _, row := range []struct{ url, host, base, document string }{
		{"https://a.example.com", "a.example.com:443", "", ""},
		{"https://A.example.com:8080/v1/", "a.example.com:8080", "/v1", ""},
		{"http://a.example.com:8080", "a.example.com:8080", "", "without encryption"},
		{"https://[2606:4700::1111]/x", "[2606:4700::1111]:443", "/x", ""},
		{"http://localhost:3000", "localhost:3000", "", "private network"},
		{"http://10.0.0.1", "10.0.0.1:80", "", "private network"},
		{"http://[::1]", "[::1]:80", "", "private network"},
		{"http://169.254.169.254/latest", "169.254.169.254:80", "/latest", "private network"},
		{"http://[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]:80", "", "private network"},
		{"http://db.internal", "db.internal:80", "", "private network"},
		{"https://user:secret@a.example.com", "", "", "without a user"},
		{"https://a.example.com?x=1", "", "", "without a user"},
		{"ftp://a.example.com", "", "", "http or https"},
		{"/v1", "", "", "no host"},
		{"https://*.example.com", "", "", "malformed"},
		{"https://a.example.com/*", "", "", "unsupported characters"},
		{"https://a.example.com/../x", "", "", "unsupported characters"},
		{"https://a.example.com/%2e%2e", "", "", "unsupported characters"},
		{"https://0177.0.0.1", "", "", "malformed"},
		{"https://2130706433", "", "", "malformed"},
		{"https://127.0.0x1", "", "", "malformed"},
		{"https://a_b.example.com", "", "", "malformed"},
	} {
		t.Run(row.url, func(t *testing.T) {
			p, err := parseEndpoint(row.url, true)
			if p.host != row.host || p.base != row.base || (err != nil) != (row.host == "") {
				t.Errorf("got %+v, %v", p, err)
			}
			if _, err := parseEndpoint(row.url, false); row.document == "" && err != nil || row.document != "" && (err == nil || !strings.Contains(err.Error(), row.document)) {
				t.Errorf("from the document: %v, want %q", err, row.document)
			}
		})
	}
}

// Names and values cannot hide characters from the reader of a tool file.
func TestQuote_invisible(t *testing.T) {
	const text, want = "a\u202eb\u200b\u0085\x7f\U000e0041é😀", `"a\u202eb\u200b\u0085\u007f\udb40\udc41é😀"`
	var back string
	if got := quote(text); got != want || json.Unmarshal([]byte(got), &back) != nil || back != text {
		t.Errorf("got %s, want %s; read back %q", got, want, back)
	}
}

func TestStringify(t *testing.T) {
	for text, want := range map[string]string{`<a> & "b"`: `"<a> & \"b\""`, "${x}\u2028\u202e\n": "\"${x}\u2028\u202e\\n\"", `\u2028\`: `"\\u2028\\"`} {
		if got := stringify(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSnake(t *testing.T) {
	for text, want := range map[string]string{
		"getPetById": "get_pet_by_id", "GET /pets/{id}": "get_pets_id", "listHTTPServers": "list_http_servers", "issues/list-for-repo": "issues_list_for_repo",
		"get_v2": "get_v2", "": "", "---": "", "Ünïcode": "n_code", "OAuth2Token": "o_auth2_token",
	} {
		if got := snake(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestToolNames(t *testing.T) {
	keys, wanted := []string{"GET /a", "GET /b", "GET /c"}, []string{"get", "get", ""}
	names := toolNames(keys, wanted, "", nil)
	if names[0] != "get" || names[1] != "get_"+hashOf("GET /b") || names[2] != "get_c" {
		t.Errorf("%v", names)
	}
	earlier := map[string]EarlierTool{"GET /a": {Owned: true}, "GET /b": {Name: names[1]}, "GET /c": {Name: "mine", Owned: true}}
	if again := toolNames(keys[1:], wanted[1:], "", earlier); again[0] != names[1] || again[1] != "mine" {
		t.Errorf("names change: %v", again)
	}
}

func TestMatching(t *testing.T) {
	for _, pattern := range []string{`^[a-z]+$`, `^\d{3}-\d{4}$`, `^(foo|bar)?x$`, `^stable|([0-9]+)(\.\d+)?$`, `[[:upper:]]{2}`, `^/versions/(\w+)/x$`, `.`, ``} {
		if text := matching(pattern); !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%s: %q does not match", pattern, text)
		}
	}
}

func TestMerge(t *testing.T) {
	before := generate(t, document(func(root, _ map[string]any) {
		root["paths"].(map[string]any)["/toys"] = map[string]any{"get": map[string]any{"operationId": "listToys", "responses": map[string]any{}}}
	}), Options{})
	after := generate(t, document(func(_, o map[string]any) { o["summary"] = "Changed" }), Options{})
	file := Merge("", before).Text
	edit := func(old, new string) string {
		t.Helper()
		if !strings.Contains(file, old) {
			t.Fatalf("%q is not in %s", old, file)
		}
		return strings.Replace(file, old, new, 1)
	}
	for _, row := range []struct {
		name, file       string
		g                *Generated
		want, wantKept   string
		contains, lacks  string
		unchanged, edits int
	}{
		{"nothing new", file, before, "", "", `tool "list_toys"`, "Changed", 4, 0},
		{"updated and removed", file, after, "updated tool of GET /pets/{id}; removed tool of GET /toys; removed test of GET /toys", "", "Changed", "list_toys", 1, 0},
		{"edited", edit("Returns a pet", "Mine"), after, "removed tool of GET /toys; removed test of GET /toys", "tool of GET /pets/{id} true", "Mine", "Changed", 1, 0},
		{"edited, same document", edit("Returns a pet", "Mine"), before, "", "tool of GET /pets/{id} false", "Mine", "Returns a pet", 3, 0},
		{"edited and gone", edit(`tool "list_toys" {`, "tool \"list_toys\" {\n  title = \"T\""), after, "updated tool of GET /pets/{id}", "tool of GET /toys true; test of GET /toys true", `title = "T"`, "Returns a pet", 1, 0},
		{"own blocks", file + "\npolicy \"mine\" {\n}\n", after, "updated tool of GET /pets/{id}; removed tool of GET /toys; removed test of GET /toys", "", "policy \"mine\" {\n}\n", "list_toys", 1, 0},
		{"CRLF", strings.ReplaceAll(file, "\n", "\r\n"), before, "", "", "tool \"list_toys\" {\r\n", "Changed", 4, 0},
		{"CRLF, updated and removed", strings.ReplaceAll(file, "\n", "\r\n"), after, "updated tool of GET /pets/{id}; removed tool of GET /toys; removed test of GET /toys", "", "Changed\"\r\n", "list_toys", 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := Merge(row.file, row.g)
			var got, kept []string
			for name, list := range map[string][]string{"added": m.Added, "updated": m.Updated, "removed": m.Removed} {
				for _, block := range list {
					got = append(got, name+" "+block)
				}
			}
			slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(b[:7], a[:7]) })
			for _, k := range m.Kept {
				kept = append(kept, fmt.Sprint(k.Block, " ", k.Changed))
			}
			if strings.Contains(m.Text, "\n\n\n") {
				t.Errorf("two blank lines in %s", m.Text)
			}
			if strings.Join(got, "; ") != row.want || strings.Join(kept, "; ") != row.wantKept || m.Unchanged != row.unchanged {
				t.Errorf("got %q, kept %q, %d unchanged", got, kept, m.Unchanged)
			}
			if !strings.Contains(m.Text, row.contains) || strings.Contains(m.Text, row.lacks) {
				t.Errorf("file:\n%s", m.Text)
			}
		})
	}
}

// An import shows how the document differs from an edited block until the author has seen it, and again
// after each change of the document. A marker with another digest counts as not seen.
func TestMerge_differenceSeen(t *testing.T) {
	summary := func(text string) *Generated {
		return generate(t, document(func(_, o map[string]any) { o["summary"] = text }), Options{})
	}
	first := strings.Replace(Merge("", summary("First")).Text, `"First"`, `"Mine"`, 1)
	if m := Merge(first, summary("First")); m.Text != first || m.Noted != 0 || len(m.Kept) != 1 || m.Kept[0].Changed {
		t.Errorf("an edit alone changes the file: %+v", m)
	}
	shown := Merge(first, summary("Second"))
	if len(shown.Kept) != 1 || !shown.Kept[0].Changed || shown.Kept[0].Seen || shown.Noted != 1 || !strings.Contains(shown.Text, `"Mine"`) {
		t.Fatalf("the difference is not shown: %+v", shown)
	}
	for name, row := range map[string]struct {
		file    string
		summary string
		seen    bool
		noted   int
	}{
		"same document":  {shown.Text, "Second", true, 0},
		"edited again":   {strings.Replace(shown.Text, "Mine", "Mine too", 1), "Second", true, 0},
		"document again": {shown.Text, "Third", false, 1},
		"line ends":      {strings.ReplaceAll(shown.Text, "\n", "\r\n"), "Second", true, 0},
		"missing digest": {regexp.MustCompile(` seen=\S+`).ReplaceAllString(shown.Text, ""), "Second", false, 1},
		"empty digest":   {regexp.MustCompile(`seen=\S+`).ReplaceAllString(shown.Text, "seen="), "Second", false, 1},
		"other digest":   {regexp.MustCompile(`seen=\S+`).ReplaceAllString(shown.Text, "seen=0000000000000000"), "Second", false, 1},
		"hostile digest": {regexp.MustCompile(`seen=\S+`).ReplaceAllString(shown.Text, "seen=seen=\x1b[2J${x}/*"), "Second", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := Merge(row.file, summary(row.summary))
			i := slices.IndexFunc(m.Kept, func(k Kept) bool { return strings.HasPrefix(k.Block, "tool ") })
			if i < 0 || !m.Kept[i].Changed || m.Kept[i].Seen != row.seen || m.Noted != row.noted {
				t.Fatalf("%d noted, %+v", m.Noted, m.Kept)
			}
			if again := Merge(m.Text, summary(row.summary)); again.Text != m.Text || again.Noted != 0 || !again.Kept[i].Seen || len(again.Added) > 0 {
				t.Errorf("the difference is shown again: %+v", again)
			}
		})
	}
	equal := Merge(strings.Replace(shown.Text, "Mine", "Second", 1), summary("Second"))
	if len(equal.Kept) != 0 || equal.Noted != 1 || equal.Text != Merge("", summary("Second")).Text {
		t.Errorf("a block that equals a new import stays edited: %+v", equal)
	}
	if m := Merge(equal.Text, summary("Third")); !slices.Equal(m.Updated, []string{"tool of GET /pets/{id}"}) {
		t.Errorf("a block without an edit is not updated: %+v", m)
	}
}

// A block that the author deleted does not come back as long as its marker stays.
func TestMerge_deletedBlock(t *testing.T) {
	g := generate(t, document(func(_, _ map[string]any) {}), Options{})
	var kept []string
	for _, p := range split(Merge("", g).Text) {
		kept = append(kept, p.mark)
		if p.kind == "" {
			kept = append(kept, p.text)
		}
	}
	file := strings.Join(kept, "")
	if m := Merge(file, g); m.Text != file || strings.Contains(m.Text, "tool \"") || len(m.Added) > 0 {
		t.Errorf("%+v", m)
	}
}

// Markers and braces count only at the top level of the file, outside of heredocs, strings and comments.
func TestSplit_topLevel(t *testing.T) {
	const mark, other = "# mcpd import: tool GET /a sha256=0123456789abcdef\n", "# mcpd import: tool GET /b sha256=0123456789abcdef\n"
	for _, row := range []struct{ name, block string }{
		{"heredoc", "tool \"a\" {\n  run = <<JS\n}\n" + other + "JS\n}\n"},
		{"flush heredoc", "tool \"a\" {\n  run = <<-JS\n}\n" + other + "  JS\n}\n"},
		{"comment like a heredoc", "tool \"a\" {\n  # write <<EOF\n  run = \"1\" // or <<JS\n}\n"},
		{"comment like a heredoc above", "# see <<EOF\ntool \"a\" {\n  run = \"1\"\n}\n"},
		{"string like a heredoc", "tool \"a\" {\n  description = \"ends with <<\\\"EOF\"\n  run = \"<<JS\" # <<JS\n}\n"},
		{"text like a heredoc in a heredoc", "tool \"a\" {\n  run = <<JS\nconst text = `<<EOF\n}\n` + 1 <<EOF\nJS\n}\n"},
		{"template in a heredoc", "tool \"a\" {\n  description = <<TEXT\n${upper(<<IN\n}\nIN\n)}\n}\nTEXT\n}\n"},
		{"long comment", "tool \"a\" {\n/*\n}\n" + other + "*/\n  run = \"1\"\n}\n"},
		{"long comment above", "/*\n}\n" + other + "*/\ntool \"a\" {\n}\n"},
		{"closing comment", "tool \"a\" {\n} # <<EOF\n"},
		{"nested braces", "tool \"a\" {\n  input \"x\" {\n}\n  run = \"1\"\n}\n"},
		{"one line", "tool \"a\" { run = \"1\" }\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n"} {
				file := strings.ReplaceAll("# heading\n\n"+mark+row.block+"# mine\npolicy \"p\" {\n}\n"+other+"\nrest \"x\" {}", "\n", end)
				parts := split(file)
				var keys, all string
				for _, p := range parts {
					keys += p.key + ";"
					all += p.mark + p.text
				}
				if keys != ";GET /a;;GET /b;;" || all != file {
					t.Fatalf("parts %q: %q", keys, parts)
				}
				if want := strings.ReplaceAll(row.block, "\n", end); parts[1].text != want || parts[3].text != "" {
					t.Errorf("blocks %q and %q, want %q", parts[1].text, parts[3].text, want)
				}
			}
		})
	}
}

// A file that mcpd cannot load is not split.
func TestSplit_syntaxError(t *testing.T) {
	file := "# mcpd import: tool GET /a sha256=0123456789abcdef\ntool \"a\" {\n"
	if parts := split(file); len(parts) != 1 || parts[0].kind != "" || parts[0].text != file {
		t.Errorf("%+v", parts)
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add(document(func(_, _ map[string]any) {}))
	f.Add([]byte("openapi: 3.1.0\nservers: [{url: https://a.example.com}]\npaths: {/x: {post: {requestBody: {content: {application/json: {schema: {type: [object, 'null']}}}}}}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := spec.Read(text)
		if err != nil {
			return
		}
		g, err := Generate(d, Options{Name: "api"})
		if err != nil {
			return
		}
		if file := Merge("", g).Text; len(file) < 200<<10 {
			decode(t, file, g)
		}
	})
}
