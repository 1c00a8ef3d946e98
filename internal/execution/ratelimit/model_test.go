package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The test compares Memory with a model that fills all token buckets step by step.
func TestMemory_model(t *testing.T) {
	for seed := range uint64(200) {
		if message := compare(rand.New(rand.NewPCG(seed, 1))); message != "" {
			t.Fatalf("seed %d: %s", seed, message)
		}
	}
}

func FuzzMemory(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		if message := compare(rand.New(rand.NewPCG(a, b))); message != "" {
			t.Fatal(message)
		}
	})
}

// modelBucket is a textbook token bucket: one token returns per interval, counted from the time
// when the bucket was last full.
type modelBucket struct {
	tokens  int
	since   time.Time // start of the interval of the next token
	running int
}

// history is one history of calls, in the store and in the model.
type history struct {
	random  *rand.Rand
	clock   *clock
	store   *Memory
	limits  []*Limit
	model   map[string]*modelBucket
	running []modelCall
}

// modelCall is a running call.
type modelCall struct {
	charges []Charge
	buckets []*modelBucket
}

// compare makes random calls and returns the first difference between the store and the model.
func compare(random *rand.Rand) string {
	c := newClock()
	x := &history{random: random, clock: c, store: NewMemory(c.now), model: map[string]*modelBucket{}}
	for i := range 1 + random.IntN(3) {
		x.limits = append(x.limits, limit(fmt.Sprint(i), random.IntN(4)*50, time.Minute, 1+random.IntN(5), random.IntN(4)))
	}
	for step := range 500 {
		c.advance(time.Duration(random.Int64N(int64(2 * time.Second))))
		if len(x.running) > 0 && random.IntN(3) == 0 {
			x.end(random.IntN(len(x.running)))
		} else if message := x.begin(); message != "" {
			return fmt.Sprintf("step %d: %s", step, message)
		}
	}
	return ""
}

// end ends a running call.
func (h *history) end(i int) {
	h.store.Release(h.running[i].charges)
	for _, b := range h.running[i].buckets {
		b.running--
	}
	h.running = append(h.running[:i], h.running[i+1:]...)
}

// begin makes a call.
func (h *history) begin() string {
	charged, key := h.limits[h.random.IntN(len(h.limits)):], fmt.Sprint(h.random.IntN(3))
	rejection, charges := take(h.store, key, charged...)
	buckets, allowed := make([]*modelBucket, len(charged)), true
	for i, l := range charged {
		b := h.model[l.Name+key]
		if b == nil {
			b = &modelBucket{tokens: l.Burst}
			h.model[l.Name+key] = b
		}
		b.fill(l, h.clock.at)
		buckets[i] = b
		allowed = allowed && b.tokens > 0 && (l.Concurrency == 0 || b.running < l.Concurrency)
	}
	if allowed != (rejection == nil) {
		return fmt.Sprintf("the store says %+v, the model %v", rejection, allowed)
	}
	if !allowed {
		return ""
	}
	for i, l := range charged {
		buckets[i].take(l, h.clock.at)
	}
	h.running = append(h.running, modelCall{charges, buckets})
	return ""
}

// take takes a token, and starts the interval of a full bucket.
func (b *modelBucket) take(l *Limit, now time.Time) {
	if b.tokens == l.Burst {
		b.since = now
	}
	b.tokens--
	b.running++
}

// fill adds the tokens that have returned by now.
func (b *modelBucket) fill(l *Limit, now time.Time) {
	if l.Rate.Calls == 0 {
		b.tokens = l.Burst
		return
	}
	for b.tokens < l.Burst && !b.since.Add(l.Rate.interval()).After(now) {
		b.tokens++
		b.since = b.since.Add(l.Rate.interval())
	}
}
