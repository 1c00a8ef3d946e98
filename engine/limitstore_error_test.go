package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// storeFuncs is a store with configurable functions.
type storeFuncs struct {
	take     func(context.Context) (call.LimitVerdict, error)
	release  func() error
	released atomic.Int64
}

func (b *storeFuncs) Take(ctx context.Context, _ []call.LimitCharge) (call.LimitVerdict, error) {
	return b.take(ctx)
}

func (b *storeFuncs) Release(context.Context, []call.LimitCharge) error {
	b.released.Add(1)
	if b.release != nil {
		return b.release()
	}
	return nil
}

const uncounted = "POLICY_DENIED: the server cannot count the call; try again in a second"

func TestLimitStore_errorDenies(t *testing.T) {
	hang := make(chan struct{})
	for _, c := range []struct {
		name    string
		take    func(context.Context) (call.LimitVerdict, error)
		timeout time.Duration // of the store
		bound   string        // of the tool
		cause   string
	}{
		{"by a store that fails", func(context.Context) (call.LimitVerdict, error) {
			return call.LimitVerdict{Taken: true}, errors.New("no route to host")
		}, time.Minute, "1m", "limit store: no route to host"},
		{"by a store that panics", func(context.Context) (call.LimitVerdict, error) { panic("oh") }, time.Minute, "1m", "limit store: panic: oh"},
		{"by a store that hangs", func(context.Context) (call.LimitVerdict, error) {
			<-hang
			return call.LimitVerdict{Taken: true}, nil
		}, 10 * time.Millisecond, "1m", "limit store: the store did not respond in time"},
		{"by a store that has longer than the call", func(ctx context.Context) (call.LimitVerdict, error) {
			<-ctx.Done()
			return call.LimitVerdict{Taken: true}, ctx.Err()
		}, time.Hour, "20ms", "limit store: the store did not respond in time"},
		{"by a store that refuses what was not asked", func(context.Context) (call.LimitVerdict, error) {
			return call.LimitVerdict{Over: 1}, nil
		}, time.Minute, "1m", "limit store: invalid charge index 1 of 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log strings.Builder
			store := &storeFuncs{take: c.take}
			limits := sharedLimits(store)
			limits.Timeout = c.timeout
			s := unloaded(t, engine.Options{
				Files: engine.Files{
					Tools:  files("t.hcl", strings.Replace(echo, `"1m"`, strconv.Quote(c.bound), 1)),
					Config: files("mcpd.hcl", "limit \"l\" {\n  rate = \"1/s\"\n  concurrency = 1\n}\n"),
				},
				Limits: limits,
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			r := s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))
			if outcomeCode(r) != uncounted || !r.Err.Limited || r.Err.RetryAfter != time.Second || r.Err.DeniedBy != "" {
				t.Errorf("got %+v", r.Err)
			}
			if !strings.Contains(log.String(), c.cause) {
				t.Errorf("the log lacks %q:\n%s", c.cause, log.String())
			}
			if c.name == "by a store that hangs" {
				close(hang)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			// The effect of Take is unknown unless the store has responded.
			want := int64(1)
			if strings.HasSuffix(c.name, "was not asked") {
				want = 0
			}
			if got := store.released.Load(); got != want {
				t.Errorf("the place is released %d times, want %d", got, want)
			}
		})
	}
}

// The default is one second.
func TestLimitStore_retryAfter(t *testing.T) {
	for _, c := range []struct {
		verdict call.LimitVerdict
		want    string
		wait    time.Duration
	}{
		{call.LimitVerdict{Wait: 90 * time.Second}, "over the limit of 60 calls a minute; try again in 90 s", 90 * time.Second},
		{call.LimitVerdict{Over: 1, Busy: true, Wait: 1}, "over the limit of 2 calls at once; try again in 1 s", 1},
		{call.LimitVerdict{}, "over the limit of 60 calls a minute; try again in 1 s", time.Second},
		{call.LimitVerdict{Wait: -1}, "over the limit of 60 calls a minute; try again in 1 s", time.Second},
		{call.LimitVerdict{Wait: 1<<63 - 1}, "over the limit of 60 calls a minute; try again in 31536000 s", 365 * 24 * time.Hour},
	} {
		s := server(t, engine.Options{
			Files:  engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", "limit \"rate\" { rate = \"60/m\" }\nlimit \"at_once\" { concurrency = 2 }\n")},
			Limits: sharedLimits(&storeFuncs{take: func(context.Context) (call.LimitVerdict, error) { return c.verdict, nil }}),
		})
		r := s.Execute(t.Context(), callBy("ada", "echo", `{"n":1}`))
		if outcomeCode(r) != "POLICY_DENIED: "+c.want || r.Err.RetryAfter != c.wait || !r.Err.Limited {
			t.Errorf("%+v: got %+v", c.verdict, r.Err)
		}
	}
}

func TestLimitStore_callerGone(t *testing.T) {
	asked := make(chan struct{})
	store := &storeFuncs{take: func(ctx context.Context) (call.LimitVerdict, error) {
		close(asked)
		<-ctx.Done()
		return call.LimitVerdict{}, ctx.Err()
	}}
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", fiftyAnHour)}, Limits: sharedLimits(store)})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if got := outcomeCode(s.Execute(ctx, callBy("ada", "echo", `{"n":1}`))); got != "EXECUTION_ERROR: the call was canceled" {
		t.Error(got)
	}
}

// Close must not wait for the store.
func TestLimitStore_closeWithHangingStore(t *testing.T) {
	called, hang := make(chan struct{}), make(chan struct{})
	var once sync.Once
	store := &storeFuncs{take: func(context.Context) (call.LimitVerdict, error) {
		once.Do(func() { close(called) })
		<-hang
		return call.LimitVerdict{}, nil
	}}
	limits := sharedLimits(store)
	limits.Timeout = time.Millisecond
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", fiftyAnHour)}, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	for hangs := false; !hangs; { // the timeout may end before a call reaches the store
		if got := outcomeCode(s.Execute(t.Context(), call.Request{Name: "echo", Arguments: []byte(`{"n":1}`), Caller: identity.Caller{Principal: identity.Anonymous()}})); got != uncounted {
			t.Fatal(got)
		}
		select {
		case <-called:
			hangs = true
		default:
		}
	}
	if err := s.Close(context.Background()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "close limit store") {
		t.Errorf("close: %v", err)
	}
	close(hang)
}
