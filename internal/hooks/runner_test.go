package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/hooks"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// executor runs a function for each call.
type executor func(ctx context.Context, event string) (scripting.Outcome, error)

func (f executor) Run(ctx context.Context, c scripting.Call, _ scripting.Host) (scripting.Outcome, error) {
	return f(ctx, string(c.Input))
}

func (executor) Close() error { return nil }

func runner(f executor) *hooks.Runner {
	store := secrets.New(secrets.Options{LookupEnv: func(string) (string, bool) { return "", false }})
	return hooks.New(hooks.Options{Executor: f, Brokers: host.Brokers{Secrets: store, Logger: slog.New(slog.DiscardHandler)}, Now: time.Now})
}

func flush(t *testing.T, r *hooks.Runner) {
	t.Helper()
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRunsOfOneCallKeepTheirOrderAndNoneIsLost(t *testing.T) {
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
	h := r.Hook(hooks.Definition{Name: "h", Timeout: time.Second})
	const calls, each = 100, 50
	for number := range each {
		for call := range calls {
			r.Add(h, hooks.Run{Event: fmt.Appendf(nil, "%d %d", call, number), Lane: uint64(call)})
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

func TestASlowHookDelaysNoOther(t *testing.T) {
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
	slow, quick := r.Hook(hooks.Definition{Name: "slow", Timeout: time.Hour}), r.Hook(hooks.Definition{Name: "quick", Timeout: time.Hour})
	for lane := range uint64(1000) {
		r.Add(slow, hooks.Run{Event: json.RawMessage("slow"), Lane: lane})
	}
	r.Add(quick, hooks.Run{Event: json.RawMessage("quick")})
	<-ran
	close(release)
	flush(t, r)
}

// A hook that never gets on fills its queue. One call waits for room, in vain;
// those behind it do not.
func TestAHookThatLagsFarBehindLosesRunsAndCountsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := runner(func(context.Context, string) (scripting.Outcome, error) {
			<-release
			return scripting.Outcome{Result: &scripting.Result{}}, nil
		})
		h := r.Hook(hooks.Definition{Name: "pager", Timeout: 24 * time.Hour})
		big := hooks.Run{Event: make(json.RawMessage, 4<<20)}
		began := time.Now()
		for range 4 {
			r.Add(h, big)
		}
		if r.Failures() != 0 || r.Waits() != 0 {
			t.Errorf("16 MiB do not fit: %d failures, %d waits", r.Failures(), r.Waits())
		}
		for range 100 {
			r.Add(h, big)
		}
		if r.Failures() != 100 || r.Waits() != 1 || time.Since(began) != 250*time.Millisecond {
			t.Errorf("%d failures, %d waits, %s", r.Failures(), r.Waits(), time.Since(began))
		}
		close(release)
		flush(t, r)
	})
}

func TestWhateverHappensToARunCostsItAlone(t *testing.T) {
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
	h := r.Hook(hooks.Definition{Name: "h", Timeout: time.Second})
	for _, event := range []string{"panics", "fails", "errs", "works"} {
		r.Add(h, hooks.Run{Event: json.RawMessage(event)})
	}
	flush(t, r)
	if r.Failures() != 3 {
		t.Errorf("%d failures, want 3", r.Failures())
	}
}
