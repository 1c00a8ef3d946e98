package scripting

import "testing"

func TestTextThatGrowsInALoopIsTold(t *testing.T) {
	for _, body := range []string{
		`let s = ""; for (const x of input.list) s += x; return s`,
		`let s = ''; for (let i = 0; i < input.n; i++) { if (i > 0) s += ","; s += i } return s`,
		"let s = `#`; let i = 0; while (i++ < 5000) { s = s + '-' + i } return s",
		`let s = ""; do { s += "x" } while (s.length < input.n); return s`,
		`let s = ""; function f(list) { for (const x of list) { s += x } } f(input.list); return s`,
		`let s = ""; input.list.forEach((x) => { s += x }); return s`,
		`let s = ""; input.list.forEach(function (x) { if (x) s = s + x }); return s`,
		`async function f() { let s = ""; for (const x of await input.list) { for (const y of ["a", "b"]) s += y + x } return s } return f()`,
	} {
		p, list := Compile(tool(body))
		if p == nil || len(list) != 1 || list[0].Code != "script-slow" || list[0].Summary != "s grows in a loop, which copies all of it each time" {
			t.Errorf("%s: %v", body, list)
		}
	}
	for _, body := range []string{
		`let n = 0; for (const x of input.list) n += x; return n`,
		`for (const x of input.list) { let s = ""; s += x; log.info(s) }`,
		`let s = ""; for (let i = 0; i < 10; i++) s += i; return s`,
		`let s = String(input.n); while (s.length < 8) s = "0" + s; return s`,
		`let s = "0"; while (s.length < 8) s += "0"; return s`,
		`let s = ""; for (const x of ["a", "b"]) s += x; return s`,
		`let s = ""; ["a", "b"].forEach((x) => { s += x }); return s`,
		`input.list.forEach((x) => { let s = ""; s += x; log.info(s) })`,
		`let s = ""; for (const k in input) s += k; return s`,
		`let s = ""; for (const x of input.list) s = x + 1; return s`,
		`let s = ""; s += "a"; for (const x of input.list) log.info(x); s += "b"; return s`,
		`let s = ""; for (const x of input.list) later(() => { s += x }); function later(f) { f() } return s`,
		`for (const x of input.list) { let s = 1; s += x } { let s = ""; s += "a" }`,
	} {
		if _, list := Compile(tool(body)); len(list) > 0 {
			t.Errorf("%s: %v", body, list)
		}
	}
}
