package scripting

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
)

// codeOf returns the source of code that may call a few tools.
func codeOf(text string) Source {
	return Source{
		Name: "run_code", Kind: Code, Text: diag.WholeFile("code", text),
		Objects: []Object{
			{"tools", "search_web"}, {"tools", "read_file"}, {"tools", "crm_get_customer"}, {"tools", "crm_list"}, {"tools", "any-name"},
			{"tools", "JSON"}, {"tools", "delete"}, {"tools", "screenshot"}, {"tools", "fail"}, {"tools", "print"}, {"tools", "then"},
		},
		Members: []Member{{"crm", "get_customer", "crm_get_customer"}, {"crm", "list", "crm_list"}, {"crm", "gone", "crm_gone"}, {"console", "log", "crm_list"}},
	}
}

// toolHost answers the calls of code.
func toolHost() *fakeHost {
	return &fakeHost{answer: func(_ context.Context, op string, payload []byte) ([]byte, error) {
		if op != "call" {
			return nil, nil
		}
		var call struct {
			Tool      string
			Arguments json.RawMessage
		}
		if err := json.Unmarshal(payload, &call); err != nil {
			return nil, err
		}
		switch call.Tool {
		case "search_web":
			return []byte(`[{"title":"a"},{"title":"b"},{"title":"c"},{"title":"d"},{"title":"e"}]`), nil
		case "read_file":
			return []byte(`"{...}"`), nil
		case "fail":
			return nil, &HostError{Code: "POLICY_DENIED", Message: "not today"}
		case "screenshot":
			return []byte(`[{"type":"text","text":"a page"},{"type":"image","data":"AAAA","mimeType":"image/png"}]`), nil
		}
		return json.Marshal(map[string]any{"tool": call.Tool, "arguments": call.Arguments})
	}}
}

// runCode compiles and runs code, and returns how that ended and what was printed.
func runCode(t testing.TB, text string) (string, *fakeHost) {
	t.Helper()
	host := toolHost()
	p, list := Compile(codeOf(text))
	if p == nil {
		return "refused\n" + Explain(diag.WholeFile("code", text), list), host
	}
	out := runWith(t, call(p, ``), host)
	result := shown(out)
	if out.Failure != nil {
		result = "failure " + out.Failure.Explain()
	}
	return out.Stdout + "=> " + result, host
}

func TestZ(t *testing.T) {
	for _, text := range []string{
		"results = await search_web({ query: \"x\", max_results: 5 })\nprint(`Found ${results.length} results`)\nconfig = await read_file({path: 'x'})\nprint(`Config: ${config}`)",
		"results = search_web(query=\"x\", max_results=5)\nprint(len(results), True)",
		"1+1", "({a:1})", "{a:1}", "crm.get_customer({id: 1})", "tools['any-name']()", "await serch_web({})", "crm.lst()", "get_customer({})",
		"import os\nfrom tools import search_web\nimport x from 'y'; const fs = require('fs')\nconsole.log(1, {a: [1, 'x', undefined, 5n]}, new Map([[1,2]]), new Set([1]), new Date(0), /x/g, () => 1, new Error('x'), search_web({}))\nfs.readFileSync",
		"const x: number = 5; x", "try { await fail() } catch (e) { [e.code, e.tool, e.message, e instanceof HostError] }",
		"await fail({})", "await screenshot()", "({t: 1, shot: await screenshot()})", "const s = await screenshot(); [1, s[1]]", "await parallel([() => search_web(), crm.list({x:1}), 5])",
		"await parallel([fail(), fail()])", "const r = search_web({}); r.length", "r = search_web({}); r.length", "x.map(x => x); x = 5", "print(f\"a\")", "# hi\nprint(1)", "def f(x):\n  return x", "print \"x\"",
		"search_web('x')", "search_web({}, 2)", "async function main() {}", "const x = ;", "tools.nope", "if x:\n  print(1)\nelif y:\n  pass", "print(fail)\nthrow new TypeError('x')",
	} {
		got, _ := runCode(t, text)
		t.Logf("--------\n%s\n%s", text, got)
	}
	_ = strings.Join
}
