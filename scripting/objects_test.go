package scripting

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuiltins_webObjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, expression, want string }{
		{"URL parts", `(u => [u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin])(new URL("HTTPS://us%20er:p:w@EXAMPLE.com:8443/a/../b c?q='1'#h i"))`,
			`["https:","us%20er","p%3Aw","example.com:8443","example.com","8443","/b%20c","?q=%271%27","#h%20i","https://example.com:8443"]`},
		{"URL setters", `(u => { u.protocol = "http"; u.host = "B.example:80"; u.pathname = "x/./y"; u.search = "a=1"; u.hash = "z"; u.username = "me"; u.port = "bad"; return u })(new URL("https://a.example/p?q#f"))`,
			`"http://me@b.example/x/y?a=1#z"`},
		{"URL canParse", `[URL.canParse("x"), URL.canParse("x", "http://a/"), URL.canParse("http://")]`, `[false,true,false]`},
		{"URL search parameters", `(u => { u.searchParams.set("a", "2"); u.searchParams.append("b", "ä&="); u.searchParams.delete("c"); u.search += "&d=4"; return [u.href, u.searchParams.get("d"), [...u.searchParams.keys()]] })(new URL("http://a/?a=1&a=3&c=1"))`,
			`["http://a/?a=2&b=%C3%A4%26%3D&d=4","4",["a","b","d"]]`},
		{"search parameters", `(p => [p.getAll("a"), p.has("b"), p.get("z"), p.size, [...p], p.toString()])(new URLSearchParams([["a", "1"], ["a", "2"], ["b", "x y"]]))`,
			`[["1","2"],true,null,3,[["a","1"],["a","2"],["b","x y"]],"a=1&a=2&b=x+y"]`},
		{"search parameters of an object", `"" + new URLSearchParams({ a: 1, b: "?" })`, `"a=1&b=%3F"`},
		{"search parameters sorted", `(p => { p.sort(); const seen = []; p.forEach((v, k) => seen.push(k + v)); return seen })(new URLSearchParams("?b=1&a=2&b=0"))`, `["a2","b1","b0"]`},
		{"encoding", `Array.from(new TextEncoder().encode("aä€😀"))`, `[97,195,164,226,130,172,240,159,152,128]`},
		{"decoding what is broken", `new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 0xff, 0xe2, 0x82, 98]))`, `"a��b"`},
		{"decoding strictly", `(() => { try { new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255])) } catch (e) { return e.name } })()`, `"TypeError"`},
		{"decoding part of a buffer", `new TextDecoder().decode(new Uint16Array(new TextEncoder().encode("abcdef").buffer, 2, 1))`, `"cd"`},
		{"base64", `[btoa("\u00ff\u0000a"), atob(" /wBh ").length, atob("YQ=="), atob("YQ")]`, `["/wBh",3,"a","a"]`},
		{"text that is none", `[btoa(12), atob(1234).length, btoa(true), btoa(null), URL.canParse(5), new URLSearchParams(7).toString(), new TextEncoder().encode(1.5).length]`,
			`["MTI=",3,"dHJ1ZQ==","bnVsbA==",false,"7=",3]`},
		{"base64 of wide text", `(() => { try { btoa("€") } catch (e) { return e.name } })()`, `"TypeError"`},
		{"base64 that is none", `(() => { try { atob("*") } catch (e) { return e.name } })()`, `"TypeError"`},
		{"random values", `(a => crypto.getRandomValues(a) === a && a.some(x => x > 0))(new Uint32Array(4))`, `true`},
		{"a clone", `(() => { const a = { d: new Date(5), r: /x/gi, m: new Map([[1, { x: 1 }]]), s: new Set([2]), u: new Uint16Array([1, 2]), e: new RangeError("e"), b: new Boolean(true), n: [, 1], z: undefined }; a.self = a; const c = structuredClone(a);
			return [c !== a, c.self === c, c.d.getTime(), "" + c.r, c.m.get(1).x, c.s.has(2), c.u[1], c.u.buffer !== a.u.buffer, c.e instanceof RangeError, c.e.message, c.b.valueOf(), 0 in c.n, "z" in c] })()`,
			`[true,true,5,"/x/gi",1,true,2,true,true,"e",true,false,true]`},
		{"a clone of a function", `(() => { try { structuredClone({ f() {} }) } catch (e) { return e.message } })()`, `"structuredClone: a function cannot be copied"`},
		{"a clone of what nests too deep", `(() => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; try { structuredClone(a) } catch (e) { return e.message } })()`, `"structuredClone: nested deeper than 500"`},
		{"JSON with a reviver", `JSON.parse('{"a":[1,2],"b":3}', (k, v) => k === "b" ? undefined : typeof v === "number" ? v * 2 : v)`, `{"a":[2,4]}`},
		{"JSON with a replacer", `JSON.stringify({ a: 1, b: [2, { a: 3 }] }, (k, v) => typeof v === "number" ? v + 1 : v)`, `"{\"a\":2,\"b\":[3,{\"a\":4}]}"`},
		{"JSON with a list of names", `JSON.stringify({ a: 1, b: { a: 2, c: 3 } }, ["b", "a", "a"], " ")`, `"{\n \"b\": {\n  \"a\": 2\n },\n \"a\": 1\n}"`},
		{"JSON of nothing", `[JSON.stringify(undefined), JSON.stringify([], null, 2), JSON.stringify({}, null, "ab")]`, `[null,"[]","{}"]`},
		{"JSON that nests too deep", `(() => { try { JSON.parse("[".repeat(1e6)) } catch (e) { return e.name } })()`, `"SyntaxError"`},
		{"JSON of what nests too deep", `(() => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; try { JSON.stringify(a) } catch (e) { return e.name } })()`, `"TypeError"`},
		{"a regular expression from text", `[new RegExp("a+", "g").exec("caab")[0], RegExp("x") instanceof RegExp, /x/ instanceof RegExp, RegExp.prototype.constructor === RegExp, "aXb".split(new RegExp("x", "i"))]`, `["aa",true,true,true,["a","b"]]`},
		{"a regular expression with too wide ranges", `(() => { try { new RegExp("[" + "!-\\uffff".repeat(100) + "]", "i") } catch (e) { return e.name } })()`, `"SyntaxError"`},
		{"a regular expression that nests too deep", `(() => { try { new RegExp("(".repeat(1e6) + ")".repeat(1e6)) } catch (e) { return e.name } })()`, `"SyntaxError"`},
		{"a large repetition", `(() => { try { "x".match("((a{999}){999}){999}") } catch (e) { return e.name } })()`, `"SyntaxError"`},
		{"matching text with text", `["a.b".match("."), "ab".search("b"), [..."aba".matchAll("a")].length, "x".match(/(x)/)[1]].map(String)`, `["a","1","2","x"]`},
		{"errors", `[new ToolError("t") instanceof Error, new ToolError("t").name, "" + new RpcError(-1, "m"), new RpcError(-1, "m", { a: 1 }).data.a, new HostError("h", { code: "C" }).code, Object.prototype.toString.call(new ToolError("x"))]`,
			`[true,"ToolError","RpcError: m",1,"C","[object Error]"]`},
		{"an RpcError without a code", `["x", undefined, 1.5, NaN, 2 ** 31].map(code => { try { return new RpcError(code, "m").code } catch (e) { return e.message } })`,
			`["` + strings.Join(slices.Repeat([]string{"RpcError(code, message, data): code must be an integer"}, 5), `","`) + `"]`},
		{"globals by computed name", `["log", "URL", "crypto", "input", "RegExp", "JSON", "ev" + "al"].map(n => typeof globalThis[n])`, `["object","function","object","object","function","object","function"]`},
		{"globals by two names", `[globalThis.input === input, globalThis.log === log, globalThis.RegExp === RegExp, globalThis.JSON === JSON, Object.isFrozen(globalThis.vars)]`, `[true,true,true,true,true]`},
		{"globals that are replaced", `(() => { globalThis.log = 1; globalThis.mine = 2; return [globalThis.log, globalThis.mine] })()`, `[1,2]`},
		{"an engine's class that is replaced", `(() => { globalThis.Error = 1; try { new globalThis.ToolError("x") } catch (e) { return e.message } })()`, `"Error was replaced"`},
		{"an engine's class that is replaced before a refusal", `await (async () => { globalThis.Error = 1; await http.crm.get("x") })()`, `failure Thrown: an exception with an unreadable message`},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
				return nil, &HostError{Code: Denied, Message: "no"}
			}}
			if got := shown(runWith(t, call(compiled(t, tool("return "+c.expression)), `{}`), host)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The vectors of FIPS 180-4, RFC 2202 and RFC 4231.
func TestCrypto_digestAndHMAC(t *testing.T) {
	const prelude = `const bytes = (s) => new TextEncoder().encode(s);
		const hex = (b) => Array.from(new Uint8Array(b), x => x.toString(16).padStart(2, "0")).join("");
		const key = (hash) => crypto.subtle.importKey("raw", bytes("Jefe"), { name: "HMAC", hash }, false, ["sign", "verify"]);
		const text = bytes("what do ya want for nothing?");`
	for _, c := range []struct{ expression, want string }{
		{`hex(await crypto.subtle.digest("SHA-1", bytes("abc")))`, `"a9993e364706816aba3e25717850c26c9cd0d89d"`},
		{`hex(await crypto.subtle.digest({ name: "sha-256" }, bytes("abc").buffer))`, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`},
		{`hex(await crypto.subtle.digest("SHA-384", bytes("abc"))).slice(0, 16)`, `"cb00753f45a35e8b"`},
		{`hex(await crypto.subtle.digest("SHA-512", bytes("abc"))).slice(0, 16)`, `"ddaf35a193617aba"`},
		{`hex(await crypto.subtle.sign("HMAC", await key("SHA-1"), text))`, `"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"`},
		{`hex(await crypto.subtle.sign("HMAC", await key({ name: "SHA-256" }), text))`, `"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"`},
		{`await crypto.subtle.verify("HMAC", await key("SHA-256"), await crypto.subtle.sign("HMAC", await key("SHA-256"), text), text)`, `true`},
		{`await crypto.subtle.verify("HMAC", await key("SHA-256"), bytes("no"), text)`, `false`},
		{`await crypto.subtle.digest("MD5", text).catch(e => e.name)`, `"TypeError"`},
		{`await crypto.subtle.sign("HMAC", {}, text).catch(e => e.name)`, `"TypeError"`},
		{`await crypto.subtle.digest("SHA-1", "text").catch(e => e.name)`, `"TypeError"`},
	} {
		if got := shown(runScript(t, prelude+"return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.expression, got, c.want)
		}
	}
}

func TestSeed_deterministic(t *testing.T) {
	p := compiled(t, tool(`return [Math.random(), crypto.randomUUID(), crypto.getRandomValues(new Uint8Array(4))[0], Math.random()]`))
	c := call(p, `{}`)
	first := shown(runWith(t, c, &fakeHost{}))
	if again := shown(runWith(t, c, &fakeHost{})); again != first {
		t.Errorf("one seed, two results: %s and %s", first, again)
	}
	made := func(result string) (numbers, secrets string) {
		parts := strings.Split(result, ",")
		return parts[0] + parts[3], parts[1] + parts[2]
	}
	numbers, secrets := made(first)
	for i := range c.Seed { // each byte counts, for both
		c.Seed[i]++
		if n, s := made(shown(runWith(t, c, &fakeHost{}))); n == numbers || s == secrets {
			t.Errorf("byte %d of the seed does not count: %s and %s", i, n, s)
		}
		c.Seed[i]--
	}
}

func TestUUID_version(t *testing.T) {
	got := shown(runScript(t, `return Array.from({ length: 64 }, () => crypto.randomUUID()).every(id => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id))`, `{}`))
	if got != "true" {
		t.Errorf("got %s", got)
	}
}

func TestContentBlocks(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`return content.text("a", { annotations: { priority: 1 } })`, `content [{"type":"text","annotations":{"priority":1},"text":"a"}] `},
		{`return content.text({ a: [1] })`, `content [{"type":"text","text":"{\"a\":[1]}"}] `},
		{`return content.image("AQID", "image/png")`, `content [{"type":"image","data":"AQID","mimeType":"image/png"}] `},
		{`return content.audio(new Uint8Array([1, 2, 3]).buffer, "audio/wav")`, `content [{"type":"audio","data":"AQID","mimeType":"audio/wav"}] `},
		{`return content.resource({ uri: "file:///a", mimeType: "text/plain", text: "x" })`, `content [{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"x"}}] `},
		{`return content.resource({ uri: "file:///a", data: new Uint8Array([1]) })`, `content [{"type":"resource","resource":{"uri":"file:///a","blob":"AQ=="}}] `},
		{`return content.link({ uri: "file:///a", name: "a", description: "d" })`, `content [{"type":"resource_link","uri":"file:///a","name":"a","description":"d"}] `},
		{`return content.structured({ a: 1 })`, `content [] {"a":1}`},
		{`return content.structured([1], [content.text("a"), content.text("b")])`, `content [{"type":"text","text":"a"},{"type":"text","text":"b"}] [1]`},
		{`return [content.text("a"), 1]`, `[{"type":"text","text":"a"},1]`},
		{`return { type: "text", text: "not made by content" }`, `{"type":"text","text":"not made by content"}`},
		{`return []`, `[]`},
		{`await null; return [content.text("a")]`, `content [{"type":"text","text":"a"}] `},
		{`return content.image("*", "image/png")`, `failure Thrown: binary data must be base64 text or a Uint8Array`},
		{`return content.image("AQID")`, `failure Thrown: content.image(data, mimeType): mimeType must be a string that is not empty`},
		{`return content.resource({ uri: "a" })`, `failure Thrown: content.resource({ uri, … }): text or data is needed`},
		{`return content.link({ uri: "a" })`, `failure Thrown: content.link({ uri, name }): name must be a string that is not empty`},
		{`return content.structured(1, [{ type: "text" }])`, `failure Thrown: content.structured(value, blocks): blocks must be made by content.text and similar functions`},
	} {
		if got := shown(runScript(t, c.body, `{}`)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.body, got, c.want)
		}
	}
}

func TestFailure_message(t *testing.T) {
	for _, c := range []struct {
		body, message, details string
		kind                   FailureKind
		code                   int
	}{
		{`throw new Error("boom")`, "boom", "", Thrown, 0},
		{`throw new TypeError("boom: ä€")`, "boom: ä€", "", Thrown, 0},
		{`throw new Error()`, "Error", "", Thrown, 0},
		{`throw "text"`, "text", "", Thrown, 0},
		{`throw null`, "null", "", Thrown, 0},
		{`throw { message: "m" }`, "m", "", Thrown, 0},
		{`throw { a: 1 }`, `{"a":1}`, "", Thrown, 0},
		{`const o = {}; o.o = o; throw o`, `an object that is not an Error`, "", Thrown, 0},
		{`throw { get message() { throw 1 } }`, `an exception with an unreadable message`, "", Thrown, 0},
		{`throw new ToolError("t", { details: { a: [1] } })`, "t", `{"a":[1]}`, ToolError, 0},
		{`throw new ToolError("t")`, "t", "", ToolError, 0},
		{`await null; throw new ToolError("t", { details: 0 })`, "t", "0", ToolError, 0},
		{`throw new (class X extends ToolError {})("t", { details: 1 })`, "t", "1", ToolError, 0},
		{`const e = new ToolError("t"); e.message = "changed"; e.details = "late"; throw e`, "changed", `"late"`, ToolError, 0},
		{`throw new RpcError(-32000, "r", { a: 1 })`, "r", `{"a":1}`, RPCError, -32000},
		{`throw new HostError("h", { code: "X" })`, "h", "", Thrown, 0},
		{`throw new Error("x".repeat(1e6))`, "x", "", Thrown, 0},
	} {
		out := runScript(t, c.body, `{}`)
		f := out.Failure
		if f == nil {
			t.Errorf("%s: %s", c.body, shown(out))
			continue
		}
		if len(f.Message) > maxMessage {
			t.Errorf("%s: a message of %d bytes", c.body, len(f.Message))
		}
		if len(f.Message) == maxMessage {
			f.Message = f.Message[:1]
		}
		if f.Kind != c.kind || f.Message != c.message || string(f.Details) != c.details || f.RPCCode != c.code {
			t.Errorf("%s: got %+v", c.body, f)
		}
	}
}

func TestFailure_memberOfNull(t *testing.T) {
	for body, want := range map[string]string{
		`const x = null; return x.foo`:        `Cannot read property 'foo' of undefined or null`,
		`let x; return x.foo.bar`:             `Cannot read property 'foo' of undefined or null`,
		`throw new TypeError("of undefined")`: `of undefined`,
	} {
		out := runWith(t, call(compiled(t, tool(body)), `{}`), &fakeHost{})
		if out.Failure == nil || want != "" && out.Failure.Message != want {
			t.Errorf("%s: got %+v", body, out.Failure)
		}
	}
}

func TestFailure_inputErrorDetails(t *testing.T) {
	for _, c := range []struct{ body, want, details string }{
		{`throw new CapabilityError("no model", { required: { sampling: {} } })`, "failure CapabilityError: no model", `{"requiredCapabilities":{"sampling":{}}}`},
		{`throw new CapabilityError("no model")`, "failure CapabilityError: no model", `{"requiredCapabilities":{}}`},
		{`const e = new CapabilityError("x", { required: {} }); e.required = 5; throw e`, "failure CapabilityError: x", `{"requiredCapabilities":{}}`},
		{`const e = new CapabilityError("x"); e.required = { toJSON() { throw 1 } }; throw e`, "failure Thrown: an exception with an unreadable message", ``},
		{`throw new AskDenied("no", { reason: "declined" })`, "failure AskDenied: no", `{"reason":"declined"}`},
		{`throw new AskDenied("no")`, "failure AskDenied: no", ``},
		{`await Promise.reject(new AskDenied("late", { reason: "cancelled" }))`, "failure AskDenied: late", `{"reason":"cancelled"}`},
	} {
		out := runScript(t, c.body, `{}`)
		if shown(out) != c.want || string(out.Failure.Details) != c.details {
			t.Errorf("%s: got %s with %s, want %s with %s", c.body, shown(out), out.Failure.Details, c.want, c.details)
		}
	}
}

func TestInputErrors_areErrors(t *testing.T) {
	body := `const a = new AskDenied("a", { reason: "declined" }), c = new CapabilityError("c", { required: { roots: {} } });
		return [a, c].map(e => [e instanceof Error, e.name, String(e), Object.keys(e)]).concat(a instanceof CapabilityError, a instanceof AskDenied)`
	want := `[[true,"AskDenied","AskDenied: a",["reason"]],[true,"CapabilityError","CapabilityError: c",["required"]],false,true]`
	if got := shown(runScript(t, body, `{}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// modular returns the source of a tool with a module of two functions.
func modular(body string) Source {
	src := tool(body)
	src.Objects = append(src.Objects, Object{Kind: "modules", Name: "ledger"}, Object{Kind: "modules.ledger", Name: "balance"}, Object{Kind: "modules.ledger", Name: "post"}, Object{Kind: "modules", Name: "bare"})
	return src
}

func TestModules_call(t *testing.T) {
	for _, c := range []struct{ body, answer, call, want string }{
		{`return await modules.ledger.balance({ account: "ä", n: [1] })`, `{"cents":7}`, `module {"module":"ledger","function":"balance","arguments":{"account":"ä","n":[1]}}`, `{"cents":7}`},
		{`return await modules["ledger"]["po" + "st"]()`, `null`, `module {"module":"ledger","function":"post"}`, `null`},
		{`return await modules.ledger.balance()`, `no JSON`, `module {"module":"ledger","function":"balance"}`, `failure Thrown: the response of the host cannot be decoded`},
		{`const { balance } = modules.ledger; return await balance({})`, `1`, `module {"module":"ledger","function":"balance","arguments":{}}`, `1`},
	} {
		host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(c.answer), nil }}
		got := shown(runWith(t, call(compiled(t, modular(c.body)), `{}`), host))
		if diff := cmp.Diff([]string{c.call}, host.calls()); diff != "" || got != c.want {
			t.Errorf("%s: got %s, want %s (-want +got):\n%s", c.body, got, c.want, diff)
		}
	}
}

func TestModules_members(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`const m = modules, k = "led" + (input.no ?? "ger"); return [Object.keys(m), Object.getOwnPropertyNames(m[k]).sort(), Object.getOwnPropertyNames(m.bare), typeof m.other]`, `[["ledger","bare"],["balance","post"],[],"undefined"]`},
		{`try { modules["led" + (input.no ?? "ger")] = 1 } catch (e) { return e.name }`, `"TypeError"`},
		{`try { modules.ledger.balance(7) } catch (e) { return e.message }`, `"modules.ledger.balance: the arguments must be an object, such as { name: value }"`},
	} {
		if got := shown(runWith(t, call(compiled(t, modular(c.body)), `{}`), &fakeHost{})); got != c.want {
			t.Errorf("%s: got %s, want %s", c.body, got, c.want)
		}
	}
}

func TestModules_diagnostics(t *testing.T) {
	for _, c := range []struct {
		body string
		want []string
	}{
		{`return modules.legder.balance()`, []string{`tools.d/t.hcl:5:16 "legder": error: modules.legder is not granted`, `did you mean "ledger"? add module "legder" {} to the allow block`}},
		{`return modules.ledger.balances()`, []string{`tools.d/t.hcl:5:23 "balances": warning: modules.ledger has no member "balances"`, `did you mean "balance"? there is balance, post`}},
		{`return modules.ledger.balance().cents`, []string{`tools.d/t.hcl:5:33 "cents": warning: a promise has no member "cents"`, `did you forget await? write (await modules.NAME.FUNCTION(args)).cents`}},
	} {
		_, problems := Compile(modular(c.body))
		got := formatDiagnostics(modular(c.body), problems)
		if len(problems) == 1 {
			got = append(got, problems[0].Detail)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.body, diff)
		}
	}
}

// declarations declares the globals for editors.
const declarations = "../internal/codemode/scripttypes/globals.d.ts"

func TestDeclarations_classMembers(t *testing.T) {
	data, err := os.ReadFile(declarations)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, class := range []string{"URL", "URLSearchParams", "TextEncoder", "TextDecoder"} {
		r := newOpenExecution(t)
		o := r.Needed(class).Get("prototype").ToObject(r.Runtime)
		installed := slices.DeleteFunc(o.GetOwnPropertyNames(), func(name string) bool { return name == "constructor" })
		slices.Sort(installed)
		body := regexp.MustCompile(`(?s)declare class ` + class + ` \{(.*?)\n\}`).FindStringSubmatch(text)[1]
		var declared []string
		for _, found := range regexp.MustCompile(`(?m)^  (?:readonly )?(\w+)(?:\(|:)`).FindAllStringSubmatch(body, -1) {
			if found[1] != "constructor" {
				declared = append(declared, found[1])
			}
		}
		slices.Sort(declared)
		if diff := cmp.Diff(installed, declared); diff != "" {
			t.Errorf("%s (-installed +declared):\n%s", class, diff)
		}
	}
}
