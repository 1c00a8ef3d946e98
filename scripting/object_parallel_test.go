package scripting

import (
	"context"
	"sync/atomic"
	"testing"
)

func TestParallelKeepsTheOrderOfWhatItIsGiven(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"parallel([])", "[]"},
		{"parallel([1, Promise.resolve(2), () => 3, async () => 4, () => Promise.resolve(5)])", "[1,2,3,4,5]"},
		{"parallel([new Promise((r) => setTimeout(() => r('late'), 2)), 'early'])", `["late","early"]`},
		{"parallel([() => crm.list({ a: 1 }), crm.list({ b: 1 })])", `[{"tool":"crm_list","arguments":{"a":1}},{"tool":"crm_list","arguments":{"b":1}}]`},
		{"parallel([, 1])", "[null,1]"},
		{"parallel([1, 2].map((n) => () => n + 1))", "[2,3]"},
		{"const [a, b] = await parallel([1, 2])\na + b", "3"},
	} {
		if got := runCode(t, c.code).Ended; got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

// The first failure counts, but what runs beside it is awaited, so that nothing goes
// on behind.
func TestParallelFailsOnceEverythingHasEnded(t *testing.T) {
	const code = `let n = 0
const slow = () => new Promise((r) => setTimeout(() => { n++; r() }, 2))
try {
  await parallel([slow, () => { throw new Error("first") }, slow, Promise.reject(new Error("second"))])
} catch (e) {
  return [e.message, n]
}`
	if got := runCode(t, code).Ended; got != `["first",2]` {
		t.Errorf("got %s", got)
	}
}

func TestCallsInParallelRunAtOnce(t *testing.T) {
	var open atomic.Int32
	together := make(chan struct{})
	host := &fakeHost{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		if open.Add(1) == 3 {
			close(together)
		}
		select {
		case <-together:
		case <-ctx.Done():
		}
		return []byte("1"), ctx.Err()
	}}
	out := runWith(t, call(compiled(t, codeOf("await parallel([crm.list(), () => crm.list(), search_web()])")), ``), host)
	if got := shown(out); got != "[1,1,1]" {
		t.Errorf("got %s", got)
	}
}
