package scripting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAbortSignal(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a controller", `const c = new AbortController(); const before = c.signal.aborted; c.abort(); c.abort("late");
			return [before, c.signal.aborted, c.signal.reason.name, c.signal.reason.message, c.signal instanceof AbortSignal]`,
			`[false,true,"AbortError","the operation was aborted",true]`},
		{"a reason", `const c = new AbortController(); c.abort("why"); try { c.signal.throwIfAborted() } catch (e) { return e }`, `"why"`},
		{"no reason yet", `const s = new AbortController().signal; s.throwIfAborted(); return s.reason === undefined`, `true`},
		{"a signal that is aborted", `return [AbortSignal.abort().aborted, AbortSignal.abort(7).reason]`, `[true,7]`},
		{"listeners", `const c = new AbortController(), seen = []; const off = () => seen.push("off");
			c.signal.onabort = e => seen.push("on " + e.type + (e.target === c.signal)); c.signal.addEventListener("abort", () => seen.push("a"), { once: true });
			c.signal.addEventListener("abort", off); c.signal.removeEventListener("abort", off); c.abort(); c.abort(); return seen`,
			`["on aborttrue","a"]`},
		{"a listener that throws", `const c = new AbortController(), seen = []; c.signal.addEventListener("abort", () => { throw 1 });
			c.signal.addEventListener("abort", () => seen.push("b")); try { c.abort() } catch (e) { seen.push(e) } return seen`, `["b",1]`},
		{"any", `const a = new AbortController(), b = new AbortController(); const s = AbortSignal.any([a.signal, b.signal]), t = AbortSignal.any([s]);
			const seen = []; t.addEventListener("abort", () => seen.push("t")); b.abort("b"); a.abort("a"); return [s.reason, t.reason, seen]`, `["b","b",["t"]]`},
		{"any of one that is aborted", `return AbortSignal.any([new AbortController().signal, AbortSignal.abort(3)]).reason`, `3`},
		{"any of nothing", `return AbortSignal.any([]).aborted`, `false`},
		{"any of others", `AbortSignal.any([1])`, `failure Thrown: AbortSignal.any(signals): a list of signals is needed`},
		{"a chain", `const c = new AbortController(); let s = c.signal; for (let i = 0; i < 5000; i++) s = AbortSignal.any([s]); c.abort("end"); return s.reason`, `"end"`},
		{"no constructor", `new AbortSignal()`, `failure Thrown: write new AbortController().signal, or AbortSignal.timeout(milliseconds)`},
		{"no event of others", `new AbortController().signal.addEventListener("end", () => {})`, `failure Thrown: a signal has addEventListener("abort", function)`},
		{"a controller is no signal", `await http.crm.get("u", { signal: new AbortController() })`,
			`failure Thrown: http.crm: signal must be that of an AbortController, or AbortSignal.timeout(milliseconds)`},
	} {
		if got := shown(runScript(t, c.body, `{}`)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// The host never responds, which shows that nothing waits for it.
func TestAbortSignal_cancelsRequest(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		asked            int
		took             time.Duration
	}{
		{"by a controller", `const c = new AbortController(); setTimeout(() => c.abort(), 50); return await http.crm.get("u", { signal: c.signal }).catch(e => e.name)`, `"AbortError"`, 1, 50 * time.Millisecond},
		{"by a timeout", `try { await http.crm.get("u", { signal: AbortSignal.timeout(80) }) } catch (e) { return e.name }`, `"TimeoutError"`, 1, 80 * time.Millisecond},
		{"before it starts", `return await http.crm.get("u", { signal: AbortSignal.abort("no") }).catch(e => e)`, `"no"`, 0, 0},
		{"by the first of some", `const s = AbortSignal.any([AbortSignal.timeout(9000), AbortSignal.timeout(20)]); return await http.crm.get("u", { signal: s }).catch(e => e.name)`, `"TimeoutError"`, 1, 20 * time.Millisecond},
		{"and fails the call if it is not caught", `await http.crm.get("u", { signal: AbortSignal.timeout(10) })`, `failure Thrown: the operation timed out`, 1, 10 * time.Millisecond},
		{"a timeout without await", `AbortSignal.timeout(5000); return 1`, `1`, 0, 0},
		{"an awaited timeout", `await new Promise(done => AbortSignal.timeout(5000).addEventListener("abort", done)); return 1`, `1`, 0, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			host := &fakeHost{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			began := time.Now()
			if got := shown(runWith(t, call(compiled(t, tool(c.body)), `{}`), host)); got != c.want {
				t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			}
			if took := time.Since(began); took != c.took || len(host.calls()) != c.asked {
				t.Errorf("%s: took %v and %d host calls, want %v and %d", c.name, took, len(host.calls()), c.took, c.asked)
			}
		})
	}
}

// A request that is too large is not sent, and its signal affects nothing else.
func TestAbortSignal_otherRequests(t *testing.T) {
	host := &fakeHost{answer: func(context.Context, string, []byte) ([]byte, error) {
		return []byte(`{"status":200,"headers":{},"body":"","url":"u"}`), nil
	}}
	got := shown(runWith(t, call(compiled(t, tool(`const c = new AbortController(); const first = http.crm.get("u");
		const large = http.crm.post("u", { body: "x".repeat(25e6), signal: c.signal }).catch(e => e.code);
		c.abort(); return [(await first).status, await large]`)), `{}`), host))
	if want := `[200,"TOO_LARGE"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
