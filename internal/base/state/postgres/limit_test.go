package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
)

// rate is a charge of a limit that allows n calls within the time of a test.
func rate(key string, n int) call.LimitCharge {
	return call.LimitCharge{Limit: "l", Key: key, Calls: 1, Per: 24 * time.Hour, Burst: n}
}

func placed(key, place string, n int) call.LimitCharge {
	return call.LimitCharge{Limit: "l", Key: key, Concurrency: n, Place: place, Hold: time.Minute}
}

func wantTake(t testing.TB, s *store, taken bool, charges ...call.LimitCharge) call.LimitVerdict {
	t.Helper()
	v, err := s.counter.Take(context.Background(), charges)
	if err != nil || v.Taken != taken {
		t.Fatalf("take: %+v, %v; want taken %v", v, err, taken)
	}
	return v
}

// manualClock is a manual clock. It is safe for concurrent use.
type manualClock struct{ nanos atomic.Int64 }

func (c *manualClock) now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *manualClock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// withClock returns two replicas whose limits go by a clock that starts now.
func withClock(t testing.TB) (a, b *store, clock *manualClock) {
	t.Helper()
	clock = &manualClock{}
	clock.nanos.Store(time.Now().UnixNano())
	stores := replicas(t, 2, state.Options{Now: clock.now})
	return stores[0], stores[1], clock
}

// Three replicas with 16 callers each charge one key. The overshoot is zero.
func TestCounter_exact(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	each := func(call func(s *store, name string)) {
		var all sync.WaitGroup
		for n, s := range stores {
			for caller := range 16 {
				all.Go(func() {
					for i := range 20 {
						call(s, fmt.Sprintf("%d-%d-%d", n, caller, i))
					}
				})
			}
		}
		all.Wait()
	}
	var taken, running, placesTaken atomic.Int64
	each(func(s *store, name string) {
		v, err := s.counter.Take(context.Background(), []call.LimitCharge{rate("rate", 600)})
		if err != nil {
			t.Error(err)
		}
		if v.Taken {
			taken.Add(1)
		}
	})
	if taken.Load() != 600 {
		t.Errorf("%d calls were taken, want 600", taken.Load())
	}
	each(func(s *store, name string) {
		charges := []call.LimitCharge{rate("other", 1000), placed("places", name, 5)}
		v, err := s.counter.Take(context.Background(), charges)
		if err != nil || !v.Taken && !v.Busy {
			t.Error(v, err)
		}
		if err != nil || !v.Taken {
			return
		}
		placesTaken.Add(1)
		if n := running.Add(1); n > 5 {
			t.Errorf("%d calls run at once, more than 5", n)
		}
		running.Add(-1)
		if err := s.counter.Release(context.Background(), charges); err != nil {
			t.Error(err)
		}
	})
	for i := range 5 {
		wantTake(t, stores[i%3], true, placed("places", strconv.Itoa(i), 5))
	}
	if v := wantTake(t, stores[2], false, placed("places", "more", 5)); !v.Busy || v.Wait != time.Second {
		t.Errorf("verdict %+v", v)
	}
	t.Logf("%d calls of %d ran, 5 at once", placesTaken.Load(), 3*16*20)
}

// Replicas that charge several keys in different orders do not wait for each other.
func TestCounter_noDeadlock(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	var all sync.WaitGroup
	var taken atomic.Int64
	for n, s := range stores {
		for caller := range 8 {
			all.Go(func() {
				for i := range 40 {
					charges := []call.LimitCharge{rate("all", 500), rate(fmt.Sprint("new", i), 1000), rate(fmt.Sprint("own", caller), 1000)}
					slices.Reverse(charges[n%2:])
					v, err := s.counter.Take(context.Background(), charges)
					if err != nil {
						t.Error(err)
					}
					if v.Taken {
						taken.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if taken.Load() != 500 {
		t.Errorf("%d calls were taken, want 500", taken.Load())
	}
}

func TestCounter_deadReplica(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	a, b, c := stores[0], stores[1], stores[2]
	wantTake(t, a, true, placed("k", "a1", 2))
	wantTake(t, a, true, placed("k", "a2", 2))
	wantTake(t, b, false, placed("k", "b1", 2))
	silence(t, a)
	check(t, b.beat())
	wantTake(t, b, true, placed("k", "b1", 2))

	// The calls of a still run, and count again as soon as a returns.
	check(t, a.beat())
	wantTake(t, c, false, placed("k", "c1", 2))
	check(t, a.counter.Release(t.Context(), []call.LimitCharge{placed("k", "a1", 2)}))
	wantTake(t, c, false, placed("k", "c1", 2))
	check(t, a.counter.Release(t.Context(), []call.LimitCharge{placed("k", "a2", 2)}))
	wantTake(t, c, true, placed("k", "c1", 2))

	// A replica that is closed holds no place.
	check(t, b.Close())
	wantTake(t, a, true, placed("k", "a3", 2))
	wantTake(t, a, false, placed("k", "a4", 2))
}

// The place of a call that runs for too long is free, at the replica of the call and at others.
func TestCounter_hold(t *testing.T) {
	a, b, clock := withClock(t)
	wantTake(t, a, true, placed("k", "a1", 1))
	clock.advance(time.Minute - 1)
	wantTake(t, a, false, placed("k", "a2", 1))
	wantTake(t, b, false, placed("k", "b1", 1))
	clock.advance(1)
	wantTake(t, b, true, placed("k", "b1", 1))
	clock.advance(time.Minute)
	wantTake(t, a, true, placed("k", "a2", 1))
	check(t, a.counter.Release(t.Context(), []call.LimitCharge{placed("k", "a1", 1), placed("k", "unknown", 1)}))
	wantTake(t, b, false, placed("k", "b2", 1))
}

// A caller may leave while the database decides.
func TestCounter_abandonedTake(t *testing.T) {
	s := replicas(t, 1, state.Options{})[0]
	wantTake(t, s, true, placed("k", "first", 1))
	check(t, s.counter.Release(t.Context(), []call.LimitCharge{placed("k", "first", 1)}))
	beside, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	check(t, err)
	defer beside.Close(context.Background())
	tx, err := beside.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), s.q(`SELECT 1 FROM {s}.counters FOR UPDATE`))
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.counter.Take(ctx, []call.LimitCharge{placed("k", "second", 1)})
		left <- err
	}()
	waitForLock(t, beside)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	check(t, s.counter.Release(t.Context(), []call.LimitCharge{placed("k", "second", 1)}))
	check(t, tx.Rollback(t.Context()))
	wantTake(t, s, true, placed("k", "third", 1))
	wantTake(t, s, false, placed("k", "fourth", 1))
}

// The result of a statement is lost with its connection: the database has a place that no call holds.
func TestCounter_lostResult(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	wantTake(t, a, true, placed("other", "a1", 1))
	execute(t, a, `INSERT INTO {s}.places VALUES ($1, $2, 1, $3)`, []byte(counterKey("l", "k")), a.me.fence, time.Now().Add(time.Hour).UnixNano())
	wantTake(t, b, false, placed("k", "b1", 1))
	execute(t, a, `SELECT pg_terminate_backend($1::integer)`, int(a.counter.conn.PgConn().PID()))
	wantTake(t, a, true, placed("k", "a2", 1))
	wantTake(t, b, false, placed("other", "b1", 1))
	check(t, a.counter.Release(t.Context(), []call.LimitCharge{placed("k", "a2", 1)}))
	wantTake(t, b, true, placed("k", "b1", 1))
}

// waitForLock waits until another connection waits for a lock.
func waitForLock(t *testing.T, c *pgx.Conn) {
	t.Helper()
	for waiting := false; !waiting; {
		check(t, c.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%count_1%' AND pid <> pg_backend_pid())`).Scan(&waiting))
	}
}

// A crash of the database empties the tables. Replicas write the places of running calls again, and
// rates begin anew. After a restart, everything is as before.
func TestCounter_databaseRestart(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, os.Getenv(needed))
	url := server.URL("postgres", "")
	a := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	b := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	wantTake(t, a, true, rate("rate", 1), placed("k", "a1", 2))
	check(t, server.Stop())
	if _, err := a.counter.Take(t.Context(), []call.LimitCharge{rate("rate", 1)}); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("error %v", err)
	}
	check(t, server.Restart())
	wantTake(t, b, false, rate("rate", 1))
	wantTake(t, b, true, placed("k", "b1", 2))
	wantTake(t, b, false, placed("k", "b2", 2))

	check(t, server.Kill())
	check(t, server.Restart())
	check(t, a.beat())
	for rows := 0; rows == 0; {
		// The heartbeat does not wait for the batch.
		check(t, b.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, b.q(`SELECT count(*) FROM {s}.places WHERE replica = $1`), a.me.fence).Scan(&rows)
		}))
	}
	wantTake(t, b, true, rate("rate", 1))
	wantTake(t, b, false, placed("k", "b2", 2))
	check(t, a.counter.Release(t.Context(), []call.LimitCharge{placed("k", "a1", 2)}))
	wantTake(t, b, true, placed("k", "b2", 2))
}

// Keys beyond the bound share a counter for each limit, and keys with a counter keep it.
func TestCounter_manyKeys(t *testing.T) {
	s := opened(t, state.Database{URL: newURL(t)}, state.Options{}, hooks{frozen: true, counters: 3})
	for _, key := range []string{"a", "b", "c"} {
		wantTake(t, s, true, rate(key, 1))
	}
	wantTake(t, s, false, rate("a", 1))
	wantTake(t, s, true, rate("d", 2))
	wantTake(t, s, true, rate("e", 2))
	wantTake(t, s, false, rate("f", 2))
	wantTake(t, s, false, rate("b", 1), rate("f", 2))
}

// A limit whose keys callers choose fills its own share, and not that of another limit.
func TestCounter_manyKeysOfOneLimit(t *testing.T) {
	url := newURL(t)
	a := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true, counters: 3})
	for i := range 10 {
		wantTake(t, a, true, rate(fmt.Sprint("chosen", i), 20))
	}
	other := func(key string) call.LimitCharge {
		return call.LimitCharge{Limit: "other", Key: key, Calls: 1, Per: 24 * time.Hour, Burst: 1}
	}
	for _, key := range []string{"x", "y"} {
		wantTake(t, a, true, other(key))
		wantTake(t, a, false, other(key))
	}
	b := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true, counters: 3})
	if _, err := b.SharedLimits(); err != nil { // reads how many counters there are
		t.Fatal(err)
	}
	wantTake(t, b, true, other("z"))
	wantTake(t, b, false, other("z"))
}

// A limit with a rate and a concurrency has one counter for keys beyond the bound: a later leg, which has no rate,
// counts with the first legs of other calls.
func TestCounter_manyKeysLaterLeg(t *testing.T) {
	s := opened(t, state.Database{URL: newURL(t)}, state.Options{}, hooks{frozen: true, counters: 1})
	wantTake(t, s, true, rate("first", 1))
	first := placed("x", "x1", 1)
	first.Calls, first.Per, first.Burst = 10, time.Hour, 10
	wantTake(t, s, true, first)
	later := placed("y", "y1", 1)
	wantTake(t, s, false, later)
	check(t, s.counter.Release(t.Context(), []call.LimitCharge{first}))
	wantTake(t, s, true, later)
}

// A place that is released again frees no other place, and needs no request.
func TestCounter_releaseAgain(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	wantTake(t, a, true, placed("k", "a1", 2))
	wantTake(t, a, true, placed("k", "a2", 2))
	check(t, a.counter.Release(t.Context(), []call.LimitCharge{placed("k", "a1", 2)}))
	a.counter.mu.Lock()
	stale := len(a.counter.stale)
	a.counter.mu.Unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.counter.Release(ended, []call.LimitCharge{placed("k", "a1", 2)}); err != nil || stale != 0 {
		t.Errorf("released again: %v, with %d keys to write", err, stale)
	}
	wantTake(t, b, true, placed("k", "b1", 2))
	wantTake(t, b, false, placed("k", "b2", 2))
}

func TestCounter_sweepWithoutOldest(t *testing.T) {
	a, b, clock := withClock(t)
	short := rate("short", 1)
	short.Per = time.Second
	wantTake(t, b, true, short)
	clock.advance(2 * time.Minute)
	check(t, a.beat())
	check(t, b.beat())
	execute(t, a, `UPDATE {s}.replicas SET beat = beat - 6000 WHERE id = $1`, a.me.id)
	check(t, b.Sweep())
	var rows int
	check(t, b.pool.QueryRow(t.Context(), b.q(`SELECT count(*) FROM {s}.counters`)).Scan(&rows))
	if rows != 0 {
		t.Errorf("there are still %d counters", rows)
	}
}

func TestCounter_sweep(t *testing.T) {
	a, b, clock := withClock(t)
	short := rate("short", 1)
	short.Per = time.Second
	long := placed("held", "a1", 1)
	long.Hold = time.Hour
	wantTake(t, a, true, short)
	wantTake(t, b, true, placed("free", "b1", 1))
	check(t, b.counter.Release(t.Context(), []call.LimitCharge{placed("free", "b1", 1)}))
	wantTake(t, a, true, rate("busy", 1))
	wantTake(t, a, true, long)
	rows := func(want string) {
		t.Helper()
		var got string
		check(t, a.pool.QueryRow(t.Context(), a.q(`SELECT (SELECT count(*) FROM {s}.counters) || ' ' || (SELECT count(*) FROM {s}.places)`)).Scan(&got))
		if got != want {
			t.Errorf("%s counters and places, want %s", got, want)
		}
	}
	rows("4 2")
	clock.advance(2 * time.Minute)
	check(t, a.beat())
	check(t, b.Sweep())
	rows("4 2") // the oldest replica sweeps
	check(t, a.beat())
	check(t, a.Sweep())
	rows("2 1")
	if n := a.counter.rows[counterKey("l", "")[:nameSize]]; n != 2 {
		t.Errorf("a has noted %d counters", n)
	}
	wantTake(t, b, false, long)
	wantTake(t, b, false, rate("busy", 1))
	wantTake(t, b, true, short)
}

func TestCounter_extremes(t *testing.T) {
	s := replicas(t, 1, state.Options{})[0]
	const most = int(^uint(0) >> 1)
	huge := call.LimitCharge{Limit: "l", Key: strings.Repeat("k", 1<<16), Calls: 1, Per: 1<<63 - 1, Burst: most, Concurrency: most, Place: "p", Hold: 1<<63 - 1}
	wantTake(t, s, true, huge)
	wantTake(t, s, false, huge) // an interval is at most 58 years
	wantTake(t, s, true, call.LimitCharge{Key: "", Calls: most, Per: 1, Burst: 0})
	wantTake(t, s, true)
	wantTake(t, s, true, call.LimitCharge{Key: "\xff\x00", Calls: -1, Per: -1, Burst: -1, Concurrency: -1, Hold: -1})
}

func TestSharedLimits_secret(t *testing.T) {
	url := newURL(t)
	secret := func(keys ...string) []byte {
		t.Helper()
		s := opened(t, state.Database{URL: url, Keys: keys}, state.Options{}, hooks{frozen: true})
		limits, err := s.SharedLimits()
		check(t, err)
		var stored []byte
		check(t, s.pool.QueryRow(t.Context(), s.q(`SELECT secret FROM {s}.secrets`)).Scan(&stored))
		if len(limits.Secret) != 32 || bytes.Contains(stored, limits.Secret) != (len(keys) == 0) {
			t.Errorf("a secret of %d bytes", len(limits.Secret))
		}
		return limits.Secret
	}
	first := secret("a key of many characters")
	for _, keys := range [][]string{{"a key of many characters"}, {"the next key", "a key of many characters"}, {"the next key"}} {
		if !bytes.Equal(secret(keys...), first) {
			t.Errorf("another secret with %d keys", len(keys))
		}
	}
	other := opened(t, state.Database{URL: url, Keys: []string{"a third key"}}, state.Options{}, hooks{frozen: true})
	if _, err := other.SharedLimits(); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("error %v", err)
	}
	url = newURL(t)
	if plain := secret(); bytes.Equal(plain, first) || !bytes.Equal(secret(), plain) {
		t.Error("fleets share a secret, or replicas do not")
	}
}

// The figures are of a call: one Take and, with a place, one Release. p50-µs is the median of one client.
func BenchmarkLimit(b *testing.B) {
	for _, keys := range []string{"one key", "many keys"} {
		for _, charged := range []string{"rate", "place"} {
			for _, clients := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s/%s/clients=%d", keys, charged, clients), func(b *testing.B) {
					benchmarkLimit(b, keys == "many keys", charged == "place", clients)
				})
			}
		}
	}
}

func benchmarkLimit(b *testing.B, many, place bool, clients int) {
	s := replicas(b, 1, state.Options{})[0]
	var n atomic.Int64
	took := make([][]time.Duration, clients)
	var all sync.WaitGroup
	work := func(client int) {
		for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
			c := call.LimitCharge{Limit: "l", Key: "one", Hold: time.Minute}
			if many {
				c.Key = strconv.FormatInt(i%10_000, 10)
			}
			if place {
				c.Concurrency, c.Place = 1000, strconv.FormatInt(i, 10)
			} else {
				c.Calls, c.Per, c.Burst = 1_000_000, time.Second, 1_000_000
			}
			start := time.Now()
			v, err := s.counter.Take(context.Background(), []call.LimitCharge{c})
			if err == nil && place {
				err = s.counter.Release(context.Background(), []call.LimitCharge{c})
			}
			took[client] = append(took[client], time.Since(start))
			if err != nil || !v.Taken {
				b.Error(v, err)
				return
			}
		}
	}
	b.ResetTimer()
	for client := range clients {
		all.Go(func() { work(client) })
	}
	all.Wait()
	b.StopTimer()
	together := slices.Concat(took...)
	slices.Sort(together)
	b.ReportMetric(float64(together[len(together)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(together[len(together)*99/100].Microseconds()), "p99-µs")
}

// Counters are read while calls hold their rows, and the keys beyond the bound are one entry.
func TestCounter_usage(t *testing.T) {
	s := opened(t, state.Database{URL: newURL(t)}, state.Options{}, hooks{frozen: true, counters: 2})
	limit := rate("", 10)
	for _, key := range []string{"a", "b", "b", "c", "d", "e"} {
		wantTake(t, s, true, rate(key, 10))
	}
	other := rate("a", 10)
	other.Limit = "m"
	wantTake(t, s, true, other)
	beside, err := pgx.ConnectConfig(t.Context(), s.config.Copy())
	check(t, err)
	defer beside.Close(context.Background())
	tx, err := beside.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), s.q(`SELECT 1 FROM {s}.counters FOR UPDATE`))
	check(t, err)
	usages, err := s.counter.LimitUsage([]call.LimitCharge{limit, {Limit: "none", Concurrency: 1}}, 2)
	check(t, err)
	if len(usages) != 2 || usages[0].Keys != 3 || len(usages[0].Rate) != 2 || usages[1].Keys != 0 {
		t.Fatalf("got %+v", usages)
	}
	stored := rate("b", 10)
	if rest, b := usages[0].Rate[0], usages[0].Rate[1]; !rest.Rest || rest.Share <= b.Share || b.Rest || b.Key != s.counter.StoredKey(&stored) {
		t.Errorf("got %+v", usages[0].Rate)
	}
	check(t, tx.Rollback(t.Context()))
}

// Running calls count until their hold ends, if their replica exists.
func TestCounter_usageOfPlaces(t *testing.T) {
	a, b, clock := withClock(t)
	limit := placed("", "", 4)
	want := func(want string) {
		t.Helper()
		usages, err := a.counter.LimitUsage([]call.LimitCharge{limit}, 10)
		check(t, err)
		var shares []float64
		for _, share := range usages[0].Concurrency {
			shares = append(shares, share.Share)
		}
		if got := fmt.Sprint(shares); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	wantTake(t, a, true, placed("k", "a1", 4))
	wantTake(t, b, true, placed("k", "b1", 4))
	clock.advance(time.Second)
	wantTake(t, a, true, placed("l", "a2", 4))
	want("[0.5 0.25]")
	clock.advance(time.Minute - 1)
	want("[0.25]")
	wantTake(t, b, true, placed("l", "b2", 4), placed("m", "b3", 4))
	want("[0.5 0.25]")
	check(t, b.Close())
	want("[0.25]")
}
