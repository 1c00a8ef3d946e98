package scripting

import (
	"context"
	"testing"
	"time"
)

// TestPrototypeGuard_cycles: the engine does not detect cycles through a proxy or an object of the
// host, and overflows the stack of the process when it looks up a member.
func TestPrototypeGuard_cycles(t *testing.T) {
	const itself = "throws TypeError: an object cannot be its own prototype"
	for _, c := range []struct{ code, want string }{
		{"const x = Object.create(crm)\nObject.setPrototypeOf(crm, x)\ncrm['fo' + 'o']", itself},
		{"const x = Object.create(tools)\nObject.setPrototypeOf(tools, x)\ntools['fo' + 'o']", itself},
		{"const x = Object.create(crm)\nReflect.setPrototypeOf(crm, x)", "false"},
		{"const p = new Proxy({}, {})\nObject.setPrototypeOf(p, Object.create(p))\np.foo", itself},
		{"const t = {}\nconst p = new Proxy(t, {})\nt.__proto__ = Object.create(p)\np.foo", itself},
		{"const t = {}\nlet p = t\nfor (let i = 0; i < 300; i++) p = new Proxy(p, {})\nObject.setPrototypeOf(t, Object.create(p))\np.foo", itself},
		{"const t = {}\nlet p = t\nfor (let i = 0; i < 20000; i++) p = new Proxy(p, {})\nObject.setPrototypeOf(t, Object.create(p))\np.foo", "throws TypeError: the chain of prototypes is too long"},
		{"const p = new Proxy({}, {})\nconst set = Object['setProto' + 'typeOf']\nset(p, Object.create(p))\np.foo", itself},
		{"const p = new Proxy({}, {})\nconst { setPrototypeOf: set } = Object\nset(p, Object.create(p))\np.foo", itself},
		{"const p = new Proxy({}, {})\nconst set = Object.getOwnPropertyDescriptor(Object.prototype, '__proto__').set\nset.call(p, Object.create(p))\np.foo", itself},

		// Valid uses still work.
		{"const o = Object.setPrototypeOf({}, { a: 1 })\no.a", "1"},
		{"const o = {}\no.__proto__ = { a: 2 }\no.__proto__.a + o.a", "4"},
		{"const o = {}\no.__proto__ = 5\nObject.getPrototypeOf(o) === Object.prototype", "true"},
		{"Object.setPrototypeOf(5, null)", "5"},
		{"Object.getPrototypeOf(Reflect.setPrototypeOf(new Proxy({}, {}), null)) === Boolean.prototype", "true"},
		{"class A { a() { return 3 } }\nconst o = new Proxy({}, {})\nObject.setPrototypeOf(o, A.prototype)\no.a()", "3"},
		{"Object.setPrototypeOf(crm, 1)", "throws TypeError: a prototype is an object or null"},

		// However the setter is reached, and whatever else has the name of the object.
		{"const O = ({}).constructor, t = {}, p = new Proxy(t, {}), o = O.create(p)\nO.assign(t, O.fromEntries([['__pro' + 'to__', o]]))\np.foo", itself},
		{"const O = ({}).constructor, x = O.create(crm)\nconst [, set] = O.entries(O.getOwnPropertyDescriptors(O)).find(([name]) => name.startsWith('setPro'))\nset.value(crm, x)\ncrm['fo' + 'o']", itself},
		{"const f = (tools, Proxy) => 0\nconst x = Object.create(tools)\nObject.setPrototypeOf(tools, x)", itself},
		{"const f = (crm, Proxy) => 0\nconst x = Object.create(crm)\nObject.setPrototypeOf(crm, x)", itself},
		{"const f = (Proxy) => 0\nconst p = new Proxy({}, {})\nObject.setPrototypeOf(p, Object.create(p))", itself},
		{"const f = (globalThis) => 0\nconst p = new globalThis['Pro' + 'xy']({}, {})\nObject.setPrototypeOf(p, Object.create(p))", itself},
		{"const { Proxy: Q } = { Proxy }\nconst p = new Q({}, {})\nObject.setPrototypeOf(p, Object.create(p))", itself},
		{"const t = {}, x = {}\nconst p = new Proxy(t, { get setPrototypeOf() { Object.setPrototypeOf(x, p) } })\nObject.setPrototypeOf(p, x)\np.foo", itself},

		// Reflect reports failures, and throws the exceptions of traps.
		{"Reflect.setPrototypeOf(new Proxy({}, { setPrototypeOf() { throw new RangeError('no') } }), null)", "throws RangeError: no"},
		{"const { proxy, revoke } = Proxy.revocable({}, {})\nrevoke()\nReflect.setPrototypeOf(proxy, null)", "throws TypeError: Proxy already revoked"},
		{"Reflect.setPrototypeOf(new Proxy({}, { setPrototypeOf: () => false }), null)", "false"},
		{"const o = Object.freeze({})\nReflect.setPrototypeOf(o, crm)", "false"},
		{"const o = Object.freeze({})\nObject.setPrototypeOf(o, crm)", "throws TypeError: this object takes no other prototype"},
		{"Reflect.setPrototypeOf(crm, null)", "true"},
	} {
		ran := runCode(t, c.code)
		if ran.Ended != c.want && ran.Ended != "result "+c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, ran.Ended, c.want)
		}
	}
}

// TestPrototypeGuard_shadowedName: only a name that is never read disables the guard.
func TestPrototypeGuard_shadowedName(t *testing.T) {
	for _, c := range []struct {
		body                        string
		everything, proxies, hosted bool
	}{
		{"return 1", false, false, false},
		{"return 'Proxy, tools and globalThis'", false, false, false},
		{"const f = (tools) => 0; return tools", false, false, true},
		{"const f = (Proxy) => 0; return Proxy", false, true, false},
		{"const f = (globalThis) => 0; return { globalThis }", true, true, true},
	} {
		src := tool(c.body)
		src.Objects = append(src.Objects, Object{Kind: "tools", Name: "search"})
		p := compiled(t, src)
		if p.compiled.UsesGlobalThis != c.everything || p.compiled.Proxies != c.proxies || p.compiled.Hosted != c.hosted {
			t.Errorf("%s: everything %v, proxies %v, hosted %v", c.body, p.compiled.UsesGlobalThis, p.compiled.Proxies, p.compiled.Hosted)
		}
	}
}

// TestProxyGuard_recursion: no instruction of the script runs between, and the stack of the process
// would overflow.
func TestProxyGuard_recursion(t *testing.T) {
	const without = "throws RangeError: proxies call each other without end"
	for _, code := range []string{
		"const h = {}, p = new Proxy({}, h)\nh.get = Reflect.get.bind(null, p, 'x')\np.foo",
		"const h = {}, p = new Proxy({}, h)\nh.getPrototypeOf = Reflect.getPrototypeOf.bind(null, p)\np instanceof Array",
		"const h = {}, p = new Proxy({}, h)\nObject.setPrototypeOf(h, p)\np.foo",
		"const h = {}, { proxy } = Proxy.revocable({}, h)\nObject.setPrototypeOf(h, proxy)\nproxy.foo",
		"const h = {}, f = new Proxy(() => 0, h)\nh.apply = f\nf()",
	} {
		if got := runCode(t, code).Ended; got != without {
			t.Errorf("%s:\ngot  %s\nwant %s", code, got, without)
		}
	}
}

// TestProxyGuard_interrupt: the trap is native, and returns its proxy.
func TestProxyGuard_interrupt(t *testing.T) {
	for _, look := range []string{
		"Array.prototype.isPrototypeOf(p)", "p instanceof Array", "Array[Symbol.hasInstance](p)", "Array.bind()[Symbol.hasInstance](p)", "for (const k in p);",
	} {
		for _, program := range []string{look, "try { " + look + " } catch {}\nfor (;;);", "await null\n" + look} {
			c := call(compiled(t, codeOf("const h = {}, p = new Proxy({}, h)\nh.getPrototypeOf = Object.bind(null, p)\n"+program)), ``)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			out, err := Inline().Run(ctx, c, toolHost())
			cancel()
			if err != nil || out.Failure == nil || out.Failure.Kind != Timeout {
				t.Errorf("%s: %+v, %v; want a timeout", program, out.Failure, err)
			}
		}
	}
}

// TestProxyGuard_semantics: scripts must not notice the guard.
func TestProxyGuard_semantics(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"new Proxy({}, { get: (t, name, self) => name + (self === undefined) }).foo", `"foofalse"`},
		{"const h = { n: 3, get() { return this === h && this.n } }\nnew Proxy({}, h).foo", "3"},
		{"class H { #n = 4; get() { return this.#n } }\nnew Proxy({}, new H()).foo", "4"},
		{"const h = {}, p = new Proxy({ a: 1 }, h), before = p.a\nh.get = () => 2\nconst then = p.a\ndelete h.get\nreturn [before, then, p.a]", "[1,2,1]"},
		{"const h = new Proxy({}, { get: (t, trap) => trap === 'get' ? () => 5 : undefined })\nnew Proxy({}, h).foo", "5"},
		{"const seen = []\nconst log = new Proxy({}, { get: (t, trap) => (...args) => (seen.push(trap), Reflect[trap](...args)) })\nconst p = new Proxy(class A {}, log)\np.a = 1\n'a' in p\ndelete p.a\nObject.keys(p)\nObject.isExtensible(p)\nObject.getPrototypeOf(p)\nObject.setPrototypeOf(p, null)\nnew p()\nObject.preventExtensions(p)\nreturn [...new Set(seen)].sort().join(' ')",
			`"construct defineProperty deleteProperty get getOwnPropertyDescriptor getPrototypeOf has isExtensible ownKeys preventExtensions set setPrototypeOf"`},
		{"const p = new Proxy((a, b) => a + b, { apply: (f, self, args) => f(...args) * 10 })\nreturn [p(1, 2), p.call(null, 3, 4), typeof p]", `[30,70,"function"]`},
		{"const p = new Proxy({}, { set() { return false } })\np.a = 1", "throws TypeError: 'set' on proxy: trap returned falsish for property 'a'"},
		{"new Proxy({}, { get: 5 }).foo", "throws TypeError: 5 is not a method"},
		{"new Proxy({}, { get() { throw new RangeError('no') } }).foo", "throws RangeError: no"},
		{"const p = new Proxy([1, 2, 3], {})\nreturn [Array.isArray(p), p instanceof Array, p.length, p.map((n) => n * 2), JSON.stringify(p)]", `[true,true,3,[2,4,6],"[1,2,3]"]`},
		{"const keys = []\nfor (const k in new Proxy({ a: 1, b: 2 }, {})) keys.push(k)\nkeys", `["a","b"]`},
		{"new Proxy({ a: 1 }, { ownKeys: () => ['a'] })", `{"a":1}`},
		{"Object.getPrototypeOf(new Proxy({}, { getPrototypeOf: () => Array.prototype })) === Array.prototype", "true"},
		{"const { proxy, revoke } = Proxy.revocable({ a: 1 }, {})\nconst a = proxy.a\nrevoke()\ntry { proxy.a } catch (e) { return [a, e.name] }", `[1,"TypeError"]`},
		{"return [typeof Proxy, Proxy.name, Proxy.length, 'prototype' in Proxy, new Proxy({}, {}).constructor === Object]", `["function","Proxy",2,false,true]`},
		{"const make = Proxy\nmake({}, {})", "throws TypeError: Constructor Proxy requires 'new'"},
		{"new Proxy({}, 5)", "throws TypeError: Cannot create proxy with a non-object as target or handler"},
		{"Reflect.construct(Proxy, [{ a: 6 }, {}]).a", "6"},
		{"const p = new Proxy({}, { get(t, n) { return n in t ? t[n] : Reflect.get(Object.create({ z: 7 }), n) } })\np.z", "7"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want && got != "result "+c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}
