package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// TestHostCalls_concurrencyLimit, even if the process exits meanwhile: none is repeated.
func TestHostCalls_concurrencyLimit(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30}) // the race detector needs much memory
	p := program(t, `
const rs = await Promise.all(Array.from({ length: 1000 }, (_, n) => http.api.get("https://x/" + n)));
return rs.filter((r) => r.status === 200).length;
`)
	var now, most, all atomic.Int64
	host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) {
		for n, m := now.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer now.Add(-1)
		if all.Add(1) == 500 {
			e.mu.Lock()
			for _, p := range e.processes {
				p.kill(exitTimeout)
			}
			e.mu.Unlock()
		}
		return []byte(answered), nil
	})
	out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
	if err != nil || out.Failure != nil || string(out.Result.JSON) != "1000" {
		t.Fatalf("%v, %+v", err, out)
	}
	if all.Load() != 1000 || most.Load() > maxHostCalls {
		t.Errorf("%d host calls were made, %d at once", all.Load(), most.Load())
	}
}

// TestHostCalls_invalidResponse: the script gets an error, and continues.
func TestHostCalls_invalidResponse(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	p := program(t, `
try {
  return (await http.api.get("https://x/")).status;
} catch (e) {
  return e.code;
}
`)
	for name, answer := range map[string]string{
		"cut off":        `{"status":`,
		"a name twice":   `{"status":200,"status":201}`,
		"two values":     `{"status":200}{}`,
		"a huge number":  `{"status":1e999}`,
		"no text":        "{\"status\":\"\xff\"}",
		"deeper than we": `{"status":` + deep(responseLimits().Depth+1) + `}`,
		"very deep":      deep(2_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) { return []byte(answer), nil })
			out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
			if err != nil || out.Failure != nil || !strings.Contains(string(out.Result.JSON), scripting.Invalid) {
				t.Errorf("%v, %+v", err, out)
			}
		})
	}
}

// TestHostCalls_abortCancels runs a call that continues once its host has observed the
// cancellation.
func TestHostCalls_abortCancels(t *testing.T) {
	p := program(t, `
const c = new AbortController();
const slow = http.api.get("https://x/slow", { signal: c.signal }).catch((e) => e.name);
await http.api.get("https://x/begun");
c.abort();
await http.api.get("https://x/ended");
return await slow;
`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, e := range map[string]scripting.Executor{"inline": scripting.Inline(), "worker": executor(t, Options{Processes: 1, Memory: 1 << 30})} {
		begun, ended := make(chan struct{}), make(chan struct{})
		host := hostFunc(func(ctx context.Context, _ int, _ string, payload []byte) ([]byte, error) {
			var wait <-chan struct{}
			switch text := string(payload); {
			case strings.Contains(text, "/slow"):
				close(begun)
				<-ctx.Done()
				close(ended)
				return nil, ctx.Err()
			case strings.Contains(text, "/begun"):
				wait = begun
			default:
				wait = ended
			}
			select {
			case <-wait:
				return []byte(answered), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		out, err := e.Run(ctx, scripting.Call{Program: p}, host)
		if err != nil || out.Failure != nil || string(out.Result.JSON) != `"AbortError"` {
			t.Errorf("%s: %v, %+v", name, err, out)
		}
	}
}

// TestHostCalls_abortQueued starts more requests than may run at once; all end when the script
// abandons them.
func TestHostCalls_abortQueued(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	p := program(t, `
const c = new AbortController();
const all = Array.from({ length: 100 }, (_, n) => http.api.get("https://x/" + n, { signal: c.signal }).catch((e) => e.name));
setTimeout(() => { c.abort(); console.log("all of them") }, 1);
const names = await Promise.all(all);
await http.api.get("https://x/last");
return names.filter((name) => name === "AbortError").length;
`)
	var asked atomic.Int64
	over := make(chan struct{})
	host := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		switch {
		case scripting.IsNotification(op):
			close(over)
		case !strings.Contains(string(payload), "/last"):
			asked.Add(1)
			<-over
		}
		return []byte(answered), nil
	})
	out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
	if err != nil || out.Failure != nil || string(out.Result.JSON) != "100" {
		t.Fatalf("%v, %+v", err, out)
	}
	if asked.Load() > maxHostCalls {
		t.Errorf("the host was called %d times", asked.Load())
	}
}

// TestHostCalls_abortReplayed: the replay abandons the host call for the same reason, and does not
// see its end.
func TestHostCalls_abortReplayed(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: a script computes for long")
	}
	e := executor(t, Options{Processes: 1, Memory: 1 << 30})
	p := program(t, `
return await http.api.get("https://x/", { signal: AbortSignal.timeout(1) }).catch((e) => {
  let sum = 0;
  for (let i = 0; i < 3e6; i++) sum += i;
  return e.name;
});
`)
	host := hostFunc(func(ctx context.Context, _ int, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, p := range e.processes {
			p.kill(exitTimeout)
		}
		return nil, ctx.Err()
	})
	out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
	if err != nil || out.Failure != nil || string(out.Result.JSON) != `"TimeoutError"` {
		t.Fatalf("%v, %+v", err, out)
	}
}
