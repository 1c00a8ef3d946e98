package scripting

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hung is a host that answers only when its context ends.
func hung(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestACallEndsAtItsDeadlineWhateverItDoes(t *testing.T) {
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

func TestACanceledCallIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		out, err := Inline().Run(ctx, call(compiled(t, tool(`await http.crm.get("x")`)), `{}`), &fakeHost{answer: hung})
		if err != nil || out.Failure == nil || out.Failure.Kind != Canceled {
			t.Errorf("got %+v %v", out, err)
		}
		out, err = Inline().Run(ctx, call(compiled(t, tool(`log.info("never")`)), `{}`), &fakeHost{answer: hung})
		if err != nil || out.Failure == nil || out.Failure.Kind != Canceled {
			t.Errorf("a call that begins canceled: %+v %v", out, err)
		}
	})
}

func TestRunReturnsAfterItsHostCallsHave(t *testing.T) {
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

func TestWhatIsNotAwaitedIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ body, want string }{
			{`const seen = []; http.crm.get("5").then(r => seen.push(r.text())); return seen`, `["5"]`},
			{`const seen = []; setTimeout(() => seen.push(1), 50); return seen`, `[1]`},
			{`http.crm.get("x").then(() => { throw new Error("late") }); return 1`, `failure Thrown: late`},
			{`(async () => { await null; throw new Error("nobody looks") })(); return 1`, `failure Thrown: nobody looks`},
			{`const p = Promise.reject(new Error("handled later")); setTimeout(() => p.catch(() => {}), 5); return 1`, `1`},
			{`return new Promise(() => {})`, `failure Thrown: the body waits for a promise that nothing can settle any more`},
		} {
			if got := shown(runWith(t, call(compiled(t, tool(c.body)), `{}`), &fakeHost{answer: echo})); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.body, got, c.want)
			}
		}
	})
}

func TestTimersFireInOrder(t *testing.T) {
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

func TestAPanickingHostEndsTheCallAlone(t *testing.T) {
	panics := func(context.Context, string, []byte) ([]byte, error) { panic(errors.New("bug")) }
	for _, body := range []string{`await http.crm.get("x")`, `log.info("x")`, `try { progress(1) } catch {} return 1`} {
		out := runWith(t, call(compiled(t, tool(body)), `{}`), &fakeHost{answer: panics})
		if out.Failure == nil || out.Failure.Kind != HostPanic || strings.Contains(out.Failure.Message, "bug") {
			t.Errorf("%s: got %s", body, shown(out))
		}
	}
}

func TestHostCallsAreNumberedInTheOrderOfAsking(t *testing.T) {
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

// numbering is a host that keeps the numbers of what it is asked.
type numbering struct{ numbers *[]int }

func (h numbering) Do(_ context.Context, seq int, _ string, _ []byte) ([]byte, error) {
	*h.numbers = append(*h.numbers, seq)
	return []byte(`{"status":200,"headers":{}}`), nil
}

func TestManyCallsOfOneProgramRunAtOnce(t *testing.T) {
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
