package scripting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResult_kinds(t *testing.T) {
	for _, c := range []struct{ name, body, input, want string }{
		{"a sum", `return input.a + input.b`, `{"a":2,"b":3}`, `5`},
		{"an object", `return { sum: input.a + input.b }`, `{"a":2,"b":3}`, `{"sum":5}`},
		{"text", `return "hi " + vars.stage`, ``, `"hi dev"`},
		{"nothing", `const a = 1`, ``, `nothing`},
		{"null", `return null`, ``, `null`},
		{"async", `await null; return 1`, ``, `1`},
		{"promise", `return Promise.resolve(4)`, ``, `4`},
		{"a promise in a list", `return [1, Promise.resolve(4)]`, ``, `failure Thrown: the result cannot be returned: there is a promise in it: write await before the call, or await Promise.all([…]) for several`},
		{"a promise in an object", `return { sum: (async () => 4)() }`, ``, `failure Thrown: the result cannot be returned: there is a promise in it: write await before the call, or await Promise.all([…]) for several`},
		{"a promise as JSON", `return JSON.stringify([Promise.resolve(4)])`, ``, `"[{}]"`},
		{"a global's name for its own variable", `const content = 1, input = 2; var call = 3; return content + input + call`, ``, `6`},
		{"timers", `let n = 0; setTimeout((x) => { n += x }, 1, 5); await new Promise(r => setTimeout(r, 2)); return n`, ``, `5`},
		{"interval", `let n = 0; return new Promise(r => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); r(n) } }, 1) })`, ``, `3`},
		{"content", `return content.text("x")`, ``, `content [{"type":"text","text":"x"}] `},
		{"content array", `return [content.text("x"), content.image(new Uint8Array([1,2,3]), "image/png")]`, ``, `content [{"type":"text","text":"x"},{"type":"image","data":"AQID","mimeType":"image/png"}] `},
		{"structured", `return content.structured({a:1}, content.text("x"))`, ``, `content [{"type":"text","text":"x"}] {"a":1}`},
		{"date", `return new Date(0)`, ``, `"1970-01-01T00:00:00.000Z"`},
		{"thrown", `throw new Error("boom")`, ``, `failure Thrown: boom`},
		{"thrown string", `throw "boom"`, ``, `failure Thrown: boom`},
		{"tool error", `throw new ToolError("no", {details: {a: 1}})`, ``, `failure ToolError: no`},
		{"rpc error", `throw new RpcError(-32000, "no", {a: 1})`, ``, `failure RPCError: no`},
		{"agent", `return [agent.agent_id, agent.model, call.via]`, ``, `["a",null,"test"]`},
		{"frozen", `vars.nested.list.push(2)`, ``, `failure Thrown: Cannot add property 1, object is not extensible`},
		{"json", `return JSON.parse('{"a":[1,2,{"b":null}]}')`, ``, `{"a":[1,2,{"b":null}]}`},
		{"stringify", `return JSON.stringify({a:[1,{b:2}],c:undefined,d(){}} , null, 2)`, ``, `"{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ]\n}"`},
		{"url", `const u = new URL("../x?q=1#h", "https://user:pw@EXAMPLE.com:443/a/b/c"); u.searchParams.append("z", "ä b"); return [u.href, u.host, "" + u.searchParams]`, ``, `["https://user:pw@example.com/a/x?q=1&z=%C3%A4+b#h","example.com","q=1&z=%C3%A4+b"]`},
		{"text coding", `return new TextDecoder().decode(new TextEncoder().encode("äöü€😀")) + atob(btoa("hi"))`, ``, `"äöü€😀hi"`},
		{"uuid", `return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())`, ``, `true`},
		{"digest", `const d = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("abc"))); return Array.from(d, b => b.toString(16).padStart(2, "0")).join("")`, ``, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`},
		{"clone", `const a = {m: new Map([[1, {x: 1}]]), s: new Set([1]), d: new Date(5), u: new Uint8Array([1, 2])}; a.self = a; const b = structuredClone(a); return [b.self === b, b.m.get(1).x, b.s.has(1), b.d.getTime(), b.u[1], b.u instanceof Uint8Array]`, ``, `[true,1,true,5,2,true]`},
		{"eval", `return (0, globalThis["ev" + "al"])("1")`, ``, `failure Thrown: text cannot be run as code: eval and Function are not available`},
		{"function constructor", `return (() => 1).constructor("return 2")()`, ``, `failure Thrown: text cannot be run as code: eval and Function are not available`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shown(runScript(t, c.body, c.input)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestInput_bigints(t *testing.T) {
	for _, row := range []struct{ name, body, input, want string }{
		{"direct", `return [typeof input.id, String(input.id)]`, `{"id":123456789012345678901234567890}`, `["bigint","123456789012345678901234567890"]`},
		{"small", `return [typeof input.id, String(input.id + 1n)]`, `{"id":-5}`, `["bigint","-4"]`},
		{"others stay numbers", `return [typeof input.n, input.rows.map((row) => typeof row.n).join()]`, `{"n":5,"rows":[{"n":1,"id":2}]}`, `["number","number"]`},
		{"list", `return input.ids.map(String)`, `{"ids":[9007199254740993,1]}`, `["9007199254740993","1"]`},
		{"map", `return String(input.by.any_name)`, `{"by":{"any_name":9007199254740993}}`, `"9007199254740993"`},
		{"objects in a list", `return String(input.rows[1].id)`, `{"rows":[{"id":1},{"id":9007199254740993}]}`, `"9007199254740993"`},
		{"result", `return { id: input.id * 2n }`, `{"id":9007199254740993}`, `{"id":18014398509481986}`},
		{"result of too many digits", `return { id: 10n ** 308n }`, `{}`, `failure Thrown: the result cannot be returned: a BigInt of more than 308 digits cannot be written as JSON`},
		{"hostile result", `return { id: 1n << 5000000n }`, `{}`, `failure Thrown: the result cannot be returned: a BigInt of more than 308 digits cannot be written as JSON`},
		{"no integer", `return String(input.id)`, `{"id":1.5}`, `failure Thrown: the arguments cannot be read: no integer at byte 9 of the JSON text`},
	} {
		t.Run(row.name, func(t *testing.T) {
			src := tool(row.body)
			src.BigInts, src.BigIntResult = []string{"/id", "/ids/*", "/by/*", "/rows/*/id"}, true
			p := compiled(t, src)
			encoded, err := p.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			again, err := UnmarshalProgram(encoded, src.Transpiler)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []*Program{p, again} {
				if got := shown(runWith(t, call(p, row.input), &fakeHost{})); got != row.want {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}

func TestBigInt_logged(t *testing.T) {
	src := tool(`log.info("got", { id: input.id, ids: [input.id + 1n] }); log.info({ id: input.id }, input.id); console.log(input.id, [input.id])`)
	src.BigInts = []string{"/id"}
	host := &fakeHost{}
	if got := shown(runWith(t, call(compiled(t, src), `{"id":9007199254740993}`), host)); got != "nothing" {
		t.Errorf("got %s", got)
	}
	want := []string{
		`log {"level":"info","message":"got","fields":{"id":9007199254740993,"ids":[9007199254740994]}}`,
		`log {"level":"info","message":"{\"id\":9007199254740993}","fields":9007199254740993}`,
		`console {"level":"info","message":"9007199254740993 [9007199254740993]"}`,
	}
	if diff := cmp.Diff(want, host.calls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
