package scripting

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// The scripts of the budgets.
const (
	smallScript = `return { sum: input.a + input.b };`
	asyncScript = `const r = await http.crm.get("https://crm.internal/x"); return r.status;`
)

func benchmark(b *testing.B, body string) {
	c := call(compiled(b, tool(body)), `{"a":2,"b":3}`)
	host := &staticHost{[]byte(`{"status":200,"headers":{},"body":"{}"}`)}
	executor := Inline()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		out, err := executor.Run(ctx, c, host)
		if err != nil || out.Failure != nil {
			b.Fatal(err, out.Failure)
		}
	}
}

// staticHost returns one response for everything.
type staticHost struct{ answer []byte }

func (h *staticHost) Do(context.Context, int, string, []byte) ([]byte, error) { return h.answer, nil }

func BenchmarkSmallBody(b *testing.B)  { benchmark(b, smallScript) }
func BenchmarkAsyncBody(b *testing.B)  { benchmark(b, `await null; return input.a`) }
func BenchmarkOneRequest(b *testing.B) { benchmark(b, asyncScript) }
func BenchmarkLog(b *testing.B)        { benchmark(b, `log.info("x", {a: 1}); return 1`) }
func BenchmarkVars(b *testing.B)       { benchmark(b, `return vars.stage`) }
func BenchmarkJSON(b *testing.B)       { benchmark(b, `return JSON.stringify(input)`) }
func BenchmarkToolError(b *testing.B) {
	benchmark(b, `const f = () => { throw new ToolError("x") }; return 1`)
}
func BenchmarkURL(b *testing.B)        { benchmark(b, `return new URL("https://a.b/c").host`) }
func BenchmarkGlobalThis(b *testing.B) { benchmark(b, `return typeof globalThis.log`) }

func BenchmarkCompile(b *testing.B) {
	src := tool(asyncScript)
	b.ReportAllocs()
	for b.Loop() {
		if _, list := Compile(src); list.HasErrors() {
			b.Fatal(list)
		}
	}
}

func BenchmarkCompileTypeScript(b *testing.B) {
	src := tool(`const n: number = input.a as number; return n;`)
	src.Language = TS
	b.ReportAllocs()
	for b.Loop() {
		if _, list := Compile(src); list.HasErrors() {
			b.Fatal(list)
		}
	}
}

// BenchmarkCompileCode compiles a kilobyte of typical agent code, with fifty tools.
func BenchmarkCompileCode(b *testing.B) {
	src := codeOf(codeOfAKilobyte)
	for i := range 50 {
		src.Objects = append(src.Objects, Object{Kind: "tools", Name: fmt.Sprintf("tool_%d", i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, list := Compile(src); list.HasErrors() {
			b.Fatal(list)
		}
	}
}

// BenchmarkCompileTypedCode is BenchmarkCompileCode for code that only TypeScript accepts.
func BenchmarkCompileTypedCode(b *testing.B) {
	src := codeOf("interface Row { name: string }\n" + codeOfAKilobyte)
	b.ReportAllocs()
	for b.Loop() {
		if _, list := Compile(src); list.HasErrors() {
			b.Fatal(list)
		}
	}
}

func BenchmarkRunCode(b *testing.B) {
	c := call(compiled(b, codeOf(`const r = await crm.list({ a: 1 }); print(r.name); r`)), ``)
	host := &staticHost{[]byte(`{"name":"a"}`)}
	b.ReportAllocs()
	for b.Loop() {
		out, err := Inline().Run(context.Background(), c, host)
		if err != nil || out.Failure != nil {
			b.Fatal(err, out.Failure)
		}
	}
}

const codeOfAKilobyte = `// Which customers of the last quarter have open tickets?
import { crm } from "tools"
const [customers, pages] = await parallel([
  crm.list({ since: "2026-07-01", limit: 50 }),
  () => search_web({ query: "open tickets", max_results: 5 }),
])
console.log("customers:", customers.length, "pages:", pages.length)
const byName = new Map()
for (const customer of customers) {
  const detail = await crm.get_customer({ id: customer.id })
  if (detail.status === "closed" || !detail.tickets?.length) continue
  const open = detail.tickets.filter((t) => t.state !== "done").map((t) => ({ id: t.id, age: t.age ?? 0 }))
  byName.set(detail.name, open)
}
rows = [...byName].sort((a, b) => b[1].length - a[1].length).slice(0, 10)
for (const [name, open] of rows) print(` + "`${name}: ${open.length} open, oldest ${Math.max(...open.map((t) => t.age))} days`" + `)
const config = await read_file({ path: "/workspace/config.json" })
const report = { total: rows.length, config, names: rows.map(([name]) => name.trim().toLowerCase()) }
report
`
