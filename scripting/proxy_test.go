package scripting

import (
	"context"
	"testing"
	"time"
)

// TestProxiesDoNotAskThemselvesWithoutEnd: no instruction of the script is between, and the
// stack of the process overflowed.
func TestProxiesDoNotAskThemselvesWithoutEnd(t *testing.T) {
	const without = "throws RangeError: proxies ask each other without end"
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

// TestLoopsOverWhatTrapsReturnEndWithTheCall: the trap is native, and answers with its proxy.
func TestLoopsOverWhatTrapsReturnEndWithTheCall(t *testing.T) {
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

// TestProxiesDoWhatTheLanguageSays has a handler between that no script may notice.
func TestProxiesDoWhatTheLanguageSays(t *testing.T) {
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
