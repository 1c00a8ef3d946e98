package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// TestWhatAScriptLetsGoOfIsCancelledAtTheHost runs a call that goes on once its
// host has seen the aborted request end.
func TestWhatAScriptLetsGoOfIsCancelledAtTheHost(t *testing.T) {
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

// TestWhatIsLetGoOfBeforeItsTurnIsNotAsked lets more requests begin than run at
// once, all of which end when the script has let go of them.
func TestWhatIsLetGoOfBeforeItsTurnIsNotAsked(t *testing.T) {
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
		case scripting.IsMessage(op):
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
	if asked.Load() > maxAsked {
		t.Errorf("the host was asked %d times", asked.Load())
	}
}

// TestARunThatIsBegunAnewDropsWhatTheFirstHasDropped, for the same reason: it does
// not see how the host call ended that was cancelled.
func TestARunThatIsBegunAnewDropsWhatTheFirstHasDropped(t *testing.T) {
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
		for _, p := range e.peers {
			p.end(endOverdue)
		}
		return nil, ctx.Err()
	})
	out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
	if err != nil || out.Failure != nil || string(out.Result.JSON) != `"TimeoutError"` {
		t.Fatalf("%v, %+v", err, out)
	}
}
