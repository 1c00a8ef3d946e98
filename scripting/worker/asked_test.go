package worker

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// TestOfAThousandHostCallsSomeRunAtOnceAndAllAreAnswered, also when the process
// ends among them: none is made twice.
func TestOfAThousandHostCallsSomeRunAtOnceAndAllAreAnswered(t *testing.T) {
	e := executor(t, Options{Processes: 1, Memory: 1 << 30}) // the race detector takes much of it
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
			for _, p := range e.peers {
				p.end(endOverdue)
			}
			e.mu.Unlock()
		}
		return []byte(answered), nil
	})
	out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
	if err != nil || out.Failure != nil || string(out.Result.JSON) != "1000" {
		t.Fatalf("%v, %+v", err, out)
	}
	if all.Load() != 1000 || most.Load() > maxAsked {
		t.Errorf("%d host calls were made, %d at once", all.Load(), most.Load())
	}
}
