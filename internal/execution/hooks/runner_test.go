package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// executor runs a function per call.
type executor func(ctx context.Context, event string) (scripting.Outcome, error)

func (e executor) Run(ctx context.Context, c scripting.Call, _ scripting.Host) (scripting.Outcome, error) {
	return e(ctx, string(c.Input))
}

func (executor) Close() error { return nil }

func runner(f executor) *hooks.Runner { return logging(io.Discard, f) }

// logging returns a runner that logs to w.
func logging(w io.Writer, f executor) *hooks.Runner {
	store := secrets.New(secrets.Options{LookupEnv: func(string) (string, bool) { return "", false }})
	return hooks.New(hooks.Options{Executor: f, Brokers: host.Brokers{Secrets: store, Logger: slog.New(slog.NewTextHandler(w, nil))}, Now: time.Now})
}

func flush(t *testing.T, r *hooks.Runner) {
	t.Helper()
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRunner_order(t *testing.T) {
	var mu sync.Mutex
	ran := map[int][]int{}
	r := runner(func(_ context.Context, event string) (scripting.Outcome, error) {
		var call, number int
		if _, err := fmt.Sscan(event, &call, &number); err != nil {
			return scripting.Outcome{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		ran[call] = append(ran[call], number)
		return scripting.Outcome{Result: &scripting.Result{}}, nil
	})
	h := r.Hook(hooks.Spec{Name: "h", Timeout: time.Second})
	const calls, each = 100, 50
	for number := range each {
		for call := range calls {
			r.Add(h, hooks.Run{Event: fmt.Appendf(nil, "%d %d", call, number), OrderKey: uint64(call)})
		}
	}
	flush(t, r)
	for call := range calls {
		if len(ran[call]) != each || !slices.IsSorted(ran[call]) {
			t.Errorf("call %d: ran %v", call, ran[call])
		}
	}
	if r.Failures() != 0 {
		t.Errorf("%d failures", r.Failures())
	}
}

func TestRunner_slowHook(t *testing.T) {
	release := make(chan struct{})
	ran := make(chan struct{}, 1)
	r := runner(func(_ context.Context, event string) (scripting.Outcome, error) {
		if event == "slow" {
			<-release
		} else {
			ran <- struct{}{}
		}
		return scripting.Outcome{Result: &scripting.Result{}}, nil
	})
	slow, quick := r.Hook(hooks.Spec{Name: "slow", Timeout: time.Hour}), r.Hook(hooks.Spec{Name: "quick", Timeout: time.Hour})
	for owner := range uint64(1000) {
		r.Add(slow, hooks.Run{Event: json.RawMessage("slow"), OrderKey: owner})
	}
	r.Add(quick, hooks.Run{Event: json.RawMessage("quick")})
	<-ran
	close(release)
	flush(t, r)
}

// hangingHook is a hook that hangs until it is cut short, and records the phases of each call.
type hangingHook struct {
	mu    sync.Mutex
	begun map[int]string
}

func (h *hangingHook) run(ctx context.Context, event string) (scripting.Outcome, error) {
	var call int
	var phase string
	if _, err := fmt.Sscan(event, &call, &phase); err != nil {
		return scripting.Outcome{}, err
	}
	h.mu.Lock()
	h.begun[call] += phase + " "
	h.mu.Unlock()
	<-ctx.Done()
	return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Canceled, Message: "the call was canceled"}}, nil
}

// padded returns a run of one phase of a call, with an event of a given size.
func padded(call int, phase string, size int) hooks.Run {
	event := bytes.Repeat([]byte(" "), size)
	copy(event, fmt.Sprint(call, " ", phase))
	return hooks.Run{Event: event, OrderKey: uint64(call), CallID: fmt.Sprint(call)}
}

// A hanging hook delays a call at most by the runs before it, eight at a time for ten milliseconds
// each. No run is lost.
func TestRunner_hangingHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, each, size = 64, 32, 8 << 10
		const fill = 16<<20/(size+256) + 1
		hang, logged := &hangingHook{begun: map[int]string{}}, &bytes.Buffer{}
		r := logging(logged, hang.run)
		h := r.Hook(hooks.Spec{Name: "pager", Timeout: time.Hour})
		for call := range fill {
			r.Add(h, padded(call, "start", size))
		}
		if r.Waits() != 0 {
			t.Errorf("16 MiB do not fit: %d waits", r.Waits())
		}
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() {
				for n := range each {
					for _, phase := range []string{"start", "end"} {
						began := time.Now()
						r.Add(h, padded(fill+client*each+n, phase, size))
						if waited, most := time.Since(began), clients/8*10*time.Millisecond; waited > most {
							t.Errorf("a call waited for %s, want at most %s", waited, most)
						}
					}
				}
			})
		}
		all.Wait()
		flush(t, r)
		for call := range fill + clients*each {
			want := "start end "
			if call < fill {
				want = "start "
			}
			if got := hang.begun[call]; got != want {
				t.Fatalf("of call %d ran %q, want %q", call, got, want)
			}
		}
		const further = 2 * clients * each
		if r.Waits() != further || r.Failures() != fill+further {
			t.Errorf("%d waits, %d failures, want %d, %d", r.Waits(), r.Failures(), further, fill+further)
		}
		if count := strings.Count(logged.String(), "runs are limited to 10ms"); count != 1 {
			t.Errorf("%d lines report runs that are cut short", count)
		}
	})
}

// A congestion ends when the hook has caught up; the next one is logged again.
func TestRunner_congestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		var mu sync.Mutex
		cut, whole := 0, 0
		r := logging(&logged, func(ctx context.Context, _ string) (scripting.Outcome, error) {
			select {
			case <-time.After(time.Second):
				mu.Lock()
				defer mu.Unlock()
				whole++
				return scripting.Outcome{Result: &scripting.Result{}}, nil
			case <-ctx.Done():
				mu.Lock()
				defer mu.Unlock()
				cut++
				return scripting.Outcome{}, ctx.Err()
			}
		})
		h := r.Hook(hooks.Spec{Name: "pager", Timeout: time.Hour})
		for crowding := range 2 {
			cut, whole = 0, 0
			// Eight runs are executing when the queue is full; without them it is half empty.
			for owner, size := range slices.Concat(slices.Repeat([]int{1<<20 + 64}, 8), slices.Repeat([]int{1<<20 - 64}, 8), []int{256}) {
				r.Add(h, hooks.Run{Event: make(json.RawMessage, size-256), OrderKey: uint64(owner)})
			}
			flush(t, r)
			if cut != 8 || whole != 9 {
				t.Errorf("%d runs were cut short and %d ran to their end, want 8 and 9", cut, whole)
			}
			if count := strings.Count(logged.String(), "runs are limited to 10ms"); count != crowding+1 {
				t.Errorf("%d log lines, want %d", count, crowding+1)
			}
		}
		if r.Failures() != 16 || r.Waits() != 2 {
			t.Errorf("%d failures, %d waits, want 16 and 2", r.Failures(), r.Waits())
		}
	})
}

func TestRunner_failures(t *testing.T) {
	r := runner(func(_ context.Context, event string) (scripting.Outcome, error) {
		switch event {
		case "panics":
			panic("no")
		case "fails":
			return scripting.Outcome{Failure: &scripting.Failure{Message: "no"}}, nil
		case "errs":
			return scripting.Outcome{}, errors.New("no")
		}
		return scripting.Outcome{Result: &scripting.Result{}}, nil
	})
	h := r.Hook(hooks.Spec{Name: "h", Timeout: time.Second})
	for _, event := range []string{"panics", "fails", "errs", "works"} {
		r.Add(h, hooks.Run{Event: json.RawMessage(event)})
	}
	flush(t, r)
	if r.Failures() != 3 {
		t.Errorf("%d failures, want 3", r.Failures())
	}
}
