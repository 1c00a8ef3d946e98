package scripting

import "testing"

// TestNoObjectIsPutBehindItself: the engine does not find that out where a proxy or an object
// of the host is between, and overflows the stack of the process when it looks for a member.
func TestNoObjectIsPutBehindItself(t *testing.T) {
	const itself = "throws TypeError: an object cannot be behind itself"
	for _, c := range []struct{ code, want string }{
		{"const x = Object.create(crm)\nObject.setPrototypeOf(crm, x)\ncrm['fo' + 'o']", itself},
		{"const x = Object.create(tools)\nObject.setPrototypeOf(tools, x)\ntools['fo' + 'o']", itself},
		{"const x = Object.create(crm)\nReflect.setPrototypeOf(crm, x)", "false"},
		{"const p = new Proxy({}, {})\nObject.setPrototypeOf(p, Object.create(p))\np.foo", itself},
		{"const t = {}\nconst p = new Proxy(t, {})\nt.__proto__ = Object.create(p)\np.foo", itself},
		{"const t = {}\nlet p = t\nfor (let i = 0; i < 300; i++) p = new Proxy(p, {})\nObject.setPrototypeOf(t, Object.create(p))\np.foo", itself},
		{"const t = {}\nlet p = t\nfor (let i = 0; i < 20000; i++) p = new Proxy(p, {})\nObject.setPrototypeOf(t, Object.create(p))\np.foo", "throws TypeError: too many objects are behind this one"},
		{"const p = new Proxy({}, {})\nconst set = Object['setProto' + 'typeOf']\nset(p, Object.create(p))\np.foo", itself},
		{"const p = new Proxy({}, {})\nconst { setPrototypeOf: set } = Object\nset(p, Object.create(p))\np.foo", itself},
		{"const p = new Proxy({}, {})\nconst set = Object.getOwnPropertyDescriptor(Object.prototype, '__proto__').set\nset.call(p, Object.create(p))\np.foo", itself},

		// What the language lets everybody do goes on.
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

		// Reflect tells what cannot be, and throws what traps throw.
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

// TestABodyIsGuardedWhereANameIsBoundElsewhere is about what keeps the guard away: a name that
// is never read.
func TestABodyIsGuardedWhereANameIsBoundElsewhere(t *testing.T) {
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
		src.Objects = append(src.Objects, Object{"tools", "search"})
		p := compiled(t, src)
		if p.everything != c.everything || p.proxies != c.proxies || p.hosted != c.hosted {
			t.Errorf("%s: everything %v, proxies %v, hosted %v", c.body, p.everything, p.proxies, p.hosted)
		}
	}
}
