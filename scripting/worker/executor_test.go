package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

func executor(t testing.TB, o Options) *Executor {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExecutor(o, path, "worker")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func program(t testing.TB, body string) *scripting.Program {
	t.Helper()
	src := source(body)
	src.Text = diag.NewText("tools.d/t.hcl", body, diag.Pos{Line: 7, Column: 1, Byte: 100})
	src.Objects = []scripting.Object{{Kind: "http", Name: "api"}, {Kind: "ask", Name: "elicit"}}
	p, problems := scripting.Compile(src)
	if p == nil {
		t.Fatal(problems)
	}
	return p
}

// hostFunc is a host without state.
type hostFunc func(ctx context.Context, seq int, op string, payload []byte) ([]byte, error)

func (h hostFunc) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	return h(ctx, seq, op, payload)
}

var silent = hostFunc(func(context.Context, int, string, []byte) ([]byte, error) { return []byte(`{}`), nil })

const answered = `{"status":200,"headers":{},"body":"{}"}`

// expiring is a context with a deadline that the test triggers.
type expiring struct {
	context.Context
	done chan struct{}
}

func (c *expiring) expire() { close(c.done) }

// Done returns the channel that is closed at the deadline.
func (c *expiring) Done() <-chan struct{} { return c.done }

// Err returns an error after the deadline.
func (c *expiring) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// everyEnd are scripts that end the same way everywhere: with values, failures, the results of
// their host, and at their deadline.
var everyEnd = []string{
	"return input.a + 1",
	"return 'text'",
	"",
	"return content.text('x')",
	"throw new Error('no\\n' + input.a)",
	"throw new ToolError('polite', { details: { a: [1] } })",
	"function f() { null.x }\nf()",
	"log.info('hello', { a: 1 }); progress(1, 2, 'half'); console.log('x'); return 1",
	"const r = await http.api.get('https://x/'); return r.status",
	"const rs = await Promise.all([1, 2, 3].map((n) => http.api.get('https://x/' + n))); return rs.length",
	"try { await http.api.post('https://refused/'); } catch (e) { return e.code + e.message }",
	"await new Promise((r) => setTimeout(r, 5)); return Math.random() > 2 || crypto.randomUUID().length",
	"return elicit({ message: 'sure?', schema: { type: 'object', properties: {} } })",
	"const o = {}; o.o = o; return o",
	"log.info('x', { a: '\\ud800' }); return '\\udc00' + input.a",
	"throw new ToolError('\\ud800', { details: { '\\udfff': '\\ud800' } })",
	"try { await http.api.post('https://x/', { body: 'x'.repeat(2.5e7) }); } catch (e) { return e.code }",
	"log.info('over'); for (;;) {}",
	"const c = new AbortController(); setTimeout(() => c.abort(), 5); return http.api.get('https://waits/', { signal: c.signal }).catch((e) => e.name)",
	"return dates.format(0, 'HH:mm', { zone: 'Asia/Kathmandu' })",
}

func TestRun_likeInline(t *testing.T) {
	t.Parallel()
	// A process that is slow, or large with the race detector, must not be killed.
	e := executor(t, Options{KillDelay: time.Minute, Memory: 2 << 30})
	for _, body := range everyEnd {
		t.Run(body, func(t *testing.T) {
			here, notifiedHere := endOf(t, scripting.Inline(), body)
			there, notifiedThere := endOf(t, e, body)
			if here != there || fmt.Sprint(notifiedHere) != fmt.Sprint(notifiedThere) {
				t.Errorf("inline: %q %q\nworker: %q %q", here, notifiedHere, there, notifiedThere)
			}
		})
	}
}

// endOf returns the end of a script, and the operations of its host.
func endOf(t *testing.T, x scripting.Executor, body string) (outcome string, notified []string) {
	t.Helper()
	var mu sync.Mutex
	ctx := &expiring{Context: t.Context(), done: make(chan struct{})}
	host := hostFunc(func(asked context.Context, seq int, op string, payload []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		notified = append(notified, op)
		switch {
		case op == "ask":
			return nil, scripting.ErrSuspended
		case strings.Contains(string(payload), "over"):
			ctx.expire()
		case strings.Contains(string(payload), "waits"):
			<-asked.Done()
			return nil, asked.Err()
		case strings.Contains(string(payload), "refused"):
			return nil, &scripting.HostError{Code: scripting.Denied, Message: "not there"}
		}
		return []byte(answered), nil
	})
	journal := scripting.NewJournal()
	out, err := x.Run(ctx, scripting.Call{Program: program(t, body), Input: []byte(`{"a":41}`), Seed: scripting.Seed{7}, Start: time.Unix(1000, 0), Journal: journal}, host)
	if err != nil {
		t.Fatal(err)
	}
	text, err := out.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(notified) > journal.Len() {
		t.Errorf("%d entries for %q", journal.Len(), notified)
	}
	return string(text), notified
}

// bombs are scripts that neither an interrupt nor a limit in the process stops.
var bombs = []string{
	"for (;;) {}",
	"return /(?=a)(a+)+$/.test('a'.repeat(60) + '!')",
	"return new Array(1e9).fill(0).length",
	"const a = []; a[4e9] = 1; return a.join().length",
	"const a = []; a[4e9] = 1; return a.reverse().length",
	"const a = []; a[4e9] = 1; return a.indexOf(2)",
	"const a = []; a[1e9] = 1; a[5e8] = 2; return a.sort().length",
	"return String(2n ** (2n ** 40n)).length",
	"return '\u0344'.repeat(3e7).normalize('NFD').length",
	"const all = []; for (;;) all.push(new ArrayBuffer(1e7))",
	"return 'a'.repeat(1e5).replaceAll('a', 'b'.repeat(1e5)).length",
	"let s = 'x'; for (;;) s += s",
	"const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
	"let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return String(a)",
}

// TestRun_bombs runs the bombs beside calls that wait for their host.
func TestRun_bombs(t *testing.T) {
	t.Parallel()
	e := executor(t, Options{Processes: 2, MaxRunning: 2 * (20 + len(bombs))}) // a busy machine refuses none
	var posts atomic.Int64
	slow := hostFunc(func(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
		posts.Add(1)
		select {
		case <-time.After(50 * time.Millisecond):
			return []byte(answered), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	bystander := program(t, "let n = 0; for (let i = 0; i < 10; i++) n += (await http.api.post('https://x/' + i)).status; return n")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			out, err := e.Run(t.Context(), scripting.Call{Program: bystander}, slow)
			if err != nil || out.Result == nil || string(out.Result.JSON) != "2000" {
				t.Errorf("a bystander: %v, %+v", err, out.Failure)
			}
		})
	}
	for _, body := range bombs {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			out, err := e.Run(ctx, scripting.Call{Program: program(t, body)}, silent)
			if err != nil || out.Failure == nil {
				t.Errorf("%s: %v, %+v", body, err, out)
				return
			}
			t.Logf("%s: %s %s", body, out.Failure.Kind, out.Failure.Message)
			if kind := out.Failure.Kind; kind != scripting.Timeout && kind != scripting.Limit {
				t.Errorf("%s: %s %s", body, kind, out.Failure.Message)
			}
		})
	}
	all.Wait()
	if posts.Load() != 200 {
		t.Errorf("%d posts of 200", posts.Load())
	}
}

// TestRun_imports: failures have the positions of the author.
func TestRun_imports(t *testing.T) {
	src := source("import { half } from './lib/half.ts';\nimport data from './data.json';\nreturn half(data.n) + vars.add")
	src.Language, src.Vars = scripting.TS, []byte(`{"add":1}`)
	src.Import = func(path string) ([]byte, error) {
		return map[string][]byte{
			"lib/half.ts": []byte("export function half(n: number): number {\n  if (n > 100) throw new Error('too much');\n  return n / 2;\n}"),
			"data.json":   []byte(`{"n": 84}`),
		}[path], nil
	}
	e := executor(t, Options{})
	for _, n := range []string{"84", "101"} {
		inner := src.Import
		src.Import = func(path string) ([]byte, error) {
			text, err := inner(path)
			return []byte(strings.ReplaceAll(string(text), "84", n)), err
		}
		p, problems := scripting.Compile(src)
		if p == nil {
			t.Fatal(problems)
		}
		var got []string
		for _, x := range []scripting.Executor{scripting.Inline(), e} {
			out, err := x.Run(t.Context(), scripting.Call{Program: p}, silent)
			if err != nil {
				t.Fatal(err)
			}
			if f := out.Failure; f != nil {
				got = append(got, f.Error())
			} else {
				got = append(got, string(out.Result.JSON))
			}
		}
		if got[0] != got[1] || n == "84" && got[0] != "43" || n == "101" && !strings.Contains(got[0], "lib/half.ts:2:") {
			t.Errorf("%s: here %q, there %q", n, got[0], got[1])
		}
	}
}

func TestExecutor_closed(t *testing.T) {
	e := executor(t, Options{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return 1")}, silent); !errors.Is(err, errClosed) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCall(b *testing.B) {
	for name, x := range map[string]scripting.Executor{"inline": scripting.Inline(), "worker": executor(b, Options{})} {
		b.Run(name, func(b *testing.B) {
			p := program(b, "return input.a + input.b")
			b.ReportAllocs()
			for b.Loop() {
				if out, err := x.Run(b.Context(), scripting.Call{Program: p, Input: []byte(`{"a":1,"b":2}`)}, silent); err != nil || out.Failure != nil {
					b.Fatal(err, out.Failure)
				}
			}
		})
	}
}

func TestWorkers_counts(t *testing.T) {
	e := executor(t, Options{})
	staffed := untimed{e}
	if diff := cmp.Diff(scripting.Workers{}, staffed.Workers()); diff != "" {
		t.Errorf("before any call (-want +got)\n%s", diff)
	}
	var during scripting.Workers
	host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		during = staffed.Workers()
		return []byte(answered), nil
	})
	if _, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return (await http.api.get('https://x/')).status")}, host); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(scripting.Workers{Processes: 1, Calls: 1}, during); diff != "" {
		t.Errorf("while a call waits for its host (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(scripting.Workers{Processes: 1}, staffed.Workers()); diff != "" {
		t.Errorf("after it (-want +got)\n%s", diff)
	}
}

// untimed removes counters that depend on spares.
type untimed struct{ scripting.StatsExecutor }

func (u untimed) Workers() scripting.Workers {
	now := u.StatsExecutor.Workers()
	now.Started = 0
	return now
}

func TestWorkers_exitCauses(t *testing.T) {
	t.Parallel()
	for why, want := range map[exitCause]scripting.Workers{
		exitTimeout: {Lost: 1, Overdue: 1}, exitMemory: {Lost: 1, Memory: 1}, exitProtocol: {Lost: 1, Protocol: 1}, exitUnknown: {Lost: 1, Crashed: 1},
	} {
		e := executor(t, Options{})
		died := false
		host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
			if died {
				return []byte(answered), nil
			}
			died = true
			e.mu.Lock()
			p := e.processes[0]
			e.mu.Unlock()
			p.kill(why)
			<-p.exited
			return []byte(answered), nil
		})
		out, err := e.Run(t.Context(), scripting.Call{Program: program(t, "return (await http.api.get('https://x/')).status")}, host)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		got := e.Workers()
		// Only the call that exceeded a known limit fails. The others run again in a second
		// process. A spare is started at the next tick, which may come after the call.
		failed := out.Failure != nil
		if failed != (why == exitMemory) || !failed && got.Started < 2 {
			t.Errorf("%v: failure %v, %d processes were started", why, out.Failure, got.Started)
		}
		got.Started, got.Processes, got.Calls = 0, 0, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
