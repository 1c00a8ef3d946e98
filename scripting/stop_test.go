package scripting

import (
	"context"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// stopping is an array of 100,000 elements, made in Go, whose tenth ends the
// call. It counts how many are read: no instruction of a script runs between
// them, so that nothing but the reader can notice the end.
type stopping struct {
	r    *run
	read int
}

func (s *stopping) Len() int                 { return 100_000 }
func (s *stopping) Set(int, goja.Value) bool { return false }
func (s *stopping) SetLen(int) bool          { return false }
func (s *stopping) Get(int) goja.Value {
	if s.read++; s.read == 10 {
		s.r.abort(limitFailure("test", "over"))
	}
	return s.r.rt.ToValue("x")
}

// openRun returns a run of which every global can be made.
func openRun(t *testing.T) *run {
	t.Helper()
	return newRun(t.Context(), call(compiled(t, tool("return globalThis[input]")), `{}`), &fakeHost{})
}

func TestNativeLoopsOverArraysEndWithTheCall(t *testing.T) {
	for name, loop := range map[string]func(r *run, array goja.Value){
		"URLSearchParams": func(r *run, a goja.Value) { r.pairs(a) },
		"JSON.stringify":  func(r *run, a goja.Value) { r.stringify(goja.FunctionCall{Arguments: []goja.Value{a}}) },
		"JSON.stringify with a list of names": func(r *run, a goja.Value) {
			r.stringify(goja.FunctionCall{Arguments: []goja.Value{r.rt.NewObject(), a}})
		},
		"structuredClone": func(r *run, a goja.Value) { r.structuredClone(goja.FunctionCall{Arguments: []goja.Value{a}}) },
		"log.info":        func(r *run, a goja.Value) { r.payload(a) },
		"console.log":     func(r *run, a goja.Value) { r.line([]goja.Value{a, a}) },
		"headers":         func(r *run, a goja.Value) { r.readHeaders(&httpRequest{}, a) },
		"a request":       func(r *run, a goja.Value) { r.setJSON(&httpRequest{}, a) },
		"content":         func(r *run, a goja.Value) { r.block("text", a) },
		"a result":        func(r *run, a goja.Value) { _, _ = r.json(a) },
	} {
		t.Run(name, func(t *testing.T) {
			r := openRun(t)
			array := &stopping{r: r}
			r.rt.Try(func() { loop(r, r.rt.NewDynamicArray(array)) })
			if array.read < 10 || array.read > 12 {
				t.Errorf("%d elements were read of a call that was over after 10", array.read)
			}
		})
	}
}

func TestNativeLoopsOverTextEndWithTheCall(t *testing.T) {
	for _, c := range []struct{ class, made, method string }{
		{"URLSearchParams", "a=1&b=2", "get"}, {"URLSearchParams", "a=1&b=2", "getAll"}, {"URLSearchParams", "a=1&b=2", "has"},
		{"URLSearchParams", "a=1&b=2", "toString"}, {"URLSearchParams", "a=1&b=2", "delete"}, {"URLSearchParams", "a=1&b=2", "set"},
		{"URLSearchParams", "a=1&b=2", "sort"}, {"URLSearchParams", "a=1&b=2", "keys"},
		{"URLSearchParams", "a=1&b=2", "values"}, {"URLSearchParams", "a=1&b=2", "entries"}, {"URLSearchParams", "a=1&b=2", "forEach"},
		{"JSON", "", "parse"}, {"crypto", "", "digest"},
	} {
		t.Run(c.class+" "+c.method, func(t *testing.T) {
			for _, over := range []bool{false, true} {
				r := openRun(t)
				call := methodOf(t, r, c.class, c.made, c.method)
				if over {
					r.abort(limitFailure("test", "over"))
				}
				thrown := r.rt.Try(func() { call() })
				if got := thrown != nil && strings.Contains(thrown.Error(), errStopped.Error()); got != over {
					t.Errorf("over: %v, but it threw %v", over, thrown)
				}
			}
		})
	}
}

// methodOf returns a call of a native method, on an object made of text.
func methodOf(t *testing.T, r *run, class, made, method string) func() {
	t.Helper()
	arguments := []goja.Value{r.rt.ToValue("1"), r.rt.ToValue("1")}
	switch method {
	case "forEach":
		arguments[0] = r.function("", func(goja.FunctionCall) goja.Value { return goja.Undefined() })
	case "digest":
		data := goja.FunctionCall{Arguments: []goja.Value{r.rt.ToValue("SHA-1"), r.newBytes(make([]byte, 8))}}
		return func() { r.digest(data) }
	}
	this := r.needed(class)
	if made != "" {
		var err error
		if this, err = r.rt.New(this, r.rt.ToValue(made)); err != nil {
			t.Fatal(err)
		}
	}
	f := this.Get(method).Export().(func(goja.FunctionCall) goja.Value)
	return func() { f(goja.FunctionCall{This: this, Arguments: arguments}) }
}

func TestTextThatNothingInterruptsIsBounded(t *testing.T) {
	if raceDetector {
		t.Skip("texts of 16 MiB take half a minute under the race detector, and one goroutine")
	}
	for _, expression := range []string{
		`btoa(long)`, `atob(long)`, `new TextEncoder().encode(long)`, `new TextDecoder().decode(new Uint8Array(long.length))`,
		`new URLSearchParams(long)`, `new URL(long)`, `new URL("http://a/").search = long`,
	} {
		body := `const long = "x".repeat((16 << 20) + 1); try { return ` + expression + ` } catch (e) { return e.name }`
		if got := shown(runBody(t, body, `{}`)); got != `"RangeError"` {
			t.Errorf("%s: %.100s", expression, got)
		}
	}
}

func TestARunIsInterruptedOnceItsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{ctx: ctx, rt: openRun(t).rt}
	if !r.Look() || r.ended.Load() {
		t.Error("a run was interrupted before its context ended")
	}
	cancel()
	if r.Look() || !r.ended.Load() {
		t.Error("a run was not interrupted")
	}
}

// The budgets are allocations, which are steady where times are not.
func TestCallsStayWithinTheirBudget(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates too")
	}
	for _, c := range []struct {
		name, body string
		budget     float64
	}{
		{"a small body", smallBody, 90},
		{"a body that mentions nothing", `return 1`, 60},
		{"an async body", `await null; return 1`, 290},
		{"one request", asyncBody, 370},
		{"one log message", `log.info("x"); return 1`, 100},
	} {
		call := call(compiled(t, tool(c.body)), `{"a":2,"b":3}`)
		host := &staticHost{[]byte(`{"status":200,"headers":{},"body":"{}"}`)}
		got := testing.AllocsPerRun(200, func() {
			if out, err := Inline().Run(context.Background(), call, host); err != nil || out.Failure != nil {
				t.Fatal(err, out.Failure)
			}
		})
		if got > c.budget {
			t.Errorf("%s: %.0f allocations, more than %.0f", c.name, got, c.budget)
		}
	}
}
