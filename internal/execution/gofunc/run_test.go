package gofunc_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/gofunc"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notifier records the calls of CallEnded.
type notifier struct {
	mu      sync.Mutex
	reasons []error
	at      time.Time
}

func (n *notifier) CallEnded(_ context.Context, reason error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reasons, n.at = append(n.reasons, reason), time.Now()
}

func (n *notifier) all() []error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.reasons
}

type function = gofunc.Func[string, int, int]

func TestRun_returnsInTime(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "within a tick": 3 * time.Millisecond, "after some": 900 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var w gofunc.Watchdog
				var late notifier
				twice := function(func(_ context.Context, _ string, in int) (int, error) {
					time.Sleep(takes)
					return 2 * in, nil
				})
				outcome, err := twice.Run(ctx, &w, &late, "", 21)
				if err != nil || outcome.Result == nil || string(outcome.Result.JSON) != "42" {
					t.Errorf("%v, %+v", err, outcome)
				}
				time.Sleep(time.Minute)
				if reasons := late.all(); reasons != nil {
					t.Errorf("CallEnded got %v", reasons)
				}
			})
		})
	}
}

// The call ends within two ticks of its context, and the result is dropped.
func TestRun_detaches(t *testing.T) {
	for name, test := range map[string]struct {
		after  time.Duration
		cancel bool
		want   error
	}{
		"at its deadline":       {time.Second, false, context.DeadlineExceeded},
		"at a deadline at once": {time.Microsecond, false, context.DeadlineExceeded},
		"when it is cancelled":  {300 * time.Millisecond, true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.after)
				if test.cancel {
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(test.after, cancel)
				}
				defer cancel()
				began := time.Now()
				var w gofunc.Watchdog
				var late notifier
				stuck := function(func(context.Context, string, int) (int, error) {
					time.Sleep(time.Hour)
					return 1, nil
				})
				outcome, err := stuck.Run(ctx, &w, &late, "", 1)
				if !errors.Is(err, catalog.ErrDetached) || outcome.Result != nil || outcome.Failure != nil {
					t.Errorf("%v, %+v", err, outcome)
				}
				if reasons := late.all(); len(reasons) != 1 || !errors.Is(reasons[0], test.want) {
					t.Errorf("CallEnded got %v, want %v", reasons, test.want)
				}
				if took := late.at.Sub(began); took < test.after || took > test.after+10*time.Millisecond {
					t.Errorf("CallEnded was called after %s", took)
				}
			})
		})
	}
}

// slowNotifier delays the response to the client.
type slowNotifier struct {
	notifier
	answered chan struct{}
}

func (n *slowNotifier) CallEnded(ctx context.Context, reason error) {
	time.Sleep(time.Second)
	n.notifier.CallEnded(ctx, reason)
	close(n.answered)
}

// Otherwise the writer of the response may be gone.
func TestRun_waitsForNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var w gofunc.Watchdog
		late := slowNotifier{answered: make(chan struct{})}
		deaf := function(func(ctx context.Context, _ string, _ int) (int, error) {
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			return 1, nil
		})
		if _, err := deaf.Run(ctx, &w, &late, "", 1); !errors.Is(err, catalog.ErrDetached) {
			t.Error(err)
		}
		select {
		case <-late.answered:
		default:
			t.Error("the function's goroutine did not wait")
		}
	})
}

func TestRun_goexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w gofunc.Watchdog
		var late notifier
		exits := function(func(context.Context, string, int) (int, error) {
			runtime.Goexit()
			return 1, nil
		})
		go func() { _, _ = exits.Run(t.Context(), &w, &late, "", 1) }()
		synctest.Wait()
		if reasons := late.all(); len(reasons) != 1 || !errors.Is(reasons[0], catalog.ErrGoexit) {
			t.Errorf("CallEnded got %v", reasons)
		}
		outcome, err := exits.RunDetached(t.Context(), "", 1)
		if err != nil || outcome.Failure == nil || outcome.Failure.Kind != scripting.HostPanic {
			t.Errorf("detached: %v, %+v", err, outcome)
		}
	})
}

// Functions of all durations run in parallel against one deadline, many times.
func TestRun_parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w gofunc.Watchdog
		var all sync.WaitGroup
		for n := range 500 {
			takes := time.Duration(n) * time.Millisecond
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond+time.Microsecond)
				defer cancel()
				var late notifier
				waits := function(func(context.Context, string, int) (int, error) {
					time.Sleep(takes)
					return 1, nil
				})
				_, err := waits.Run(ctx, &w, &late, "", 1)
				if left := takes > 250*time.Millisecond; errors.Is(err, catalog.ErrDetached) != left || len(late.all()) == 1 != left {
					t.Errorf("after %s: %v, CallEnded got %v", takes, err, late.all())
				}
			})
		}
		all.Wait()
	})
}

func TestRun_panic(t *testing.T) {
	var w gofunc.Watchdog
	panics := function(func(context.Context, string, int) (int, error) { panic("boom") })
	for name, run := range map[string]func() (scripting.Outcome, error){
		"on the goroutine of the call": func() (scripting.Outcome, error) { return panics.Run(t.Context(), &w, &notifier{}, "", 1) },
		"on its own":                   func() (scripting.Outcome, error) { return panics.RunDetached(t.Context(), "", 1) },
	} {
		outcome, err := run()
		if err != nil || outcome.Failure == nil || outcome.Failure.Kind != scripting.HostPanic {
			t.Errorf("%s: %v, %+v", name, err, outcome)
		}
	}
}

// The function counts the goroutines.
func TestRun_noGoroutine(t *testing.T) {
	var w gofunc.Watchdog
	here := runtime.NumGoroutine()
	counts := function(func(context.Context, string, int) (int, error) { return runtime.NumGoroutine(), nil })
	for range 1000 {
		outcome, err := counts.Run(t.Context(), &w, &notifier{}, "", 1)
		if err != nil || outcome.Result == nil {
			t.Fatal(err)
		}
	}
	if now := runtime.NumGoroutine(); now > here+1 { // the timer of the watchdog may be running
		t.Errorf("%d goroutines, %d before", now, here)
	}
}

// Arguments of overlapping calls must not be retained while one function is stuck.
func TestWatchdog_stuckFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w gofunc.Watchdog
		var late notifier
		var all sync.WaitGroup
		defer all.Wait()
		var given []weak.Pointer[[64]int]
		call := func(takes time.Duration, in *[64]int) {
			waits := gofunc.Func[string, *[64]int, int](func(context.Context, string, *[64]int) (int, error) {
				time.Sleep(takes)
				return 1, nil
			})
			all.Go(func() { _, _ = waits.Run(t.Context(), &w, &late, "", in) })
			time.Sleep(time.Millisecond)
		}
		call(time.Hour, nil)
		for range 100 {
			in := new([64]int)
			given = append(given, weak.Make(in))
			call(4*time.Millisecond, in)
		}
		time.Sleep(time.Second)
		runtime.GC()
		held := 0
		for _, in := range given {
			if in.Value() != nil {
				held++
			}
		}
		if held > 0 {
			t.Errorf("the arguments of %d of %d calls are retained", held, len(given))
		}
	})
}
