package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// lasting returns a context with a deadline.
func lasting(t *testing.T, has time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), has)
	t.Cleanup(cancel)
	return ctx
}

// TestQueue_reservedForTrusted, regardless of endless calls of other programs. These may use the
// rest.
func TestQueue_reservedForTrusted(t *testing.T) {
	for limit, others := range map[int]int{1: 1, 2: 1, 4: 3, 8: 6, 16: 12} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission(limit, time.Hour)
			begun := func(r rating) (n int) {
				ctx, cancel := context.WithCancel(t.Context())
				for range limit + 1 {
					if err, ok := resultOf(enterAsync(a.of(r), ctx)); ok && err == nil {
						n++
					}
				}
				cancel()
				synctest.Wait()
				return n
			}
			if got := begun(misbehaved); got != others {
				t.Errorf("of %d turns misbehaved programs have %d, want %d", limit, got, others)
			}
			if got := begun(fast); got != limit-others {
				t.Errorf("of %d turns trusted programs have %d beside them, want %d", limit, got, limit-others)
			}
		})
	}
}

// TestQueue_oldestFirst, in either class: four calls may compute, three of them of untrusted
// programs.
func TestQueue_oldestFirst(t *testing.T) {
	for name, test := range map[string]struct {
		computing, leave []rating
		begin            []int // index of the started call of a misbehaved, a trusted and an unrated program; -1 for none
	}{
		"there is room in both":  {[]rating{fast, fast, fast, fast}, []rating{fast, fast, fast}, []int{0, 1, 2}},
		"others have all theirs": {[]rating{misbehaved, misbehaved, misbehaved, fast}, []rating{fast, misbehaved, fast, misbehaved}, []int{1, 0, -1, 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAdmission(4, time.Hour)
			for _, r := range test.computing {
				if err := a.of(r).enter(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
			var results []<-chan error
			for _, r := range []rating{misbehaved, trusted, unrated} {
				results = append(results, enterAsync(a.of(r), t.Context()))
				synctest.Wait()
				time.Sleep(time.Millisecond)
			}
			for i, r := range test.leave {
				a.of(r).release()
				for n, call := range results {
					if _, ok := resultOf(call); ok != (n == test.begin[i]) {
						t.Errorf("%s, step %d: call %d has started: %v", name, i, n, ok)
					}
				}
			}
		})
	}
}

// TestQueue_refusedInTime: endless calls use all the capacity. A call is refused after two thirds
// of its time, and a new call at once after the first has waited for a third of it.
func TestQueue_refusedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newAdmission(1, 500*time.Millisecond).of(unrated)
		_ = q.enter(t.Context(), false)
		began := time.Now()
		first := enterAsync(q, lasting(t, 3*time.Second))
		synctest.Wait()
		time.Sleep(time.Second + 1)
		if err, ok := resultOf(enterAsync(q, lasting(t, 3*time.Second))); !ok || !errors.Is(err, scripting.ErrOverloaded) {
			t.Errorf("a call after a second: %v", err)
		}
		if err, took := <-first, time.Since(began); !errors.Is(err, scripting.ErrOverloaded) || took != 2*time.Second {
			t.Errorf("after %v: %v, want a refusal after two seconds", took, err)
		}
		if err := q.enter(lasting(t, 3*time.Second), true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that must not be refused: %v", err)
		}
		waits := enterAsync(q, lasting(t, 30*time.Second))
		if err, ok := resultOf(waits); ok {
			t.Errorf("a call with more time: %v", err)
		}
		q.release()
		if err, ok := resultOf(waits); !ok || err != nil {
			t.Errorf("once there is capacity: %v", err)
		}
	})
}

// TestQueue_waitingCallBlocksNoOther: after calls that are refused there may be one that must not
// be refused, or has more time.
func TestQueue_waitingCallBlocksNoOther(t *testing.T) {
	for name, last := range map[string]struct {
		has     time.Duration
		patient bool
	}{"no call": {has: time.Second}, "a patient call": {time.Minute, true}, "a call with more time": {has: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			q := newAdmission(1, 500*time.Millisecond).of(trusted)
			_ = q.enter(t.Context(), false)
			var all sync.WaitGroup
			come := func(has time.Duration, patient bool) {
				all.Go(func() {
					began := time.Now()
					switch err := q.enter(lasting(t, has), patient); {
					case err == nil:
						time.Sleep(100 * time.Millisecond)
						q.release()
					case !errors.Is(err, scripting.ErrOverloaded) || time.Since(began) > 700*time.Millisecond:
						t.Errorf("after them is %s: got %v after %v", name, err, time.Since(began))
					}
				})
				synctest.Wait()
			}
			for range 50 {
				come(time.Second, false)
			}
			come(last.has, last.patient)
			time.Sleep(100 * time.Millisecond)
			q.release()
			all.Wait()
		})
	}
}

// TestQueue_intervalByStarts: calls that continue, and wait for their hosts again, are no starts.
func TestQueue_intervalByStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newAdmission(1, 500*time.Millisecond).of(trusted)
		_ = q.enter(t.Context(), false)
		for range 10 {
			enterAsync(q, lasting(t, time.Minute))
			synctest.Wait()
		}
		for range 100 {
			q.reacquire()
			q.release()
		}
		if q.interval != 0 {
			t.Errorf("the interval is %v without a start", q.interval)
		}
		for range startsEach {
			time.Sleep(time.Second)
			q.release()
		}
		if q.interval != time.Second {
			t.Errorf("the interval is %v, want a second", q.interval)
		}
		for len(q.waiting) > 0 {
			q.release()
		}
		q.release()
	})
}

// TestQueue_newProgram: calls of an unrated program that compute for 20 ms, two at once, and calls
// that wait for their host.
func TestQueue_newProgram(t *testing.T) {
	for name, test := range map[string]struct {
		calls           int
		computes, waits time.Duration
	}{"compute": {200, 20 * time.Millisecond, 0}, "wait": {500, time.Millisecond, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			q := newAdmission(16, 500*time.Millisecond).of(unrated)
			processors := make(chan struct{}, 2)
			compute := func() {
				processors <- struct{}{}
				time.Sleep(test.computes)
				<-processors
			}
			var all sync.WaitGroup
			for range test.calls {
				all.Go(func() {
					if err := q.enter(lasting(t, 10*time.Second), false); err != nil {
						t.Errorf("of the calls that %s one got: %v", name, err)
						return
					}
					compute()
					if test.waits > 0 {
						q.release()
						time.Sleep(test.waits)
						q.reacquire()
						compute()
					}
					q.release()
				})
			}
			all.Wait()
		})
	}
}

// TestQueue_overload offers ten times as many calls of 20 ms as two processors can run, for ten
// seconds. Nearly all possible calls end in time, and nearly all others are refused at once.
func TestQueue_overload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const span, each, capacity = 10 * time.Second, 20, 100
		q := newAdmission(16, 500*time.Millisecond).of(trusted)
		processors := make(chan struct{}, 2)
		var good, late, refused, slow atomic.Int64
		var all sync.WaitGroup
		for range int(span/time.Millisecond) * 10 * capacity / 1000 {
			time.Sleep(time.Millisecond)
			all.Go(func() {
				came := time.Now()
				if err := q.enter(lasting(t, 2*time.Second), false); err != nil {
					refused.Add(1)
					if time.Since(came) > 100*time.Millisecond {
						slow.Add(1)
					}
					return
				}
				for range each { // alternating with the others
					processors <- struct{}{}
					time.Sleep(time.Millisecond)
					<-processors
				}
				q.release()
				if time.Since(came) > 2*time.Second {
					late.Add(1)
				} else {
					good.Add(1)
				}
			})
		}
		all.Wait()
		if good.Load() < 95*int64(span/time.Second)*capacity/100 || late.Load() > 10 || slow.Load()*20 > refused.Load() {
			t.Errorf("%d calls were good, %d too late, and %d refused, %d of them late", good.Load(), late.Load(), refused.Load(), slow.Load())
		}
	})
}
