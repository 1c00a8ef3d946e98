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
		{"Object.setPrototypeOf({}, 1)", "throws TypeError: a prototype is an object or null"},
	} {
		ran := runCode(t, c.code)
		if ran.Ended != c.want && ran.Ended != "result "+c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, ran.Ended, c.want)
		}
	}
}
