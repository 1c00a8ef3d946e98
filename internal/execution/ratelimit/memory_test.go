package ratelimit

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a manual clock.
type clock struct{ at time.Time }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func limit(name string, calls int, per time.Duration, burst, concurrency int) *Limit {
	return &Limit{ID: ID{Name: name, Rate: Rate{calls, per}}, Burst: burst, Concurrency: concurrency}
}

// take charges one key of each limit.
func take(m *Memory, key string, limits ...*Limit) (*Rejection, []Charge) {
	charges := make([]Charge, len(limits))
	for i, l := range limits {
		charges[i] = Charge{Limit: l, Key: key}
	}
	rejection, _ := m.Take(context.Background(), charges)
	return rejection, charges
}

func TestMemory_burst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := NewMemory(time.Now), limit("l", 60, time.Minute, 3, 0)
		for i := range 3 {
			if rejection, _ := take(m, "a", l); rejection != nil {
				t.Fatalf("call %d of the burst is rejected: %s", i, rejection.Message())
			}
		}
		rejection, _ := take(m, "a", l)
		if rejection == nil || rejection.RetryAfter != time.Second || rejection.ConcurrencyExceeded {
			t.Fatalf("the call after the burst: %+v, want a wait of 1s", rejection)
		}
		time.Sleep(rejection.RetryAfter - time.Nanosecond)
		if rejection, _ := take(m, "a", l); rejection == nil || rejection.RetryAfter != 1 {
			t.Errorf("a call that is a nanosecond early: %+v", rejection)
		}
		time.Sleep(time.Nanosecond)
		if rejection, _ := take(m, "a", l); rejection != nil {
			t.Errorf("a call after the wait is rejected: %s", rejection.Message())
		}
		if rejection, _ := take(m, "a", l); rejection == nil {
			t.Error("one call is possible per second, but two passed")
		}
		if rejection, _ := take(m, "b", l); rejection != nil {
			t.Error("another key is charged for the first")
		}
		time.Sleep(time.Hour)
		for range 3 {
			take(m, "a", l)
		}
		if rejection, _ := take(m, "a", l); rejection == nil {
			t.Error("an idle hour increases the burst")
		}
	})
}

func TestMemory_concurrency(t *testing.T) {
	m, l := NewMemory(newClock().now), limit("l", 0, 0, 0, 2)
	_, first := take(m, "a", l)
	take(m, "a", l)
	rejection, _ := take(m, "a", l)
	if rejection == nil || !rejection.ConcurrencyExceeded || rejection.RetryAfter != time.Second {
		t.Fatalf("a third call at once: %+v", rejection)
	}
	if rejection, _ := take(m, "b", l); rejection != nil {
		t.Error("another key waits for the first")
	}
	m.Release(first)
	if rejection, _ := take(m, "a", l); rejection != nil {
		t.Error("a call that has ended still counts")
	}
	if rejection, _ := take(m, "a", l); rejection == nil {
		t.Error("one call has ended, and two begin")
	}
}

func TestMemory_allOrNone(t *testing.T) {
	m, wide, narrow := NewMemory(newClock().now), limit("wide", 1, time.Hour, 5, 0), limit("narrow", 1, time.Minute, 1, 0)
	take(m, "a", wide, narrow)
	for range 10 {
		if rejection, _ := take(m, "a", wide, narrow); rejection == nil || rejection.Limit != narrow {
			t.Fatalf("rejected by %+v, want narrow", rejection)
		}
	}
	for i := range 4 {
		if rejection, _ := take(m, "a", wide); rejection != nil {
			t.Fatalf("calls that narrow rejected were charged to wide: %d remain of 4", i)
		}
	}
	rejection, _ := take(m, "a", narrow, wide)
	if rejection == nil || rejection.Limit != wide || rejection.RetryAfter != time.Hour {
		t.Errorf("both limits reject the call, which gets %+v instead of the longer wait", rejection)
	}
}

// Counters survive a reload if name, file and rate are equal, whatever else has changed.
func TestMemory_changedLimit(t *testing.T) {
	for _, test := range []struct {
		name string
		next Limit
		want bool
	}{
		{"the same limit", Limit{ID: ID{"l", true, Rate{1, time.Hour}, "k"}, Burst: 2}, true},
		{"a smaller burst", Limit{ID: ID{"l", true, Rate{1, time.Hour}, "k"}, Burst: 1}, true},
		{"another rate", Limit{ID: ID{"l", true, Rate{2, time.Hour}, "k"}, Burst: 2}, false},
		{"another key", Limit{ID: ID{"l", true, Rate{1, time.Hour}, "args.n"}, Burst: 2}, false},
		{"another name", Limit{ID: ID{"k", true, Rate{1, time.Hour}, "k"}, Burst: 2}, false},
		{"a tool file's", Limit{ID: ID{"l", false, Rate{1, time.Hour}, "k"}, Burst: 2}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, l := NewMemory(newClock().now), &Limit{ID: ID{"l", true, Rate{1, time.Hour}, "k"}, Burst: 2}
			m.SetLimits([]*Limit{l})
			take(m, "a", l)
			take(m, "a", l)
			m.SetLimits([]*Limit{&test.next})
			if rejection, _ := take(m, "a", &test.next); (rejection != nil) != test.want {
				t.Errorf("counted on: %v, want %v", rejection != nil, test.want)
			}
			if got := len(*m.counters.Load()); got != 1 {
				t.Errorf("the counters of %d limits are kept, want 1", got)
			}
		})
	}
}

func TestMemory_releaseAfterRemoval(t *testing.T) {
	m, l := NewMemory(newClock().now), limit("l", 0, 0, 0, 1)
	_, running := take(m, "a", l)
	m.SetLimits(nil)
	take(m, "a", l)
	m.Release(running)
	if rejection, _ := take(m, "a", l); rejection == nil {
		t.Error("a call released a slot of other counters")
	}
}

// A million keys must neither exceed the memory bound nor reset a caller over the limit.
func TestMemory_keyFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	c := newClock()
	m, l := NewMemory(c.now), limit("l", 1, time.Hour, 2, 0)
	take(m, "over", l)
	take(m, "over", l)
	let := 0
	for i := range 1_000_000 {
		if rejection, _ := take(m, fmt.Sprint("flood", i), l); rejection == nil {
			let++
		}
	}
	counters := m.countersFor(l)
	if got := len(counters.buckets); got != maxKeys || len(counters.slots) != maxKeys {
		t.Errorf("%d keys have %d buckets, want %d", len(counters.slots), got, maxKeys)
	}
	if want := maxKeys - 1 + l.Burst; let != want {
		t.Errorf("%d calls passed, want %d: one burst for all keys without a bucket", let, want)
	}
	if rejection, _ := take(m, "over", l); rejection == nil {
		t.Error("the flood reset a caller over the limit")
	}
	c.advance(2 * time.Hour)
	for i := range maxKeys {
		if rejection, _ := take(m, fmt.Sprint("later", i), l); rejection != nil {
			t.Fatal("full buckets are not removed")
		}
	}
	c.advance(2 * time.Hour)
	for i := range maxKeys {
		take(m, fmt.Sprint("few", i), l)
		c.advance(time.Hour)
	}
	if got := len(counters.buckets); got > 16 {
		t.Errorf("%d keys are still counted, but nearly all buckets are full", got)
	}
}

// Slots of the shared bucket return to it, even if the key has its own bucket meanwhile.
func TestMemory_sharedSlotRelease(t *testing.T) {
	m, l := NewMemory(newClock().now), limit("l", 0, 0, 0, 1)
	held := make([][]Charge, maxKeys)
	for i := range held {
		_, held[i] = take(m, fmt.Sprint(i), l)
	}
	_, crowded := take(m, "late", l)
	if rejection, _ := take(m, "later", l); rejection == nil {
		t.Fatal("keys without room do not share a bucket")
	}
	m.Release(held[7])
	_, own := take(m, "late", l)
	m.Release(crowded)
	if rejection, _ := take(m, "later", l); rejection != nil {
		t.Error("the shared bucket is not released")
	}
	if rejection, _ := take(m, "late", l); rejection == nil {
		t.Error("the slot of the shared bucket was released in another bucket")
	}
	m.Release(own)
	if rejection, _ := take(m, "late", l); rejection != nil {
		t.Error("the key's own slot is not released")
	}
}

// Concurrent callers charge several limits in different orders.
func TestMemory_manyCallers(t *testing.T) {
	m := NewMemory(newClock().now)
	limits := []*Limit{limit("a", 1, time.Hour, 100, 0), limit("b", 1, time.Hour, 1000, 8), limit("c", 1, time.Hour, 1000, 0)}
	var let, running atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for i := range 200 {
				mine := []*Limit{limits[i%3], limits[(i+1)%3], limits[(i+2)%3]}
				rejection, charges := take(m, "k", mine...)
				if rejection != nil {
					continue
				}
				let.Add(1)
				if running.Add(1) > 8 {
					t.Error("more calls run at once than the limit allows")
				}
				runtime.Gosched()
				running.Add(-1)
				m.Release(charges)
				if i%50 == 0 {
					m.SetLimits(limits)
				}
			}
		})
	}
	callers.Wait()
	if let.Load() != 100 {
		t.Errorf("%d calls passed, want 100", let.Load())
	}
	if got := m.countersFor(limits[1]).find("k", 0); m.countersFor(limits[1]).bucket(got).running != 0 {
		t.Error("calls that have ended still count")
	}
}

func TestMemory_allocations(t *testing.T) {
	m, l := NewMemory(newClock().now), limit("l", 1_000_000, time.Second, 1_000_000, 4)
	charges := []Charge{{Limit: l, Key: "a"}}
	if got := testing.AllocsPerRun(1000, func() {
		if rejection, _ := m.Take(t.Context(), charges); rejection == nil {
			m.Release(charges)
		}
	}); got != 0 {
		t.Errorf("a charge allocates %v times", got)
	}
}

func TestRejection_Message(t *testing.T) {
	rated := limit("l", 60, time.Minute, 1, 3)
	said := *rated
	said.Reason = "Ask less often"
	for _, test := range []struct {
		refusal Rejection
		want    string
	}{
		{Rejection{Limit: rated, RetryAfter: 1}, "over the limit of 60 calls a minute; try again in 1 s"},
		{Rejection{Limit: rated, RetryAfter: 2*time.Second + 1}, "over the limit of 60 calls a minute; try again in 3 s"},
		{Rejection{Limit: rated, RetryAfter: time.Second, ConcurrencyExceeded: true}, "over the limit of 3 calls at once; try again in 1 s"},
		{Rejection{Limit: limit("l", 1, time.Hour, 1, 1), RetryAfter: time.Hour}, "over the limit of 1 call an hour; try again in 3600 s"},
		{Rejection{Limit: limit("l", 1, time.Second, 1, 1), RetryAfter: time.Second, ConcurrencyExceeded: true}, "over the limit of 1 call at once; try again in 1 s"},
		{Rejection{Limit: &said, RetryAfter: time.Hour}, "Ask less often; try again in 3600 s"},
	} {
		if got := test.refusal.Message(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestKey_long(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	if got := Key(long); len(got) > maxKey || got == Key(long+"x") {
		t.Errorf("a key of %d bytes", len(got))
	}
	if got := Key("principal"); got != "principal" {
		t.Errorf("a short key is changed to %q", got)
	}
}

func TestMemory_rate(t *testing.T) {
	for _, r := range []Rate{{7, time.Second}, {1_000_000, time.Second}, {999_999, time.Minute}, {1, time.Hour}} {
		if got := r.interval() * time.Duration(r.Calls); got < r.Per {
			t.Errorf("%s allows one call per %s", r, got)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	m, l := NewMemory(time.Now), limit("l", 1_000_000, time.Second, 1_000_000, 4)
	charges := []Charge{{Limit: l, Key: "agent-1042"}}
	for b.Loop() {
		if rejection, _ := m.Take(b.Context(), charges); rejection == nil {
			m.Release(charges)
		}
	}
}

func TestMemory_usage(t *testing.T) {
	c := newClock()
	m, l, own := NewMemory(c.now), limit("l", 60, time.Minute, 10, 0), limit("own", 0, 0, 0, 4)
	if u := m.UsageOf(l, 3); u.Keys != 0 || u.Rate != nil || u.Concurrency != nil {
		t.Errorf("no calls: %+v", u)
	}
	for i := range 5 {
		for range i + 1 {
			take(m, fmt.Sprint("key", i), l)
		}
	}
	_, first := take(m, "a", own)
	take(m, "a", own)
	take(m, "a", own)
	take(m, "b", own)
	if got, want := fmt.Sprintf("%+v", m.UsageOf(l, 3)), "{Shared:false Problem: Keys:5 Rate:[{Key:key4 Rest:false Hashed:false Share:0.5} {Key:key3 Rest:false Hashed:false Share:0.4} {Key:key2 Rest:false Hashed:false Share:0.3}] Concurrency:[]}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(m.UsageOf(own, 10).Concurrency), "[{a false false 0.75} {b false false 0.25}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m.Release(first)
	c.advance(4 * time.Second)
	if got, want := fmt.Sprint(m.UsageOf(own, 1).Concurrency, m.UsageOf(l, 10).Rate), "[{a false false 0.5}] [{key4 false false 0.1}]"; got != want {
		t.Errorf("after four seconds: got %s, want %s", got, want)
	}
	if u := m.UsageOf(l, 0); u.Keys != 5 || len(u.Rate) != 0 {
		t.Errorf("without keys: %+v", u)
	}
	// A reload may lower the bound.
	if got := m.UsageOf(limit("own", 0, 0, 0, 1), 1).Concurrency[0].Share; got != 1 {
		t.Errorf("more calls than the bound: share %v", got)
	}
}

func TestMemory_usageOfSharedBucket(t *testing.T) {
	m, l := NewMemory(newClock().now), limit("l", 1, time.Hour, 2, 0)
	for i := range maxKeys + 2 {
		take(m, fmt.Sprint(i), l)
	}
	if u := m.UsageOf(l, 2); u.Keys != maxKeys || !u.Rate[0].Rest || u.Rate[0].Key != "" || u.Rate[0].Share != 1 || u.Rate[1].Share != 0.5 {
		t.Errorf("got %d keys, %+v", u.Keys, u.Rate)
	}
}

// BenchmarkUsage reads the counters of 100,000 keys, which no limit has alone.
func BenchmarkUsage(b *testing.B) {
	const keys = 100_000
	c := newClock()
	m, limits := NewMemory(c.now), []*Limit{limit("a", 1, time.Hour, 1000, 0), limit("b", 1, time.Hour, 1000, 9)}
	for i := range keys {
		for range i%7 + 1 {
			take(m, fmt.Sprint(i), limits[i%2])
		}
	}
	for b.Loop() {
		if m.UsageOf(limits[0], 10).Keys+m.UsageOf(limits[1], 10).Keys != keys {
			b.Fatal("some keys have no counter")
		}
	}
}
