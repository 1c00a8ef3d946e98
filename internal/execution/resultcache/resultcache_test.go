package resultcache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call returns a lookup of an item with arguments.
func call(of, how int, began time.Time) Lookup {
	c := Lookup{StartTime: began, TTL: time.Minute}
	binary.BigEndian.PutUint64(c.Item[:], uint64(of))
	binary.BigEndian.PutUint64(c.Arguments[:], uint64(how))
	return c
}

func makes(value string) func() (Computed[string], error) {
	return func() (Computed[string], error) {
		return Computed[string]{Value: value, Size: len(value), Cacheable: true}, nil
	}
}

// do checks the value of a call, and whether it was cached.
func do(t *testing.T, s *Cache[string], l Lookup, run func() (Computed[string], error), want string, wantBefore bool) {
	t.Helper()
	if got, before, err := s.Do(t.Context(), l, run); got != want || before != wantBefore || err != nil {
		t.Errorf("got %q, before %v, %v; want %q, %v", got, before, err, want, wantBefore)
	}
}

func TestCache_ttl(t *testing.T) {
	s, at := New[string](), time.Unix(1_800_000_000, 0)
	do(t, s, call(1, 1, at), makes("a"), "a", false)
	do(t, s, call(1, 1, at.Add(time.Minute-1)), makes("b"), "a", true)
	do(t, s, call(1, 2, at), makes("other"), "other", false)
	do(t, s, call(2, 1, at), makes("third"), "third", false)
	do(t, s, call(1, 1, at.Add(time.Minute)), makes("c"), "c", false)
	do(t, s, call(1, 1, at.Add(time.Minute+1)), makes("d"), "c", true)
}

func TestCache_clockSetBack(t *testing.T) {
	s, at := New[string](), time.Unix(1_800_000_000, 0)
	do(t, s, call(1, 1, at), makes("a"), "a", false)
	do(t, s, call(1, 1, at.Add(-time.Hour)), makes("b"), "b", false)
	do(t, s, call(1, 1, at), makes("c"), "c", false)
}

// A value of an earlier call is as old as that.
func TestCache_age(t *testing.T) {
	s, at := New[string](), time.Unix(1_800_000_000, 0)
	aged := func() (Computed[string], error) {
		return Computed[string]{Value: "aged", Size: 4, Cacheable: true, Age: 40 * time.Second}, nil
	}
	do(t, s, call(1, 1, at), aged, "aged", false)
	do(t, s, call(1, 1, at.Add(20*time.Second-1)), makes("a"), "aged", true)
	do(t, s, call(1, 1, at.Add(20*time.Second)), makes("a"), "a", false)

	// A call that began later does not use the value of a running call if it is too old for it.
	synctest.Test(t, func(t *testing.T) {
		s, at := New[string](), time.Now()
		release := make(chan struct{})
		var calls sync.WaitGroup
		calls.Go(func() {
			do(t, s, call(1, 1, at), func() (Computed[string], error) {
				<-release
				return aged()
			}, "aged", false)
		})
		synctest.Wait()
		calls.Go(func() { do(t, s, call(1, 1, at.Add(20*time.Second)), makes("b"), "b", false) })
		calls.Go(func() { do(t, s, call(1, 1, at.Add(time.Second)), makes("c"), "aged", true) })
		synctest.Wait()
		close(release)
		calls.Wait()
	})
}

func TestCache_failures(t *testing.T) {
	s, at, broken := New[string](), time.Now(), errors.New("broken")
	if _, before, err := s.Do(t.Context(), call(1, 1, at), func() (Computed[string], error) { return Computed[string]{Value: "x", Cacheable: true}, broken }); !errors.Is(err, broken) || before {
		t.Errorf("before %v, %v", before, err)
	}
	do(t, s, call(1, 1, at), func() (Computed[string], error) { return Computed[string]{Value: "kept by nobody"}, nil }, "kept by nobody", false)
	do(t, s, call(1, 1, at), makes("b"), "b", false)
	do(t, s, call(1, 1, at), makes("c"), "b", true)
}

func TestCache_panic(t *testing.T) {
	s, at := New[string](), time.Now()
	func() {
		defer func() { _ = recover() }()
		_, _, _ = s.Do(t.Context(), call(1, 1, at), func() (Computed[string], error) { panic("boom") })
	}()
	do(t, s, call(1, 1, at), makes("b"), "b", false)
}

func TestCache_coalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at, runs := New[string](), time.Now(), 0
		var wait sync.WaitGroup
		before := make([]bool, 20)
		for i := range before {
			wait.Go(func() {
				var v string
				v, before[i], _ = s.Do(t.Context(), call(1, 1, at), func() (Computed[string], error) {
					runs++
					time.Sleep(time.Second) // on the fake clock
					return makes("a")()
				})
				if v != "a" {
					t.Errorf("got %q", v)
				}
			})
		}
		wait.Wait()
		leaders := 0
		for _, b := range before {
			if !b {
				leaders++
			}
		}
		if runs != 1 || leaders != 1 {
			t.Errorf("%d runs, %d led", runs, leaders)
		}
	})
}

func TestCache_callerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := New[string](), time.Now()
		leading, leave := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			_, _, err := s.Do(leading, call(1, 1, at), func() (Computed[string], error) {
				<-leading.Done()
				return Computed[string]{}, leading.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the leader has %v", err)
			}
		})
		synctest.Wait()
		impatient, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		wait.Go(func() {
			if _, _, err := s.Do(impatient, call(1, 1, at), makes("never")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a cancelled waiter got %v", err)
			}
		})
		got := make(chan string, 3)
		for range 3 {
			wait.Go(func() {
				v, _, err := s.Do(t.Context(), call(1, 1, at), makes("second"))
				if err != nil {
					t.Error(err)
				}
				got <- v
			})
		}
		time.Sleep(2 * time.Second) // on the fake clock
		synctest.Wait()
		if len(got) != 0 {
			t.Error("a waiter got a result that was not computed")
		}
		leave()
		wait.Wait()
		for range 3 {
			if v := <-got; v != "second" {
				t.Errorf("got %q", v)
			}
		}
	})
}

func TestCache_slowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, at := New[string](), time.Now()
		slow := make(chan struct{})
		var wait sync.WaitGroup
		wait.Go(func() {
			_, _, _ = s.Do(t.Context(), call(1, 1, at), func() (Computed[string], error) { <-slow; return makes("old")() })
		})
		synctest.Wait()
		do(t, s, call(1, 1, at.Add(time.Hour)), makes("new"), "new", false)
		close(slow)
		wait.Wait()
		do(t, s, call(1, 1, at.Add(time.Hour)), makes("newer"), "new", true)
	})
}

func TestCache_bounds(t *testing.T) {
	s, at := New[string](), time.Now()
	for i := range 3 * MaxPerItem {
		do(t, s, call(1, i, at), makes("x"), "x", false)
	}
	do(t, s, call(1, 3*MaxPerItem-MaxPerItem, at), makes("y"), "x", true)
	do(t, s, call(1, 3*MaxPerItem-MaxPerItem-1, at), makes("y"), "y", false)
	if n, _ := s.Len(); n != MaxPerItem {
		t.Errorf("%d results of one tool", n)
	}
	large := string(make([]byte, MaxResult))
	for i := range 200 {
		do(t, s, call(2+i, 1, at), makes(large), large, false)
	}
	if _, bytes := s.Len(); bytes > MaxBytes {
		t.Errorf("%d bytes", bytes)
	}
	do(t, s, call(201, 1, at), makes("other"), large, true)
	tooLarge := large + "x"
	do(t, s, call(500, 1, at), makes(tooLarge), tooLarge, false)
	do(t, s, call(500, 1, at), makes("again"), "again", false)
	s.Retain(nil)
	if n, bytes := s.Len(); n != 0 || bytes != 0 || s.lru.Len() != 0 || len(s.byItem) != 0 || len(s.inFlight) != 0 {
		t.Errorf("%d results, %d bytes, %d, %d and %d are left of nothing", n, bytes, s.lru.Len(), len(s.byItem), len(s.inFlight))
	}
}

func TestCache_Retain(t *testing.T) {
	s, at := New[string](), time.Now()
	do(t, s, call(1, 1, at), makes("a"), "a", false)
	do(t, s, call(2, 1, at), makes("b"), "b", false)
	s.Retain(map[[32]byte]bool{call(2, 1, at).Item: true})
	do(t, s, call(1, 1, at), makes("c"), "c", false)
	do(t, s, call(2, 1, at), makes("d"), "b", true)
}

// Calls of all kinds run concurrently, while the cache is cleared repeatedly.
func TestCache_manyCallers(t *testing.T) {
	s := New[string]()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 2000 {
				of, how := r.IntN(3), r.IntN(5)
				want := fmt.Sprint(of, how)
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(10) == 0 {
					cancel()
				}
				v, _, err := s.Do(ctx, call(of, how, time.Now()), func() (Computed[string], error) {
					if r.IntN(3) == 0 {
						return Computed[string]{}, errors.New("broken")
					}
					return makes(want)()
				})
				if err == nil && v != want {
					t.Errorf("got %q, want %q", v, want)
				}
				if r.IntN(20) == 0 {
					s.Retain(map[[32]byte]bool{call(1, 0, time.Now()).Item: true})
				}
				cancel()
			}
		})
	}
	wait.Wait()
}
