package limitstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/postgres"
	"github.com/mcpd/mcpd/internal/execution/limitstore"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
)

// failures counts the outcomes of [observe.Metrics].LimitStoreFailed.
type failures struct {
	observe.Metrics
	count map[string]int
}

func (f *failures) LimitStoreFailed(outcome string) { f.count[outcome]++ }

func TestOnStoreFailure(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	states := &state.Lazy{
		OpenDatabase: postgres.Open, InDatabase: func() bool { return true },
		Database: func() (*state.Database, error) { return &state.Database{URL: database.URL("postgres", "")}, nil },
	}
	defer states.Close()
	if _, err := states.Open(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	counted := &failures{count: map[string]int{}}
	s, err := limitstore.New(limitstore.Options{States: states, Metrics: counted, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	denied, allowed, local := limit("denied", 1, time.Hour, 10, 0), limit("allowed", 1, time.Hour, 3, 2), limit("local", 0, 0, 0, 1)
	allowed.FailOpen, local.Local = true, true
	_, running := take(t, s, "k", allowed)
	take(t, s, "k", denied)

	if err := database.Stop(); err != nil {
		t.Fatal(err)
	}
	// The local limit is released if the call is denied.
	for range 2 {
		charges := []ratelimit.Charge{{Limit: denied, Key: "k", MaxDuration: time.Minute}, {Limit: allowed, Key: "k", MaxDuration: time.Minute}, {Limit: local, Key: "k", MaxDuration: time.Minute}}
		if rejection, err := s.Take(t.Context(), charges); rejection != nil || err == nil || !strings.Contains(err.Error(), "limit store: PostgreSQL at 127.0.0.1:"+database.Port) {
			t.Fatalf("rejection %+v, error %v", rejection, err)
		}
	}
	// Memory counts meanwhile. Places are released where they were taken.
	_, first := take(t, s, "k", allowed, local)
	_, second := take(t, s, "k", allowed)
	if rejection, _ := take(t, s, "k", allowed); rejection == nil || !rejection.ConcurrencyExceeded {
		t.Errorf("rejection %+v", rejection)
	}
	s.Release(first)
	if rejection, _ := take(t, s, "k", allowed); rejection != nil {
		t.Errorf("rejection %+v", rejection)
	}
	if rejection, _ := take(t, s, "k", allowed); rejection == nil {
		t.Error("memory does not count the rate")
	}
	if want := map[string]int{observe.UncountedDenied: 2, observe.UncountedAllowed: 5}; !maps.Equal(counted.count, want) {
		t.Errorf("metrics %v, want %v", counted.count, want)
	}
	s.Release(running)

	if err := database.Restart(); err != nil {
		t.Fatal(err)
	}
	s.Release(second)
	for i := range 2 {
		if rejection, _ := take(t, s, "k", allowed); rejection != nil {
			t.Errorf("call %d after the failure: %+v", i, rejection)
		}
	}
	if rejection, _ := take(t, s, "k", allowed); rejection == nil {
		t.Error("the database has forgotten the first call")
	}
	for _, message := range []string{"msg=\"reach limit store\"", "msg=\"limit store reached again\""} {
		if strings.Count(log.String(), message) != 1 {
			t.Errorf("%s is not logged once:\n%s", message, log.String())
		}
	}
}

// emptyStore lets every call through.
type emptyStore struct{ call.LimitStore }

func (emptyStore) Take(context.Context, []call.LimitCharge) (call.LimitVerdict, error) {
	return call.LimitVerdict{Taken: true}, nil
}

func TestUsage(t *testing.T) {
	t.Parallel()
	shared, local := limit("shared", 1, time.Hour, 4, 0), limit("local", 0, 0, 0, 4)
	local.Local = true
	for name, row := range map[string]struct {
		options limitstore.Options
		want    [2]string
	}{
		"one process":          {limitstore.Options{}, [2]string{"{false  1 [{k false false 0.25}] []}", "{false  1 [] [{k false false 0.25}]}"}},
		"a file":               {limitstore.Options{States: &state.Lazy{}}, [2]string{"{false  1 [{k false false 0.25}] []}", "{false  1 [] [{k false false 0.25}]}"}},
		"store of the program": {limitstore.Options{Shared: &call.SharedLimits{Store: emptyStore{}, Secret: make([]byte, 32)}}, [2]string{"{true counted in a store that does not list its keys 0 [] []}", "{false  1 [] [{k false false 0.25}]}"}},
	} {
		row.options.Now, row.options.Logger = newClock().now, slog.New(slog.DiscardHandler)
		s, err := limitstore.New(row.options)
		if err != nil {
			t.Fatal(err)
		}
		take(t, s, "k", shared, local)
		u := s.Usage([]*ratelimit.Limit{shared, local}, 10, keys())
		if got := [2]string{fmt.Sprint(u[0]), fmt.Sprint(u[1])}; got != row.want {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}
