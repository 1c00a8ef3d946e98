package limitstore_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/limitstore"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
)

// keys returns the known keys of each limit.
func keys(list ...string) func(*ratelimit.Limit) iter.Seq[string] {
	return func(*ratelimit.Limit) iter.Seq[string] { return slices.Values(list) }
}

// describe returns the keys of a usage in words.
func describe(u ratelimit.Usage) string {
	words := []string{fmt.Sprint(u.Keys, " keys")}
	for _, shares := range [][]ratelimit.KeyShare{u.Rate, u.Concurrency} {
		for _, k := range shares {
			switch {
			case k.Rest:
				k.Key = "rest"
			case k.Hashed:
				k.Key = "hash"
			}
			words = append(words, fmt.Sprintf("%q %.2f", k.Key, k.Share))
		}
		words = append(words, "|")
	}
	return strings.Join(words, " ")
}

func TestUsage_replicas(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	c, url := newClock(), database.URL("postgres", "schema=usage")
	a, b := inDatabase(t, url, c.now), inDatabase(t, url, c.now)
	long := strings.Repeat("long", 100)
	both := limit("'; DROP TABLE counters; --", 1, time.Hour, 4, 8)
	limits := []*ratelimit.Limit{both, limit("\x00\xff%_ \u202e", 1, time.Hour, 2, 0), limit(long, 0, 0, 0, 3), limit("unused", 1, time.Hour, 2, 2)}
	for range 3 {
		take(t, a, "ada", both)
	}
	_, ended := take(t, b, "bob", both)
	take(t, b, "eve", limits[1])
	take(t, a, "ada", limits[2])
	take(t, b, "ada", limits[2])
	want := []string{`2 keys "ada" 0.75 "hash" 0.25 | "ada" 0.38 "hash" 0.12 |`, `1 keys "hash" 0.50 | |`, `1 keys | "ada" 0.67 |`, `0 keys | |`}
	for name, s := range map[string]ratelimit.Store{"a": a, "b": b} {
		for i, u := range s.Usage(limits, 10, keys("unknown", "ada")) {
			if got := describe(u); got != want[i] || !u.Shared || u.Problem != "" {
				t.Errorf("%s, limit %d: got %s %q, want %s", name, i, got, u.Problem, want[i])
			}
		}
	}

	// Burst recovers, and places become free. The hash of a key stays the same.
	hash := a.Usage(limits, 10, keys())[0].Rate[1].Key
	b.Release(ended)
	c.advance(30 * time.Minute)
	u := b.Usage(limits[:1], 1, keys("bob"))[0]
	if got, want := describe(u), `2 keys "hash" 0.62 | "hash" 0.38 |`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	u = a.Usage(limits[:1], 10, keys("ada"))[0]
	if u.Rate[1].Key != hash {
		t.Error("the hash of a key has changed")
	}
	c.advance(4 * time.Hour)
	if got := describe(a.Usage(limits[:1], 10, keys("ada"))[0]); got != "2 keys | |" {
		t.Errorf("got %s", got)
	}
}

// The counters of a limit before an edit are hashes. They may be of arguments, which must not be confirmed by
// a key that is known now.
func TestUsage_afterEdit(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	c := newClock()
	s := inDatabase(t, database.URL("postgres", ""), c.now)
	for _, edited := range []string{"rate", "key", "file"} {
		before, now := limit(edited, 2, time.Hour, 4, 4), limit(edited, 2, time.Hour, 4, 4)
		before.Key, now.Key = "string(args.name)", "string(args.name)"
		switch edited {
		case "rate":
			before.Rate.Calls = 1
		case "key":
			now.Key = "string(principal.claims.name)"
		case "file":
			now.Operator = true
		}
		for range 3 {
			take(t, s, "ada", before)
		}
		if got := describe(s.Usage([]*ratelimit.Limit{now}, 10, keys("ada"))[0]); strings.Contains(got, "ada") || !strings.HasPrefix(got, `1 keys "hash"`) {
			t.Errorf("%s: before a call, got %s", edited, got)
		}
		c.advance(5 * time.Second)
		take(t, s, "ada", now)
		got := describe(s.Usage([]*ratelimit.Limit{now}, 10, keys("ada"))[0])
		if !strings.HasPrefix(got, `2 keys "hash" `) || !strings.HasSuffix(got, ` "ada" 0.25 | "hash" 0.75 "ada" 0.25 |`) {
			t.Errorf("%s: got %s", edited, got)
		}
	}
}

// A database that hangs does not hold an operator, and is asked again after a while.
func TestUsage_databaseHangs(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	c := newClock()
	s := inDatabase(t, database.URL("postgres", "schema=hangs"), c.now)
	limits := []*ratelimit.Limit{limit("l", 1, time.Hour, 4, 0), limit("m", 1, time.Hour, 4, 0)}
	take(t, s, "k", limits[0])
	locker, err := pgx.Connect(t.Context(), database.URL("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close(context.Background())
	if _, err := locker.Exec(t.Context(), `BEGIN; LOCK TABLE hangs.counters`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, u := range s.Usage(limits, 10, keys("k")) {
			if !u.Shared || !strings.Contains(u.Problem, "did not answer") || u.Keys+len(u.Rate) != 0 {
				t.Errorf("got %+v", u)
			}
		}
	}
	if _, err := locker.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(limits[:1], 10, keys("k"))[0]; u.Problem == "" {
		t.Error("a failed read is repeated at once")
	}
	c.advance(5 * time.Second)
	if got, want := describe(s.Usage(limits, 10, keys("k"))[0]), `1 keys "k" 0.25 | |`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// listingStore records which limits are read.
type listingStore struct {
	emptyStore
	mu      sync.Mutex
	reads   []string
	reading bool
	twice   bool // two reads were under way
}

func (l *listingStore) LimitUsage(limits []call.LimitCharge, _ int) ([]state.LimitUsage, error) {
	l.mu.Lock()
	l.twice, l.reading = l.twice || l.reading, true
	for _, limit := range limits {
		l.reads = append(l.reads, limit.Limit)
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reading = false
	}()
	return make([]state.LimitUsage, len(limits)), nil
}

func (l *listingStore) StoredKey(charge *call.LimitCharge) string { return charge.Key }

func TestUsage_reads(t *testing.T) {
	t.Parallel()
	store, c := &listingStore{}, newClock()
	s, err := limitstore.New(limitstore.Options{Shared: &call.SharedLimits{Store: store, Secret: make([]byte, 32)}, Now: c.now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var limits []*ratelimit.Limit
	for i := range 101 {
		limits = append(limits, limit(fmt.Sprint(i), 1, time.Hour, 1, 0))
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { s.Usage(limits[:2], 10, keys()) })
	}
	all.Wait()
	c.advance(5*time.Second - 1)
	s.Usage(limits[:3], 10, keys())
	if got := fmt.Sprint(store.reads, store.twice); got != "[0 1 2] false" {
		t.Errorf("reads %s", got)
	}
	c.advance(1)
	s.Usage(limits[:3], 10, keys())
	if got := fmt.Sprint(store.reads); got != "[0 1 2 0 1]" {
		t.Errorf("reads %s", got)
	}
	// The number of limits of an answer is bounded.
	usages := s.Usage(limits, 10, keys())
	if usages[99].Problem != "" || !strings.Contains(usages[100].Problem, "the first 100 limits") || slices.Contains(store.reads, "100") {
		t.Errorf("got %+v, %+v", usages[99], usages[100])
	}
}
