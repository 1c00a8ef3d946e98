package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLSP_hostileDocuments opens texts that no parser expects, and asks about positions in and outside
// of them. Each request gets an answer.
func TestLSP_hostileDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeProjectFile(t, filepath.Join(dir, "mcpd.hcl"), "")
	writeProjectFile(t, filepath.Join(dir, "tools.d/a.hcl"), "")
	ed := startLSP(t, dir)
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`)
	ed.send(`{"method":"initialized","params":{}}`)
	id := 2
	texts, prefixes := hostileTexts()
	for i, text := range append(texts, prefixes...) {
		if testing.Short() && i%7 != 0 {
			continue
		}
		positions := hostilePositions(text)
		if i >= len(texts) {
			positions = positions[2:3] // where the user types
		}
		uri := `ROOT/tools.d/a.hcl`
		if i%5 == 4 {
			uri = `ROOT/mcpd.hcl`
		}
		ed.send(fmt.Sprintf(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":%q,"languageId":"hcl","version":%d,"text":%s}}}`, uri, i, encode(t, text)))
		for _, method := range []string{"completion", "hover", "definition", "references", "documentSymbol", "formatting", "codeAction", "prepareRename", "rename", "semanticTokens/full", "semanticTokens/range", "codeLens"} {
			for _, at := range positions {
				params := fmt.Sprintf(`{"textDocument":{"uri":%q},"position":%s,"range":{"start":%[2]s,"end":%[2]s},"options":{},"newName":"new"}`, uri, at)
				if got := ed.request(id, "textDocument/"+method, params); got["error"] != nil && !refused(got) {
					t.Errorf("%s at %s of text %d %.60q: %v", method, at, i, text, got["error"])
				}
				id++
			}
		}
	}
	ed.send(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/mcpd.hcl","languageId":"hcl","version":1,"text":""}}}`)
	ed.send(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/tools.d/a.hcl","languageId":"hcl","version":9999,"text":""}}}`)
	want := map[string]any{"uri": "ROOT/tools.d/a.hcl", "version": 9999.0, "diagnostics": []any{}}
	for !cmp.Equal(ed.next(map[string]any{"method": "textDocument/publishDiagnostics"})["params"], any(want)) {
	}
	ed.request(id, "shutdown", "null")
	if code := ed.close(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if log := ed.log.String(); strings.Contains(log, "panic") {
		t.Errorf("the server recovered a panic:\n%s", log)
	}
}

// refused reports whether the server refused a rename.
func refused(response map[string]any) bool {
	problem, _ := response["error"].(map[string]any)
	return problem["code"] == -32803.0
}

// TestLSP_hostileScripts opens script files that no parser expects, and renames the tool that has them.
func TestLSP_hostileScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeProjectFile(t, filepath.Join(dir, "tools.d/a.hcl"), "tool \"a\" {\n  input \"b\" { type = string }\n  allow {\n    call { tools = [\"a\"] }\n  }\n  run = file(\"a.ts\")\n}\n")
	writeProjectFile(t, filepath.Join(dir, "tools.d/a.ts"), "")
	ed := startLSP(t, dir)
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`)
	ed.send(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/tools.d/a.hcl","languageId":"hcl","version":1,"text":"tool \"a\" {\n  input \"b\" { type = string }\n  allow {\n    call { tools = [\"a\"] }\n  }\n  run = file(\"a.ts\")\n}\n"}}}`)
	const name = 10_000
	texts := []string{
		"", "export", "export default", "export default (", "export default (a", "export default (a,", "export default ({", "export default (((((", "export default a =>", "export default async function* (a: {", "export default }",
		"input", "input.", "input[", "input[\"b", "const {", "const { b", "const { b } =", "const { b } = input", "const { ...b } = input", "} = input", "tools", "tools.", "tools.a(", "tools.a({", "tools.a({ b", "tools.a({ ...", "tools[\"a\"",
		"import './a.ts'; input.b", "import './../../../../etc/passwd'", "import './missing.ts'", "from './a.ts'", "`${input.b}`", "`${`${`${", "`", "}${", "/", "/*", "//", "\\u{", "interface I { b", "(a: I) => input",
		strings.Repeat("input.b;", name), strings.Repeat("{ input: ", name), strings.Repeat("{ a, input: 1 }", name), strings.Repeat("a, input: b", name), strings.Repeat("const { b } = input;", name), strings.Repeat("tools.a({ b });", name), strings.Repeat("`${", 100) + "input.b",
		"export default (input: " + strings.Repeat("{ b: ", 100), "export default (input: I) => {" + strings.Repeat("interface I { b: string }", name) + "}",
	}
	whole := "interface I { b: string }\nexport default async function (input: I, ctx) {\n  const { b }: I = input;\n  return await ctx.tools.a({ b: `${input.b}` }) + input['b'];\n}\n"
	for i := range whole {
		texts = append(texts, whole[:i])
	}
	id := 2
	for i, text := range texts {
		if testing.Short() && i%7 != 0 {
			continue
		}
		ed.send(fmt.Sprintf(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/tools.d/a.ts","languageId":"typescript","version":%d,"text":%s}}}`, i, encode(t, text)))
		for _, at := range hostilePositions(text) {
			for _, method := range []string{"completion", "hover", "definition", "references", "prepareRename", "rename"} {
				if got := ed.request(id, "textDocument/"+method, fmt.Sprintf(`{"textDocument":{"uri":"ROOT/tools.d/a.ts"},"position":%s,"newName":"c"}`, at)); got["error"] != nil && !refused(got) {
					t.Errorf("%s at %s of %.60q: %v", method, at, text, got["error"])
				}
				id++
			}
		}
		for _, at := range []string{`{"line":0,"character":6}`, `{"line":1,"character":9}`} { // the tool and its input
			if got := ed.request(id, "textDocument/rename", fmt.Sprintf(`{"textDocument":{"uri":"ROOT/tools.d/a.hcl"},"position":%s,"newName":"c"}`, at)); got["error"] != nil && !refused(got) {
				t.Errorf("rename with %.60q: %v", text, got["error"])
			}
			id++
		}
	}
	ed.request(id, "shutdown", "null")
	if code := ed.close(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if log := ed.log.String(); strings.Contains(log, "panic") {
		t.Errorf("the server recovered a panic:\n%s", log)
	}
}

// hostilePositions returns positions at the start, in the middle, at the end and outside of a text.
func hostilePositions(text string) []string {
	lines := strings.Split(text, "\n")
	middle := len(lines) / 2
	return []string{
		`{"line":0,"character":0}`,
		fmt.Sprintf(`{"line":%d,"character":%d}`, middle, len(lines[middle])/2),
		fmt.Sprintf(`{"line":%d,"character":%d}`, len(lines)-1, len(lines[len(lines)-1])),
		`{"line":4294967295,"character":4294967295}`,
	}
}

// hostileTexts returns texts that break a parser, and the prefixes of a file as a user types it.
func hostileTexts() (texts, prefixes []string) {
	const name = 10_000
	texts = []string{
		"", "\n", "\x00", "\ufeff", "{", "}", "}}}}}}", "\"", "\"\"", "'", "<<", "<<EOT", "<<EOT\n", "<<-\n", "/*", "/* *", "#", "//",
		"tool", "tool ", "tool \"", "tool \"a", "tool \"a\"", "tool \"a\" {", "tool \"a\" {\n", "tool {", "tool \"\" {}", "tool \"a\" \"b\" \"c\" {}",
		"tool \"a\" { run", "tool \"a\" { run =", "tool \"a\" { run = <<JS", "tool \"a\" { run = <<JS\ninput.", "tool \"a\" { run = <<JS\ninput.\nJS\n}",
		"test \"a\" { tool = \"", "test \"a\" {\n tool = \"${", "test \"a\" {\n input = {", "policy \"a\" { tools = [\"", "policy \"a\" {\n tools = [\"*\"]\n deny = \"args.",
		"policy \"a\" { deny = \"args.....\" }", "x = ${", "x = %{", "x = \"${\"${\"${\"", "x = \"\\", "x = \"%{ for", "a = b = c", "= = =", "a { b { c {", "a.b.c", "a[", "a(", "((((", "[[[[",
		"tool \"\u202e\" {}", "tool \"\x1b[31m\" {}", "tool \"<script>alert(1)</script>\" {\n description = \"![](http://x)\"\n}", "tool \"\xff\xfe\" {}",
		"tool \"😀\" {\n  run = \"input.😀\"\n}", "e\u0301 = 1", "\r\r\r", "\r\n\r\n", "tool \"a\" {\r\n  ti\r\n}\r\n", "\u2028\u2029", "auth \"\" \"\" {}", "auth \"api_key\" \"\" {", "mock \"\" \"\" {", "test \"a\" {\n mock \"",
		"locals {", "locals {\n a = local.a\n}", "variable \"a\" { type =", "secret \"a\" { command = [\"touch\", \"x\"] }",
		strings.Repeat("a", name), strings.Repeat("{", name), strings.Repeat("}", name), strings.Repeat("[", name), strings.Repeat("(", name), strings.Repeat("\"", name), strings.Repeat("'", name),
		strings.Repeat("a {\n", name), strings.Repeat("tool \"a\" {\n", name), strings.Repeat("tool \"a\" {}\n", 200), strings.Repeat("x = <<A\n", name), strings.Repeat("<<", name), strings.Repeat("\"${", name), strings.Repeat("/*", name), strings.Repeat("#", name),
		strings.Repeat("a.", name), strings.Repeat("input.", name), "x = " + strings.Repeat("a.", name), "tool \"a\" {\n run = \"" + strings.Repeat("input.", name) + "\"\n}", strings.Repeat("\\", name), strings.Repeat("\n", name), strings.Repeat("\r\n", name), strings.Repeat("😀", name), strings.Repeat("\u0301", name),
		"tool \"a\" {\n" + strings.Repeat("  input \"b\" {\n    field \"c\" {\n", 40), "tool \"" + strings.Repeat("a", 1<<20) + "\" {}", "x = \"" + strings.Repeat("a", 1<<20),
	}
	whole := "tool \"a\" {\n  input \"b\" { type = list(string) }\n  allow {\n    http \"c\" { hosts = [\"h:1\"] }\n  }\n  run = <<JS\n    await http.c.get(`x${input.b}`);\n  JS\n}\npolicy \"p\" {\n  tools = [\"a\"]\n  deny = \"args.b[0] == 'x'\"\n  reason = \"${var.x}\"\n}\n"
	for i := range whole {
		prefixes = append(prefixes, whole[:i])
	}
	return texts, prefixes
}

// TestLSP_hostileMessages sends messages that break the protocol. The session answers the next request.
func TestLSP_hostileMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeProjectFile(t, filepath.Join(dir, "tools.d/a.hcl"), "")
	ed := startLSP(t, dir)
	for _, method := range []string{"textDocument/hover", "shutdown", "textDocument/didOpen", "initialized"} {
		if got := ed.request(1, method, "{}"); got["error"] == nil {
			t.Errorf("%s before initialize succeeds", method)
		}
	}
	if got := ed.request(1, "initialize", `{"rootUri":"http://example.com"}`); got["error"] == nil {
		t.Error("a root that is no directory is accepted")
	}
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`)
	if got := ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`); got["error"] == nil {
		t.Error("a second initialize succeeds")
	}
	methods := []string{
		"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave", "workspace/didChangeWatchedFiles", "$/cancelRequest", "initialized",
		"textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references", "textDocument/documentSymbol", "textDocument/formatting", "textDocument/codeAction", "textDocument/prepareRename", "textDocument/rename", "textDocument/semanticTokens/full", "textDocument/semanticTokens/range", "textDocument/codeLens",
		"", "nothing", "rpc.serverInfo", strings.Repeat("m", 100_000),
	}
	params := []string{
		`null`, `{}`, `[]`, `[1]`, `[{}]`, `{"textDocument":null}`, `{"textDocument":1}`, `{"textDocument":{"uri":1}}`, `{"textDocument":{"uri":""}}`, `{"textDocument":{"uri":"file:"}}`,
		`{"textDocument":{"uri":"file:///%00"}}`, `{"textDocument":{"uri":"file:///../../../etc/passwd"},"position":{}}`, `{"textDocument":{"uri":"ROOT/tools.d/a.hcl","text":1}}`,
		`{"textDocument":{"uri":"ROOT/tools.d/a.hcl","version":1e99}}`, `{"textDocument":{"uri":"ROOT/tools.d/a.hcl"},"position":{"line":-1,"character":-1}}`,
		`{"textDocument":{"uri":"ROOT/tools.d/a.hcl"},"contentChanges":[{"range":{"start":{"line":9,"character":9},"end":{"line":0,"character":0}},"text":"x"}]}`,
		`{"textDocument":{"uri":"ROOT/tools.d"},"contentChanges":null}`, `{"id":{}}`, `{"changes":[{"uri":"%"}]}`, `{"textDocument":{"uri":"` + strings.Repeat("x", 100_000) + `"}}`,
		strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
	}
	id := 2
	for _, method := range methods {
		for _, p := range params {
			p = strings.ReplaceAll(p, "ROOT", ed.root)
			ed.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, p))
			ed.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, p))
			ed.next(map[string]any{"id": float64(id)})
			id++
		}
	}
	for _, message := range []string{
		"", " ", "null", "1", `"x"`, "{", "}", "[]", `[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]`, "\xff\xfe", "{\"jsonrpc\":\"2.0\"}", `{"jsonrpc":"1.0","id":1,"method":"shutdown"}`,
		`{"jsonrpc":"2.0","id":{},"method":"shutdown"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"client/x","error":{"code":"x"}}`,
		strings.Repeat("[", 200_000), strings.Repeat(`{"a":`, 200_000), strings.Repeat(" ", 17<<20),
	} {
		ed.write(message)
		if got := ed.request(id, "textDocument/hover", `{"textDocument":{"uri":"ROOT/none.hcl"}}`); got["error"] == nil {
			t.Errorf("after %.40q: %v", message, got)
		}
		id++
	}
	if log := ed.log.String(); strings.Contains(log, "panic") {
		t.Errorf("the server recovered a panic:\n%s", log)
	}
	if err := ed.in.Close(); err != nil {
		t.Error(err)
	}
}

// TestLSP_headers ends sessions whose framing is broken.
func TestLSP_headers(t *testing.T) {
	t.Parallel()
	for _, header := range []string{
		"\r\n", "x\r\n\r\n", "Content-Length: -1\r\n\r\n", "Content-Length: x\r\n\r\n", "Content-Length: 99999999999999999999\r\n\r\n",
		strings.Repeat("a: b\r\n", 100), strings.Repeat("a", 10_000), "Content-Length: 10\r\n\r\nx",
	} {
		ed := startLSP(t, t.TempDir())
		if _, err := ed.in.Write([]byte(header)); err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
		ed.close()
	}
}

// TestLSP_tooMany closes the documents over the limits, and says so.
func TestLSP_tooMany(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: 84 MiB of text")
	}
	dir := t.TempDir()
	writeProjectFile(t, filepath.Join(dir, "tools.d/a.hcl"), "")
	ed := startLSP(t, dir)
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`)
	ed.send(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/tools.d/big.hcl","languageId":"hcl","version":1,"text":"` + strings.Repeat("#", 5<<20) + `"}}}`)
	ed.next(map[string]any{"method": "window/showMessage"})
	for i := range 20 {
		ed.send(fmt.Sprintf(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/other/%d.txt","languageId":"x","version":1,"text":%q}}}`, i, strings.Repeat("#", 4<<20)))
	}
	ed.next(map[string]any{"method": "window/showMessage"})
	ed.request(2, "shutdown", "null")
}

// TestLSP_runsNothing checks that no program, test or secret of the files is used.
func TestLSP_runsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	writeProjectFile(t, filepath.Join(dir, "mcpd.hcl"), fmt.Sprintf(`
secret "token" { command = ["touch", %[1]q] }
reload { require_tests = true }
audit { path = "audit.jsonl" }
upstream "crm" {
  command = ["touch", %[1]q]
  env     = { TOKEN = secret.token }
}
`, ran))
	text := `tool "a" {
  description = "Fails."
  run         = "throw new Error('ran');"
}

test "fails" {
  tool = "a"
  expect { text = "never" }
}
`
	writeProjectFile(t, filepath.Join(dir, "tools.d/a.hcl"), text)
	ed := startLSP(t, dir)
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`)
	ed.send(fmt.Sprintf(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/tools.d/a.hcl","languageId":"hcl","version":1,"text":%q}}}`, text+"\n"))
	for {
		params, _ := ed.next(map[string]any{"method": "textDocument/publishDiagnostics"})["params"].(map[string]any)
		if params["uri"] != "ROOT/tools.d/a.hcl" {
			continue
		}
		if diff := cmp.Diff([]any{}, params["diagnostics"]); diff != "" {
			t.Error(diff)
		}
		break
	}
	ed.request(2, "shutdown", "null")
	ed.close()
	for _, name := range []string{"ran", "audit.jsonl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s exists", name)
		}
	}
}

// BenchmarkKeystroke measures the time from a change of one of 1,000 tools to its diagnostics.
func BenchmarkKeystroke(b *testing.B) {
	dir := b.TempDir()
	writeProjectFile(b, filepath.Join(dir, "mcpd.hcl"), "variable \"stage\" { default = \"dev\" }\npolicy \"p\" {\n  deny   = \"vars.stage == 'x'\"\n  reason = \"No.\"\n}\n")
	tool := func(i int) string {
		return fmt.Sprintf("tool \"t%[1]d\" {\n  description = \"Returns a sum.\"\n  read_only   = true\n\n  input \"a\" {\n    type = number\n    min  = %[1]d\n  }\n  output \"sum\" { type = number }\n\n  run = <<JS\n    return { sum: input.a + %[1]d };\n  JS\n}\n\ntest \"t%[1]d\" {\n  tool  = \"t%[1]d\"\n  input = { a = 2000 }\n  expect { output = { sum = %[2]d } }\n}\n", i, i+2000)
	}
	for i := range 1000 {
		writeProjectFile(b, filepath.Join(dir, fmt.Sprintf("tools.d/t%d.hcl", i)), tool(i))
	}
	ed := startLSP(b, dir)
	ed.request(1, "initialize", `{"rootUri":"ROOT","capabilities":{}}`)
	ed.send(fmt.Sprintf(`{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"ROOT/tools.d/t7.hcl","languageId":"hcl","version":1,"text":%q}}}`, tool(7)))
	ed.next(map[string]any{"method": "textDocument/publishDiagnostics"})
	b.Run("edit", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			edit := fmt.Sprintf(`{"range":{"start":{"line":11,"character":4},"end":{"line":11,"character":4}},"text":"/* %d */"}`, i)
			if i%2 == 1 {
				edit = fmt.Sprintf(`{"text":%q}`, tool(7))
			}
			ed.send(fmt.Sprintf(`{"method":"textDocument/didChange","params":{"textDocument":{"uri":"ROOT/tools.d/t7.hcl","version":%d},"contentChanges":[%s]}}`, i+2, edit))
			ed.next(map[string]any{"method": "textDocument/publishDiagnostics"})
		}
	})
	b.Run("completion", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			ed.request(i+10, "textDocument/completion", `{"textDocument":{"uri":"ROOT/tools.d/t7.hcl"},"position":{"line":16,"character":12}}`)
		}
	})
	ed.close()
}
