package scripting

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

func TestResult_likeStringify(t *testing.T) {
	for _, body := range []string{
		`[undefined, () => 1, Symbol("x"), NaN, Infinity, -0, 1e21, 0.1, null]`,
		`({ a: undefined, f() {}, s: Symbol("x"), [Symbol("k")]: 1, n: null })`,
		`[new Number(3), new String("x"), new Boolean(false), new Boolean(true), Object(1), new Date(0), new Date(NaN)]`,
		`[new Map([[1, 2]]), new Set([1]), /x/g, new Error("x"), new ArrayBuffer(4)]`,
		`[new Uint8Array([1, 2]), new Float64Array([1.5, NaN]), new BigInt64Array(0)]`,
		`({ toJSON(key) { return "<" + key + ">" } })`,
		`({ a: { toJSON(key) { return "<" + key + ">" } }, b: [{ toJSON(key) { return typeof key + key } }] })`,
		`({ get a() { return 1 }, get b() { return [this.a] } })`,
		`Object.create({ inherited: 1 }, { own: { value: 1, enumerable: true }, hidden: { value: 1 } })`,
		`new Proxy([1, [2]], {})`,
		`new Proxy({ a: 1 }, { ownKeys: () => ["a", "b"], get: (o, k) => "v", getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) })`,
		`new (class A { x = 1; #y = 2; static z = 3; get w() { return 1 } })`,
		`(function () { return arguments })(1, "a")`,
		`Object.assign([1, 2], { extra: 1 })`,
		`[1, , 3]`,
		`async () => 1`,
		`["\u2028", "\ud800", "a\ud83d\ude00b", "\u0007\"\\"]`,
		`({ "\ud83d\ude00": 1, "ä": 2, 2: "b", 1: "a" })`,
		`(() => { const shared = { x: 1 }; return [shared, shared] })()`,
	} {
		ours := shown(runScript(t, `return { v: `+body+` }`, `{}`))
		want := stringifiedByEngine(t, body)
		if ours != want {
			t.Errorf("%s\n got %s\nwant %s", body, ours, want)
		}
	}
}

func TestResult_hostile(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a cycle", `const a = []; a.push({ a }); return a`, `failure Thrown: the result cannot be returned: the value contains itself, which JSON cannot hold`},
		{"a proxy of itself", `const a = {}; a.p = new Proxy(a, {}); return a`, `failure Thrown: the result cannot be returned: the value contains itself, which JSON cannot hold`},
		{"nesting", `let a = {}; for (let i = 0; i < 65; i++) a = { a }; return a`, `failure Limit: the result is too large: the value is nested deeper than 64`},
		{"endless nesting", `const f = () => ({ get a() { return f() } }); return f()`, `failure Limit: the result is too large: the value is nested deeper than 64`},
		{"a sparse array", `const a = []; a[4294967294] = 1; return a`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a length that lies", `return new Proxy([], { get: (o, k) => k === "length" ? 2 ** 53 : 1 })`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a shared DAG", `let d = []; for (let i = 0; i < 60; i++) d = [d, d]; return d`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a shared DAG that writes nothing", `let d = {}; for (let i = 0; i < 60; i++) d = { a: d, b: undefined, c: d }; return d`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a large typed array", `return { a: new Uint8Array(1e8) }`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a large string", `return "x".repeat(65536)`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a large string of escapes", `return "\n".repeat(3e6)`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a large key", `return { ["x".repeat(5e6)]: 1 }`, `failure Limit: the result is too large: the value is larger than 65536 bytes of JSON`},
		{"a getter that throws", `return { get a() { throw new Error("g") } }`, `failure Thrown: g`},
		{"toJSON that throws", `return { toJSON() { throw "t" } }`, `failure Thrown: t`},
		{"a revoked proxy", `const p = Proxy.revocable([], {}); p.revoke(); return [p.proxy]`, `failure Thrown: Proxy already revoked`},
		{"bytes", `return new TextEncoder().encode("a")`, `failure Thrown: the result cannot be returned: it is bytes; return content.image, content.audio or content.resource of them, or Array.from(bytes)`},
		{"a buffer", `return new ArrayBuffer(8)`, `failure Thrown: the result cannot be returned: it is bytes; return content.image, content.audio or content.resource of them, or Array.from(bytes)`},
		{"bytes within a value", `return { a: new Uint8Array([7]) }`, `{"a":{"0":7}}`},
		{"a BigInt", `return [1n]`, `failure Thrown: the result cannot be returned: a BigInt cannot be written as JSON; write String(value)`},
		{"recursion in a getter", `const o = { get a() { return this.a } }; return o`, `failure Limit: calls nest deeper than 1000`},
		{"a polluted prototype", `Object.prototype.toJSON = () => 7; return { a: 1 }`, `7`},
		{"a getter that ends the array", `const a = [{ get x() { a.length = 1; return 1 } }, 2, 3]; return a`, `[{"x":1},null,null]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := call(compiled(t, tool(c.body)), `{}`)
			call.Limits.Output = 1 << 16
			if got := shown(runWith(t, call, &fakeHost{})); got != c.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestResult_exactLimit(t *testing.T) {
	p := compiled(t, tool(`return "x".repeat(input.n)`))
	for _, c := range []struct {
		n    string
		fits bool
	}{{"98", true}, {"99", false}} {
		call := call(p, `{"n":`+c.n+`}`)
		call.Limits.Output = 100
		if out := runWith(t, call, &fakeHost{}); (out.Failure == nil) != c.fits {
			t.Errorf("%s characters in 100 bytes: %s", c.n, shown(out))
		}
	}
}

// FuzzResultWalker runs expressions of a small grammar, and checks that their results are valid
// JSON or a failure, without a crash or a hang.
func FuzzResultWalker(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte{2, 2, 2, 3, 3, 3, 9, 9})
	f.Fuzz(func(t *testing.T, choices []byte) {
		body := "const seen = [];\nconst s = (v) => (seen.push(v), v);\nreturn " + expression(&choices, 0)
		p, list := Compile(tool(body))
		if p == nil {
			t.Fatalf("%s: %v", body, list)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		c := call(p, `{}`)
		c.Limits.Output = 1 << 12
		out, err := Inline().Run(ctx, c, &fakeHost{})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if out.Failure == nil && out.Result.JSON != nil && (!json.Valid(out.Result.JSON) || len(out.Result.JSON) > 1<<12) {
			t.Fatalf("%s: %s", body, out.Result.JSON)
		}
	})
}

// expression returns a JavaScript expression for the choices.
func expression(choices *[]byte, depth int) string {
	if len(*choices) == 0 || depth > 8 {
		return "1"
	}
	c := (*choices)[0]
	*choices = (*choices)[1:]
	sub := func() string { return expression(choices, depth+1) }
	forms := []func() string{
		func() string { return `"\ud800\u2028x"` },
		func() string { return "-0.5e-7" },
		func() string { return "s([" + sub() + ", " + sub() + "])" },
		func() string { return "s({ a: " + sub() + ", get b() { return " + sub() + " } })" },
		func() string { return "seen[0]" },
		func() string { return "new Proxy(s([" + sub() + "]), {})" },
		func() string { return "({ toJSON() { return " + sub() + " } })" },
		func() string { return "Object.assign([], { length: 4294967295 })" },
		func() string { return "new Map([[1, " + sub() + "]])" },
		func() string {
			return "(() => { let d = " + sub() + "; for (let i = 0; i < 40; i++) d = [d, d]; return d })()"
		},
		func() string { return "(() => { const o = s({}); o.o = o; return o })()" },
		func() string { return "new Uint16Array(9)" },
		func() string { return "10n" },
		func() string { return "new Boolean(" + sub() + ")" },
		func() string { return "(() => { throw " + sub() + " })()" },
		func() string { return "new Proxy({}, { ownKeys: () => ['a'], get: () => " + sub() + " })" },
		func() string { return "Promise.resolve(" + sub() + ")" },
		func() string { return "content.structured(" + sub() + ", content.text(" + sub() + "))" },
	}
	return forms[int(c)%len(forms)]()
}

// stringifiedByEngine returns JSON.stringify({ v: expression }) of the engine.
func stringifiedByEngine(t *testing.T, expression string) string {
	t.Helper()
	v, err := goja.New().RunString(`JSON.stringify({ v: ` + expression + ` })`)
	if err != nil {
		t.Fatal(err)
	}
	return v.String()
}

func never() bool { return false }

// roundTrip decodes JSON into a runtime and encodes it again.
func roundTrip(t testing.TB, text string) (string, error) {
	t.Helper()
	d := jsvalue.Decoder{Runtime: goja.New(), Src: text}
	v, err := d.Document()
	if err != nil {
		return "", err
	}
	e := jsvalue.NewEncoder(1<<20, jsvalue.MaxDecodeDepth, never)
	if wrote, err := e.Encode(v); err != nil || !wrote {
		t.Fatalf("encode %q: %v %v", text, wrote, err)
	}
	return string(e.Out), nil
}

func TestJSON_roundTrip(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{` null `, `null`},
		{`true`, `true`},
		{`[ ]`, `[]`},
		{`{ }`, `{}`},
		{`0`, `0`},
		{`-0`, `0`},
		{`-1`, `-1`},
		{`9007199254740993`, `9007199254740992`},
		{`123456789012345`, `123456789012345`},
		{`1e21`, `1e+21`},
		{`1E-7`, `1e-7`},
		{`0.10`, `0.1`},
		{`1.5e300`, `1.5e+300`},
		{`5e-324`, `5e-324`},
		{`"a\"b\\c\/d\b\f\n\r\t\u0041\u00e4\u20ac\ud83d\ude00"`, `"a\"b\\c/d\b\f\n\r\tAä€😀"`},
		{`"\u0000\u001f\u007f"`, `"\u0000\u001f` + "\x7f" + `"`},
		{`"\ud800"`, `"\ud800"`},
		{`"\ude00x\ud83d"`, `"\ude00x\ud83d"`},
		{`"€😀"`, `"€😀"`},
		{`[1,[2,[3]],{"a":{"b":[]}}]`, `[1,[2,[3]],{"a":{"b":[]}}]`},
		{`{"b":1,"a":2,"b":3}`, `{"b":3,"a":2}`},
		{`{"__proto__":{"x":1},"toString":2,"constructor":3}`, `{"__proto__":{"x":1},"toString":2,"constructor":3}`},
		{`{"2":1,"1":2,"a":3}`, `{"1":2,"2":1,"a":3}`},
		{`{"":1,"\u00e4":2}`, `{"":1,"ä":2}`},
		{strings.Repeat("[", 512) + strings.Repeat("]", 512), strings.Repeat("[", 512) + strings.Repeat("]", 512)},
	} {
		got, err := roundTrip(t, c.text)
		if err != nil || got != c.want {
			t.Errorf("%.60q: got %.60q %v, want %.60q", c.text, got, err, c.want)
		}
	}
}

func TestDecode_invalidJSON(t *testing.T) {
	for _, text := range []string{
		``, ` `, `nul`, `nullx`, `tru`, `falsE`, `NaN`, `undefined`, `[`, `]`, `{`, `}`, `[1`, `[1,`, `[1,]`, `[,]`, `[1 2]`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `{"a" 1}`, `{,}`, `1 2`, `[] x`, `01`, `-`, `+1`, `1.`, `.5`, `1e`, `1e+`,
		`0x1`, `1e999`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u+123"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\xff", `/**/1`, `'a'`, "\ufeff1",
		strings.Repeat("[", 513), strings.Repeat(`{"a":`, 513), strings.Repeat("[", 1e6),
		"[" + strings.Repeat("1,", jsvalue.MaxDecodeValues) + "1]",
	} {
		if got, err := roundTrip(t, text); err == nil {
			t.Errorf("%.40q was decoded as %.40q", text, got)
		} else if text != "" && len(text) < 8 && strings.Contains(err.Error(), text) && len(text) > 3 {
			t.Errorf("%q: the error repeats the text: %v", text, err)
		}
	}
}

func TestData_deepFrozen(t *testing.T) {
	body := `const tries = [
			() => { vars.stage = 1 }, () => { vars["x" + 1] = 1 }, () => { delete vars.stage },
			() => { vars.nested.list[0] = 2 }, () => { vars.nested.list.push(1) }, () => { agent.agent_id = "root" }, () => { call.via = "x" },
		];
		return tries.map(f => { try { f(); return "changed" } catch (e) { return e.name } })`
	want := `["TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","TypeError"]`
	if got := shown(runScript(t, body, `{}`)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestInput_mutable(t *testing.T) {
	if got := shown(runScript(t, `input.list.push(2); input.x = 1; return input`, `{"list":[1]}`)); got != `{"list":[1,2],"x":1}` {
		t.Errorf("got %s", got)
	}
}

func TestInput_invalidJSON(t *testing.T) {
	got := shown(runScript(t, `return input`, `{"a":`))
	if got != `failure Thrown: the arguments cannot be read: unexpected end at byte 5 of the JSON text` {
		t.Errorf("got %s", got)
	}
}

// FuzzArguments checks that encoding/json accepts everything that the decoder accepts, and that a
// second round trip changes nothing.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u00e4\ud800",null,true]}`, `[]`, `"\ud83d\ude00"`, `-0`, `{"__proto__":1}`, "\"\u2028\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := roundTrip(t, text)
		if valid := json.Valid([]byte(text)); err == nil && !valid {
			t.Fatalf("invalid JSON %q was accepted", text)
		} else if err != nil {
			return
		}
		if !json.Valid([]byte(first)) {
			t.Fatalf("%q became invalid JSON %q", text, first)
		}
		second, err := roundTrip(t, first)
		if err != nil || second != first {
			t.Fatalf("%q became %q and then %q %v", text, first, second, err)
		}
	})
}

// Members with array indexes as names have ascending order, regardless of the input. They are also
// defined in this order: otherwise goja takes quadratic time, in a loop that nothing interrupts.
func TestDecode_indexOrder(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"z":0,"01":1,"4294967295":2`)
	for i := 20_000; i >= 0; i-- {
		fmt.Fprintf(&b, `,"%d":%d`, i, i)
	}
	b.WriteString("}")
	const body = `
		const keys = Object.keys(input);
		return [keys.length, keys[0], keys[1], keys[20000], keys.slice(20001).join()].join(" ");`
	if got, want := shown(runScript(t, body, b.String())), `"20004 0 1 20000 z,01,4294967295"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
