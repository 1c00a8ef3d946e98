package scripting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Misuses of promises that can be detected before a call are reported then.
func TestParallel_missingAwait(t *testing.T) {
	const all = "parallel([search_web({}), crm.list()])"
	for _, c := range []struct{ code, want string }{
		{"const [a] = " + all, "1:13: error: a promise is not a list; did you forget await? write await parallel([…])"},
		{"let a\n;[a] = " + all, "2:8: error: a promise is not a list; did you forget await? write await parallel([…])"},
		{"for (const x of " + all + ") print(x)", "1:17: error: a promise is not a list; did you forget await? write await parallel([…])"},
		{all + ".length", `1:40: error: a promise has no member "length"; did you forget await? write (await parallel([…])).length`},
		{all + ".map((x) => x)", `1:40: error: a promise has no member "map"; did you forget await? write (await parallel([…])).map`},
		{"const r = " + all + "\nr[0]", "2:1: error: a promise has no elements; did you forget await? write await parallel([…])"},
		{"const { length } = " + all, `1:9: error: a promise has no member "length"; did you forget await? write { length } = await parallel([…])`},
		{"let length\n;({ length } = search_web({}))", `2:5: error: a promise has no member "length"; did you forget await? write { length } = await search_web({ … })`},
		{"JSON.stringify(" + all + ")", "1:16: error: as JSON a promise is {}; did you forget await? write await parallel([…])"},
		{"JSON.stringify(search_web({}), null, 2)", "1:16: error: as JSON a promise is {}; did you forget await? write await search_web({ … })"},
		{`"found " + crm.list()`, "1:12: error: as text a promise is [object Promise]; did you forget await? write await crm.NAME({ … })"},
		{"print('it is', search_web({}))", "1:16: error: a printed promise does not show its value; did you forget await? write await search_web({ … })"},
		{`tools["any-name"]({}).title`, `1:23: error: a promise has no member "title"; did you forget await? write (await tools.NAME({ … })).title`},
		{`search_web({})["length"]`, `1:16: error: a promise has no member "length"; did you forget await? write (await search_web({ … })).length`},
	} {
		ran := runCode(t, c.code)
		if want := "refused: " + c.want; ran.Ended != want || ran.Calls != nil {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, ran.Ended, want)
		}
	}
}

// Other misuses throw where they happen.
func TestPromiseGuard_misuse(t *testing.T) {
	const write = "; write await before the call that returns it"
	for _, c := range []struct{ code, want string }{
		{"[1, 2].map(async (n) => n).join()", "as text a promise is [object Promise]" + write},
		{"const f = async () => 5;\n`${f()}`", "as text a promise is [object Promise]" + write},
		{"const f = async () => 5\nf().toString()", `a promise has no member "toString"` + write},
		{"const f = async () => [5]\nfor (const x of f()) print(x)", "a promise is not a list" + write},
		{"const f = async () => [5]\nconst [a] = f()", "a promise is not a list" + write},
		{"const f = async () => [5]\nconst r = f()\nr[0]", "a promise is not a list" + write},
		{"const f = async () => [5]\nlet r = f()\nfor (let i = 0; i < r.length; i++) print(r[i])", `a promise has no member "length"` + write},
		{"const f = async () => [5]\nf().map((n) => n)", `a promise has no member "map"` + write},
		{"const f = async () => 5\nJSON.stringify({ f: f() })", "there is a promise in it: write await before the call, or await Promise.all([…]) for several"},
	} {
		if got := runCode(t, c.code).Ended; got != "throws TypeError: "+c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.code, got, c.want)
		}
	}
}

func TestPromiseGuard_validUse(t *testing.T) {
	const all = "parallel([search_web({}), search_web({})])"
	for _, c := range []struct{ code, want string }{
		{"const [a, b] = await " + all + "\na.length + b.length", "10"},
		{"(await " + all + ").length", "2"},
		{"const r = " + all + "\nconst [a] = await r\na.length", "5"},
		{"let r = " + all + "\nr = await r\nr[0].length", "5"},
		{all + ".then((r) => r.length)", "2"},
		{all + ".then(([a]) => a.length).finally(() => {})", "5"},
		{"(await Promise.all([1, 2].map(async (n) => n))).join()", `"1,2"`},
		{"const f = async () => [5]\nf()", "[5]"},
		{"const p = Promise.resolve(1)\np.done = true\np.length = 3;\n[p.done, p.length, typeof p.other, 'length' in p]", `[true,3,"undefined",true]`},
		{"const p = search_web({})\np.done = false\np.done", "false"},
		{"const p = Promise.resolve(1);\n[p == null, p instanceof Promise, typeof p.then, Object.prototype.toString.call(p)]", `[false,true,"function","[object Promise]"]`},
		{"const print = async (p) => (await p).length\nprint(search_web({}))", "5"},
		{"JSON.stringify({ a: await search_web({}) }).length > 0", "true"},
		{"console.log(Promise.resolve(1))", "nothing"},
		{"let n = 0\nfor await (const x of [search_web({}), Promise.resolve([1])]) n += x.length\nn", "6"},
		{"let n: number = 0\nfor await (const x of [search_web({}), Promise.resolve([1])]) n += x.length\nn as number", "6"},
		{`const running = new Set(), done = []
for (const n of [1, 2, 3]) {
  const p = search_web({ n }).then((r) => { done.push(r.length); running.delete(p) })
  running.add(p)
  if (running.size >= 2) await Promise.race(running)
}
await Promise.allSettled([...running])
done`, "[5,5,5]"},
		{"const p = Promise.resolve(1), m = new Map([[p, 2]]);\n[m.get(p), [p].concat(p).length, [[p]].flat().length, [p].includes(p), { ...p }]", "[2,2,1,true,{}]"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
	if diff := cmp.Diff("Promise { <fulfilled> }\n", runCode(t, "console.log(Promise.resolve(1))").Stdout); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPromiseGuard_notInScripts(t *testing.T) {
	if got := shown(runScript(t, "const f = async () => 5; return JSON.stringify(f()) + f()", `{}`)); got != `"{}[object Promise]"` {
		t.Errorf("got %s", got)
	}
}
