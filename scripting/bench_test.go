package scripting

import (
	"context"
	"testing"
	"time"
)

// The bodies that the budgets are for.
const (
	smallBody = `return { sum: input.a + input.b };`
	asyncBody = `const r = await http.crm.get("https://crm.internal/x"); return r.status;`
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

// staticHost gives one answer to everything.
type staticHost struct{ answer []byte }

func (h *staticHost) Do(context.Context, int, string, []byte) ([]byte, error) { return h.answer, nil }

func BenchmarkSmallBody(b *testing.B)  { benchmark(b, smallBody) }
func BenchmarkAsyncBody(b *testing.B)  { benchmark(b, `await null; return input.a`) }
func BenchmarkOneRequest(b *testing.B) { benchmark(b, asyncBody) }
func BenchmarkLog(b *testing.B)        { benchmark(b, `log.info("x", {a: 1}); return 1`) }
func BenchmarkVars(b *testing.B)       { benchmark(b, `return vars.stage`) }
func BenchmarkJSON(b *testing.B)       { benchmark(b, `return JSON.stringify(input)`) }
func BenchmarkToolError(b *testing.B) {
	benchmark(b, `const f = () => { throw new ToolError("x") }; return 1`)
}
func BenchmarkURL(b *testing.B)        { benchmark(b, `return new URL("https://a.b/c").host`) }
func BenchmarkGlobalThis(b *testing.B) { benchmark(b, `return typeof globalThis.log`) }

func BenchmarkCompile(b *testing.B) {
	src := tool(asyncBody)
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
