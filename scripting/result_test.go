package scripting

import "testing"

func TestABodyReturns(t *testing.T) {
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
			if got := shown(runBody(t, c.body, c.input)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
