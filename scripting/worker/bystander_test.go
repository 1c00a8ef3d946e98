package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// ledger is a host that counts what it is asked.
type ledger struct {
	mu     sync.Mutex
	counts map[string]int
}

// Do counts the request or the message, and answers after a moment.
func (l *ledger) Do(ctx context.Context, _ int, op string, payload []byte) ([]byte, error) {
	l.mu.Lock()
	l.counts[op+string(payload)]++
	l.mu.Unlock()
	if scripting.IsMessage(op) {
		return nil, nil
	}
	select {
	case <-time.After(time.Duration(rand.IntN(10)) * time.Millisecond):
		return []byte(answered), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const bystander = `
const seen = [];
for (let i = 0; i < 8; i++) {
  log.info("step " + i);
  const rs = await Promise.all([1, 2, 3].map(async (n) => {
    const r = await http.api.post("https://x/" + i + "/" + n);
    seen.push([i, n, Date.now() > 0, r.status]);
    return Math.random();
  }));
  await new Promise((done) => setTimeout(done, rs[0] * 3));
}
return seen.length;
`

// TestBystandersOfAKilledProcessDoNothingTwice kills processes at random while
// calls are in them: every call has its result, and has made every request and
// sent every message once.
func TestBystandersOfAKilledProcessDoNothingTwice(t *testing.T) {
	e := executor(t, Options{Processes: 3})
	p := program(t, bystander)
	var all sync.WaitGroup
	for n := range 30 {
		all.Go(func() {
			l := &ledger{counts: map[string]int{}}
			journal := scripting.NewJournal()
			out, err := e.Run(t.Context(), scripting.Call{Program: p, Seed: uint64(n), Journal: journal}, l)
			if err != nil || out.Result == nil || string(out.Result.JSON) != "24" {
				t.Errorf("%v, %+v", err, out.Failure)
				return
			}
			for what, count := range l.counts {
				if count != 1 {
					t.Errorf("%d times: %s", count, what)
				}
			}
			if len(l.counts) != 32 {
				t.Errorf("%d requests and messages", len(l.counts))
			}
			replayed(t, p, journal)
		})
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	kills := 0
	for {
		select {
		case <-ended:
			if kills < 5 {
				t.Errorf("only %d processes were killed", kills)
			}
			return
		case <-time.After(25 * time.Millisecond):
		}
		e.mu.Lock()
		if len(e.peers) > 0 && kills < 40 {
			e.peers[rand.IntN(len(e.peers))].end(endOverdue)
			kills++
		}
		e.mu.Unlock()
	}
}

// replayed makes sure that the journal of a call holds all of it.
func replayed(t *testing.T, p *scripting.Program, journal *scripting.Journal) {
	t.Helper()
	none := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		t.Errorf("the journal does not hold %s %s", op, payload)
		return nil, fmt.Errorf("not again")
	})
	out, err := scripting.Inline().Run(t.Context(), scripting.Call{Program: p, Journal: journal}, none)
	if err != nil || out.Result == nil || string(out.Result.JSON) != "24" {
		t.Errorf("replayed: %v, %+v", err, out.Failure)
	}
}

// TestAProcessThatDiesOfItselfCostsTheGuiltyCallAlone: the others are run again,
// each by itself.
func TestAProcessThatDiesOfItselfCostsTheGuiltyCallAlone(t *testing.T) {
	e := executor(t, Options{Processes: 2, Memory: 64 << 20})
	e.resident = func(int) int64 { return 0 } // so that the system ends it
	hungry := program(t, "const all = []; for (;;) { await null; all.push('x'.repeat(1e6) + all.length) }")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			l := &ledger{counts: map[string]int{}}
			out, err := e.Run(t.Context(), scripting.Call{Program: program(t, bystander)}, l)
			if err != nil || out.Result == nil {
				t.Errorf("a bystander: %v, %+v", err, out.Failure)
			}
			for what, count := range l.counts {
				if count != 1 {
					t.Errorf("%d times: %s", count, what)
				}
			}
		})
	}
	all.Go(func() {
		out, err := e.Run(t.Context(), scripting.Call{Program: hungry}, silent)
		if err != nil || out.Failure == nil || out.Failure.Kind != scripting.Limit || !strings.Contains(out.Failure.Message, "memory") {
			t.Errorf("the guilty: %v, %+v", err, out.Failure)
		}
	})
	all.Wait()
}
