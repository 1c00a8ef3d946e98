package limitstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/postgres"
	"github.com/mcpd/mcpd/internal/execution/limitstore"
	"github.com/mcpd/mcpd/internal/execution/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a manual clock.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func limit(name string, calls int, per time.Duration, burst, concurrency int) *ratelimit.Limit {
	return &ratelimit.Limit{ID: ratelimit.ID{Name: name, Rate: ratelimit.Rate{Calls: calls, Per: per}}, Burst: burst, Concurrency: concurrency}
}

// take charges one key of each limit.
func take(t testing.TB, s ratelimit.Store, key string, limits ...*ratelimit.Limit) (*ratelimit.Rejection, []ratelimit.Charge) {
	t.Helper()
	charges := make([]ratelimit.Charge, len(limits))
	for i, l := range limits {
		charges[i] = ratelimit.Charge{Limit: l, Key: key, MaxDuration: time.Hour}
	}
	rejection, err := s.Take(context.Background(), charges)
	if err != nil {
		t.Fatal(err)
	}
	return rejection, charges
}

// The tests compare the stores with a model that fills all token buckets step by step.
func TestMemory_model(t *testing.T) {
	for seed := range uint64(200) {
		c := newClock()
		if message := compare(t, rand.New(rand.NewPCG(seed, 1)), c, nil, ratelimit.NewMemory(c.now)); message != "" {
			t.Fatalf("seed %d: %s", seed, message)
		}
	}
}

func FuzzMemory(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		c := newClock()
		if message := compare(t, rand.New(rand.NewPCG(a, b)), c, nil, ratelimit.NewMemory(c.now)); message != "" {
			t.Fatal(message)
		}
	})
}

func TestPostgreSQL_model(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	for seed := range uint64(8) {
		c, url := newClock(), database.URL("postgres", fmt.Sprintf("schema=model_%d", seed))
		a, b := inDatabase(t, url, c.now), inDatabase(t, url, c.now)
		if message := compare(t, rand.New(rand.NewPCG(seed, 1)), c, ratelimit.NewMemory(c.now), a, b); message != "" {
			t.Fatalf("seed %d: %s", seed, message)
		}
	}
}

// inDatabase returns a store that counts in a database.
func inDatabase(t *testing.T, url string, now func() time.Time) ratelimit.Store {
	t.Helper()
	states := &state.Lazy{
		OpenDatabase: postgres.Open, Options: state.Options{Now: now}, InDatabase: func() bool { return true },
		Database: func() (*state.Database, error) { return &state.Database{URL: url}, nil },
	}
	t.Cleanup(func() { states.Close() })
	if _, err := states.Open(); err != nil {
		t.Fatal(err)
	}
	s, err := limitstore.New(limitstore.Options{States: states, Now: now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// modelBucket is a textbook token bucket: one token returns per interval, counted from the time
// when the bucket was last full.
type modelBucket struct {
	tokens  int
	since   time.Time // start of the interval of the next token
	running int
}

// history is one history of calls, in stores that count together and in the model.
type history struct {
	// memory, if not nil, must reject calls with the same wait.
	memory  ratelimit.Store
	random  *rand.Rand
	clock   *clock
	stores  []ratelimit.Store
	limits  []*ratelimit.Limit
	model   map[string]*modelBucket
	running []modelCall
}

// modelCall is a running call.
type modelCall struct {
	store      ratelimit.Store
	charges    []ratelimit.Charge
	remembered []ratelimit.Charge // in memory
	buckets    []*modelBucket
}

// compare makes random calls and returns the first difference between the stores and the model.
func compare(t testing.TB, random *rand.Rand, c *clock, memory ratelimit.Store, stores ...ratelimit.Store) string {
	x := &history{random: random, clock: c, memory: memory, stores: stores, model: map[string]*modelBucket{}}
	for i := range 1 + random.IntN(3) {
		x.limits = append(x.limits, limit(fmt.Sprint(i), random.IntN(4)*50, time.Minute, 1+random.IntN(5), random.IntN(4)))
	}
	for step := range 500 {
		c.advance(time.Duration(random.Int64N(int64(2 * time.Second))))
		if len(x.running) > 0 && random.IntN(3) == 0 {
			x.end(random.IntN(len(x.running)))
		} else if message := x.begin(t); message != "" {
			return fmt.Sprintf("step %d: %s", step, message)
		}
	}
	return ""
}

// end ends a running call.
func (h *history) end(i int) {
	h.running[i].store.Release(h.running[i].charges)
	if h.memory != nil {
		h.memory.Release(h.running[i].remembered)
	}
	for _, b := range h.running[i].buckets {
		b.running--
	}
	h.running = append(h.running[:i], h.running[i+1:]...)
}

// begin makes a call.
func (h *history) begin(t testing.TB) string {
	charged, key := h.limits[h.random.IntN(len(h.limits)):], fmt.Sprint(h.random.IntN(3))
	store := h.stores[h.random.IntN(len(h.stores))]
	rejection, charges := take(t, store, key, charged...)
	buckets, allowed := make([]*modelBucket, len(charged)), true
	for i, l := range charged {
		b := h.model[l.Name+key]
		if b == nil {
			b = &modelBucket{tokens: l.Burst}
			h.model[l.Name+key] = b
		}
		b.fill(l, h.clock.now())
		buckets[i] = b
		allowed = allowed && b.tokens > 0 && (l.Concurrency == 0 || b.running < l.Concurrency)
	}
	if allowed != (rejection == nil) {
		return fmt.Sprintf("the store says %+v, the model %v", rejection, allowed)
	}
	var remembered []ratelimit.Charge
	if h.memory != nil {
		var want *ratelimit.Rejection
		want, remembered = take(t, h.memory, key, charged...)
		if want != nil && (want.RetryAfter != rejection.RetryAfter || want.ConcurrencyExceeded != rejection.ConcurrencyExceeded) {
			return fmt.Sprintf("the store says %+v, memory %+v", rejection, want)
		}
	}
	if !allowed {
		return ""
	}
	for i, l := range charged {
		buckets[i].take(l, h.clock.now())
	}
	h.running = append(h.running, modelCall{store, charges, remembered, buckets})
	return ""
}

// interval is the time until one more call is possible.
func interval(l *ratelimit.Limit) time.Duration {
	calls := time.Duration(l.Rate.Calls)
	return (l.Rate.Per + calls - 1) / calls
}

// take takes a token, and starts the interval of a full bucket.
func (b *modelBucket) take(l *ratelimit.Limit, now time.Time) {
	if b.tokens == l.Burst {
		b.since = now
	}
	b.tokens--
	b.running++
}

// fill adds the tokens that have returned by now.
func (b *modelBucket) fill(l *ratelimit.Limit, now time.Time) {
	if l.Rate.Calls == 0 {
		b.tokens = l.Burst
		return
	}
	for b.tokens < l.Burst && !b.since.Add(interval(l)).After(now) {
		b.tokens++
		b.since = b.since.Add(interval(l))
	}
}
