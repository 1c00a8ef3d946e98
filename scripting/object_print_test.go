package scripting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPrint_values(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`print("a", 'b "c"', "")`, "a b \"c\" \n"},
		{`print()`, "\n"},
		{`print("two\nlines")`, "two\nlines\n"},
		{`print(1, -0, 0.1, 1e21, NaN, -Infinity, 10n ** 20n, true, null, undefined)`, "1 -0 0.1 1e+21 NaN -Infinity 100000000000000000000n true null undefined\n"},
		{`print({ a: 1, "b c": [1, "x", null, undefined, true], d: {} }, [])`, `{"a":1,"b c":[1,"x",null,undefined,true],"d":{}} []` + "\n"},
		{`print(new Map([["a", { b: 1 }]]), new Set([1, "x"]))`, `Map [["a",{"b":1}]] Set [1,"x"]` + "\n"},
		{`print(new Date(0), [new Date(0)], new Date(NaN), /a b/g, new Error("x"), [new TypeError("y")])`, "1970-01-01T00:00:00.000Z [1970-01-01T00:00:00.000Z] Invalid Date /a b/g Error: x [TypeError: y]\n"},
		{`print(() => 1, function named() {}, search_web, class A {})`, "[Function] [Function: named] [Function: search_web] [Function: A]\n"},
		{`print(Promise.resolve(1), new Promise(() => {}), [search_web({})])`, "Promise { <fulfilled> } Promise { <pending> } [Promise { <pending> }]\n"},
		{`const o = { a: [] }; o.a.push(o); print(o)`, `{"a":[[Circular]]}` + "\n"},
		{`let o = 1; for (let i = 0; i < 12; i++) o = { o }; print(o)`, strings.Repeat(`{"o":`, 10) + "[Object]" + strings.Repeat("}", 10) + "\n"},
		{`print(new Uint8Array([1, 2]), new URL("https://a.b/c"), Object.create(null), new (class P { x = 1 }))`, `[1,2] "https://a.b/c" {} {"x":1}` + "\n"},
		{`console.log(1); console.info(2); console.warn(3); console.error(4); console.debug(5); console.trace(6)`, "1\n2\n3\n4\n5\n6\n"},
		{`print(Symbol("x"), [Symbol("x")], new String("s"), tools)`, `Symbol(x) [Symbol(x)] s {"search_web":[Function: search_web]`},
	} {
		got := runCode(t, c.code)
		if !strings.HasPrefix(got.Stdout, c.want) || strings.HasSuffix(c.want, "\n") && got.Stdout != c.want {
			t.Errorf("%s:\ngot  %q (%s)\nwant %q", c.code, got.Stdout, got.Ended, c.want)
		}
	}
}

func TestPrint_notifiesHost(t *testing.T) {
	host := toolHost()
	runWith(t, call(compiled(t, codeOf(`console.warn("a", { b: 1 }); print("c")`)), ``), host)
	want := []string{`console {"level":"warn","message":"a {\"b\":1}"}`, `console {"level":"info","message":"c"}`}
	if diff := cmp.Diff(want, host.calls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// printing runs code with a limit for its output.
func printing(t *testing.T, code string, limit int) Outcome {
	t.Helper()
	c := call(compiled(t, codeOf(code)), ``)
	c.Limits.Stdout = limit
	return runWith(t, c, toolHost())
}

func TestPrint_limit(t *testing.T) {
	const mark = " … [cut: what code prints may have 20 bytes]\n"
	for _, c := range []struct{ code, want string }{
		{`print("0123456789"); print("01234567")`, "0123456789\n01234567\n"},
		{`print("0123456789"); print("012345678"); print("x")`, "0123456789\n01234567" + mark},
		{`print("x".repeat(1e6))`, strings.Repeat("x", 19) + mark},
		{`print("x".repeat(1e6)); for (let i = 0; i < 50000; i++) print(i)`, strings.Repeat("x", 19) + mark},
		{`print("ää", "ääääääää")`, "ää äääääää" + mark},
		{`print(Array(1e6).fill(1))`, "[1,1,1,1,1,1,1,1,1," + mark},
		{`print("x".repeat(19)); print("")`, strings.Repeat("x", 19) + "\n"},
	} {
		out := printing(t, c.code, 20)
		if out.Result == nil || out.Stdout != c.want {
			t.Errorf("%s: got %q, want %q (%s)", c.code, out.Stdout, c.want, shown(out))
		}
	}
}

func TestPrint_keptAfterFailure(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{`print("a"); throw new Error("x")`, "failure Thrown: x"},
		{`print("a"); const f = () => f(); f()`, "failure Limit: calls nest deeper than 1000"},
		{`print("a"); for (;;) Date.now()`, "failure Limit: the script made more than 50 host calls, messages and clock reads"},
		{`print("a"); await new Promise(() => {})`, "failure Thrown: the script waits for a promise that cannot settle any more"},
		{`print("a"); "x".repeat(200)`, "failure Limit: the result is too large: the value is larger than 100 bytes of JSON"},
	} {
		p := call(compiled(t, codeOf(c.code)), ``)
		p.Start = time.Time{}
		p.Limits.HostCalls, p.Limits.Output = 50, 100
		if out := runWith(t, p, toolHost()); shown(out) != c.want || out.Stdout != "a\n" {
			t.Errorf("%s: got %s, printed %q", c.code, shown(out), out.Stdout)
		}
	}
	out := printing(t, `for (let i = 0; ; i++) print(i)`, 1<<20)
	if out.Failure == nil || out.Failure.Limit != "host_calls" || !strings.HasSuffix(out.Stdout, "\n9999\n") {
		t.Errorf("without end: %s, printed %d bytes", shown(out), len(out.Stdout))
	}
}

func TestPrint_canceledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	host := &fakeHost{answer: func(ctx context.Context, op string, _ []byte) ([]byte, error) {
		if op == "call" {
			cancel()
			<-ctx.Done()
		}
		return nil, ctx.Err()
	}}
	out, err := Inline().Run(ctx, call(compiled(t, codeOf(`print("a"); await search_web({})`)), ``), host)
	if err != nil || out.Failure == nil || out.Failure.Kind != Canceled || out.Stdout != "a\n" {
		t.Errorf("%v, %s, printed %q", err, shown(out), out.Stdout)
	}
}

// The journal has the output, so that a run that continues from it has all lines, and sends none
// again.
func TestPrint_resumedCall(t *testing.T) {
	c := call(compiled(t, codeOf(`print("before"); const r = await search_web({}); print("after", r.length)`)), ``)
	c.Journal = NewJournal()
	ctx, cancel := context.WithCancel(t.Context())
	first := &fakeHost{answer: func(ctx context.Context, op string, _ []byte) ([]byte, error) {
		if op == "call" {
			cancel()
			return nil, errors.New("away")
		}
		return nil, nil
	}}
	if out, err := Inline().Run(ctx, c, first); err != nil || out.Stdout != "before\n" {
		t.Fatalf("%v, printed %q", err, out.Stdout)
	}
	data, err := c.Journal.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var journal Journal
	if err := journal.UnmarshalBinary(data); err != nil || journal.Stdout() != "before\n" {
		t.Fatalf("%v, the journal has %q", err, journal.Stdout())
	}
	again, err := journal.MarshalBinary()
	if err != nil || string(again) != string(data) {
		t.Errorf("the journal has two encodings (%v)", err)
	}
	journal.entries = journal.entries[:1] // without the response of the first run
	c.Journal = &journal
	second := toolHost()
	if out := runWith(t, c, second); out.Stdout != "before\nafter 5\n" {
		t.Errorf("%s, printed %q", shown(out), out.Stdout)
	}
	if diff := cmp.Diff([]string{`call {"tool":"search_web","arguments":{}}`, `console {"level":"info","message":"after 5"}`}, second.calls()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A recorder stores no more output of another process than code may print.
func TestRecorder_printLimit(t *testing.T) {
	record := func(p *Program) *Recorder {
		return NewRecorder(Call{Program: p, Journal: NewJournal(), Limits: Limits{Stdout: 100}})
	}
	code, body := record(compiled(t, codeOf("1"))), record(compiled(t, tool("return 1")))
	for i := range 50 {
		for _, r := range []*Recorder{code, body} {
			if failure, err := r.RecordCall(i+1, "console", fmt.Appendf(nil, `{"level":"info","message":"line %d"}`, i)); failure != nil || err != nil {
				t.Fatal(failure, err)
			}
		}
	}
	if got := code.Stdout(); len(got) > 100+len(truncationMark(100)) || !strings.HasPrefix(got, "line 0\nline 1\n") {
		t.Errorf("kept %q", got)
	}
	if got := body.Stdout(); got != "" {
		t.Errorf("kept %q of a script", got)
	}
	odd := record(compiled(t, codeOf("1")))
	for i, payload := range []string{`{`, `{"message":5}`, `[]`, `null`, strings.Repeat("[", 20000), `{"message":"` + strings.Repeat("x", 1<<20) + `"}`} {
		if _, err := odd.RecordCall(i+1, "console", []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if got := odd.Stdout(); got != "\n" { // null is an empty line
		t.Errorf("kept %q of odd lines", got)
	}
}
