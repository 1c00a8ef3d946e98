package scripting

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/process/cputest"
)

// hung is a host that responds only when its context ends.
func hung(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRun_deadline(t *testing.T) {
	for _, c := range []struct{ name, body string }{
		{"loops", `for (;;);`},
		{"loops in a promise", `await null; for (;;);`},
		{"loops in a timer", `setTimeout(() => { for (;;); }, 1); await new Promise(r => setTimeout(r, 1000))`},
		{"loops in finally", `try { for (;;); } finally { for (;;); }`},
		{"loops in a getter of its result", `return { get a() { for (;;); } }`},
		{"loops in toJSON", `return { toJSON() { for (;;); } }`},
		{"loops in a message", `throw { get message() { for (;;); } }`},
		{"loops in microtasks", `const again = () => Promise.resolve().then(again); return again()`},
		{"waits for its host", `await http.crm.get("x")`},
		{"does not wait for its host", `http.crm.get("x"); return 1`},
		{"waits for a timer", `await new Promise(r => setTimeout(r, 1e9))`},
		{"never stops an interval", `setInterval(() => {}, 1e6); return 1`},
		{"writes JSON without end", `let d = []; for (let i = 0; i < 60; i++) d = [d, d, {}]; const e = []; e.length = 4294967295; for (;;) JSON.stringify(e)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := compiled(t, tool(c.body))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			out, err := Inline().Run(ctx, call(p, `{}`), &fakeHost{answer: hung})
			if err != nil || out.Failure == nil || out.Failure.Kind != Timeout {
				t.Errorf("got %+v %v", out, err)
			}
		})
	}
}

func TestRun_canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		out, err := Inline().Run(ctx, call(compiled(t, tool(`await http.crm.get("x")`)), `{}`), &fakeHost{answer: hung})
		if err != nil || out.Failure == nil || out.Failure.Kind != Canceled {
			t.Errorf("got %+v %v", out, err)
		}
		out, err = Inline().Run(ctx, call(compiled(t, tool(`log.info("never")`)), `{}`), &fakeHost{answer: hung})
		if err != nil || out.Failure == nil || out.Failure.Kind != Canceled {
			t.Errorf("a call that starts canceled: %+v %v", out, err)
		}
	})
}

func TestRun_waitsForHostCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned := false
		host := &fakeHost{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			returned = true
			return nil, ctx.Err()
		}}
		out := shown(runWith(t, call(compiled(t, tool(`http.crm.get("x"); throw new Error("early")`)), `{}`), host))
		if out != "failure Thrown: early" || !returned {
			t.Errorf("got %s, host call returned: %v", out, returned)
		}
	})
}

func TestRun_unawaitedPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ body, want string }{
			{`const seen = []; http.crm.get("5").then(r => seen.push(r.text())); return seen`, `["5"]`},
			{`const seen = []; setTimeout(() => seen.push(1), 50); return seen`, `[1]`},
			{`http.crm.get("x").then(() => { throw new Error("late") }); return 1`, `failure Thrown: late`},
			{`(async () => { await null; throw new Error("nobody looks") })(); return 1`, `failure Thrown: nobody looks`},
			{`const p = Promise.reject(new Error("handled later")); setTimeout(() => p.catch(() => {}), 5); return 1`, `1`},
			{`return new Promise(() => {})`, `failure Thrown: the script waits for a promise that cannot settle any more`},
		} {
			if got := shown(runWith(t, call(compiled(t, tool(c.body)), `{}`), &fakeHost{answer: echo})); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.body, got, c.want)
			}
		}
	})
}

func TestTimers_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `const seen = [];
			const push = (x) => seen.push(x);
			setTimeout(push, 20, "c"); setTimeout(push, 10, "a"); setTimeout(push, 10, "b");
			const gone = setTimeout(push, 5, "gone"); clearTimeout(gone); clearTimeout(undefined); clearTimeout(99);
			let n = 0; const id = setInterval(() => { push(++n); if (n === 2) clearInterval(id) }, 12);
			setTimeout(push, NaN, "now"); setTimeout(push, -5, "past");
			queueMicrotask(() => push("micro"));
			return seen`
		want := `["micro","now","past","a","b",1,"c",2]`
		if got := shown(runWith(t, call(compiled(t, tool(body)), `{}`), &fakeHost{})); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestRun_hostPanic(t *testing.T) {
	panics := func(context.Context, string, []byte) ([]byte, error) { panic(errors.New("bug")) }
	for _, body := range []string{`await http.crm.get("x")`, `log.info("x")`, `try { progress(1) } catch {} return 1`} {
		out := runWith(t, call(compiled(t, tool(body)), `{}`), &fakeHost{answer: panics})
		if out.Failure == nil || out.Failure.Kind != HostPanic || strings.Contains(out.Failure.Message, "bug") {
			t.Errorf("%s: got %s", body, shown(out))
		}
	}
}

func TestHostCalls_numbers(t *testing.T) {
	var numbers []int
	body := `log.info("a"); const p = http.crm.get("x"); await p; console.log("b"); progress(1)`
	if out := runWith(t, call(compiled(t, tool(body)), `{}`), numbering{&numbers}); out.Failure != nil {
		t.Fatal(shown(out))
	}
	for i, n := range numbers {
		if n != i+1 {
			t.Fatalf("numbers %v", numbers)
		}
	}
}

// numbering is a host that records the numbers of its calls.
type numbering struct{ numbers *[]int }

func (h numbering) Do(_ context.Context, seq int, _ string, _ []byte) ([]byte, error) {
	*h.numbers = append(*h.numbers, seq)
	return []byte(`{"status":200,"headers":{}}`), nil
}

func TestRun_concurrentCalls(t *testing.T) {
	p := compiled(t, tool(`const r = await http.crm.get(String(input.n)); return Number(r.text()) + vars.nested.list[0]`))
	done := make(chan string)
	for n := range 20 {
		go func() {
			out, err := Inline().Run(context.Background(), call(p, `{"n":`+string(rune('0'+n%10))+`}`), &fakeHost{answer: echo})
			if err != nil {
				done <- err.Error()
				return
			}
			done <- shown(out)
		}()
	}
	for range 20 {
		if got := <-done; len(got) > 2 {
			t.Errorf("got %s", got)
		}
	}
}

// stopping is a native array of 100,000 elements; reading the tenth ends the call. It counts reads:
// no instruction of a script runs between them, so that only the reader can notice the end.
type stopping struct {
	r    *execution
	read int
}

func (s *stopping) Len() int                 { return 100_000 }
func (s *stopping) Set(int, goja.Value) bool { return false }
func (s *stopping) SetLen(int) bool          { return false }
func (s *stopping) Get(int) goja.Value {
	if s.read++; s.read == 10 {
		s.r.abort(limitFailure("test", "over"))
	}
	return s.r.Runtime.ToValue("x")
}

// newOpenExecution returns an execution in which every global can be created.
func newOpenExecution(t *testing.T) *execution {
	t.Helper()
	return newExecution(t.Context(), call(compiled(t, tool("return globalThis[input]")), `{}`), &fakeHost{})
}

func TestInterrupt_arrayLoops(t *testing.T) {
	for name, loop := range map[string]func(r *execution, array goja.Value){
		"URLSearchParams": func(r *execution, a goja.Value) { _, _ = r.Runtime.New(r.Needed("URLSearchParams"), a) },
		"JSON.stringify":  func(r *execution, a goja.Value) { callNative(r.Needed("JSON").Get("stringify"), a) },
		"JSON.stringify with a list of names": func(r *execution, a goja.Value) {
			callNative(r.Needed("JSON").Get("stringify"), r.Runtime.NewObject(), a)
		},
		"structuredClone": func(r *execution, a goja.Value) { callNative(r.Needed("structuredClone"), a) },
		"log.info":        func(r *execution, a goja.Value) { r.encodePayload(a) },
		"console.log":     func(r *execution, a goja.Value) { r.consoleLine([]goja.Value{a, a}) },
		"headers":         func(r *execution, a goja.Value) { r.readHeaders(&httpRequest{}, a) },
		"a request":       func(r *execution, a goja.Value) { r.setJSON(&httpRequest{}, a) },
		"content":         func(r *execution, a goja.Value) { r.block("text", a) },
		"a result":        func(r *execution, a goja.Value) { _, _ = r.JSON(a) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newOpenExecution(t)
			array := &stopping{r: r}
			r.Runtime.Try(func() { loop(r, r.Runtime.NewDynamicArray(array)) })
			if array.read < 10 || array.read > 12 {
				t.Errorf("%d elements were read although the call was over after 10", array.read)
			}
		})
	}
}

func TestInterrupt_textLoops(t *testing.T) {
	for _, c := range []struct{ class, made, method string }{
		{"URLSearchParams", "a=1&b=2", "get"}, {"URLSearchParams", "a=1&b=2", "getAll"}, {"URLSearchParams", "a=1&b=2", "has"},
		{"URLSearchParams", "a=1&b=2", "toString"}, {"URLSearchParams", "a=1&b=2", "delete"}, {"URLSearchParams", "a=1&b=2", "set"},
		{"URLSearchParams", "a=1&b=2", "sort"}, {"URLSearchParams", "a=1&b=2", "keys"},
		{"URLSearchParams", "a=1&b=2", "values"}, {"URLSearchParams", "a=1&b=2", "entries"}, {"URLSearchParams", "a=1&b=2", "forEach"},
		{"JSON", "", "parse"}, {"crypto", "", "digest"},
	} {
		t.Run(c.class+" "+c.method, func(t *testing.T) {
			for _, over := range []bool{false, true} {
				r := newOpenExecution(t)
				call := methodOf(t, r, c.class, c.made, c.method)
				if over {
					r.abort(limitFailure("test", "over"))
				}
				thrown := r.Runtime.Try(func() { call() })
				if got := thrown != nil && strings.Contains(thrown.Error(), jsvalue.ErrStopped.Error()); got != over {
					t.Errorf("over: %v, but it threw %v", over, thrown)
				}
			}
		})
	}
}

// callNative calls a native function.
func callNative(f goja.Value, arguments ...goja.Value) goja.Value {
	return f.Export().(func(goja.FunctionCall) goja.Value)(goja.FunctionCall{Arguments: arguments})
}

// methodOf returns a native method, called on an object created from text.
func methodOf(t *testing.T, r *execution, class, made, method string) func() {
	t.Helper()
	arguments := []goja.Value{r.Runtime.ToValue("1"), r.Runtime.ToValue("1")}
	switch method {
	case "forEach":
		arguments[0] = r.Function("", func(goja.FunctionCall) goja.Value { return goja.Undefined() })
	case "digest":
		digest, data := r.Needed(class).Get("subtle").(*goja.Object).Get(method), r.NewBytes(make([]byte, 8))
		return func() {
			if p := callNative(digest, r.Runtime.ToValue("SHA-1"), data).Export().(*goja.Promise); p.State() == goja.PromiseStateRejected {
				panic(p.Result())
			}
		}
	}
	this := r.Needed(class)
	if made != "" {
		var err error
		if this, err = r.Runtime.New(this, r.Runtime.ToValue(made)); err != nil {
			t.Fatal(err)
		}
	}
	f := this.Get(method).Export().(func(goja.FunctionCall) goja.Value)
	return func() { f(goja.FunctionCall{This: this, Arguments: arguments}) }
}

func TestTextLimit(t *testing.T) {
	if cputest.Race() {
		t.Skip("texts of 16 MiB take half a minute under the race detector, and one goroutine")
	}
	for _, expression := range []string{
		`btoa(long)`, `atob(long)`, `new TextEncoder().encode(long)`, `new TextDecoder().decode(new Uint8Array(long.length))`,
		`new URLSearchParams(long)`, `new URL(long)`, `new URL("http://a/").search = long`,
	} {
		body := `const long = "x".repeat((16 << 20) + 1); try { return ` + expression + ` } catch (e) { return e.name }`
		if got := shown(runScript(t, body, `{}`)); got != `"RangeError"` {
			t.Errorf("%s: %.100s", expression, got)
		}
	}
}

func TestInterrupt_context(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &execution{ctx: ctx, Realm: builtins.Realm{Runtime: newOpenExecution(t).Runtime}}
	if !r.Look() || r.interrupted.Load() {
		t.Error("a run was interrupted before its context ended")
	}
	cancel()
	if r.Look() || !r.interrupted.Load() {
		t.Error("a run was not interrupted")
	}
}

// The budgets are allocations, which are stable, unlike times.
func TestRun_allocations(t *testing.T) {
	if cputest.Race() {
		t.Skip("the race detector allocates too")
	}
	for _, c := range []struct {
		name, body string
		budget     float64
	}{
		{"a small script", smallScript, 90},
		{"a script that mentions nothing", `return 1`, 60},
		{"an async script", `await null; return 1`, 290},
		{"one request", asyncScript, 370},
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
