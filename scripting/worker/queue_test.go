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

// enter is acquireLocked for a caller that does not hold the mutex.
func (q *queue) enter(ctx context.Context, patient bool) error {
	q.admission.mu.Lock()
	return q.acquireLocked(ctx, patient)
}

// enterAsync requests admission for a call, and returns the channel of the result.
func enterAsync(a *queue, ctx context.Context, patient ...bool) <-chan error {
	result := make(chan error, 1)
	go func() { result <- a.enter(ctx, len(patient) > 0) }()
	return result
}

// resultOf returns the result of a call, and whether there is one.
func resultOf(result <-chan error) (error, bool) {
	synctest.Wait()
	select {
	case err := <-result:
		return err, true
	default:
		return nil, false
	}
}

func TestQueue_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1, time.Second).of(trusted)
		if err := a.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		first := enterAsync(a, t.Context())
		synctest.Wait()
		second := enterAsync(a, t.Context())
		for i, result := range []<-chan error{first, second} {
			if _, ok := resultOf(result); ok {
				t.Errorf("call %d started without capacity", i)
			}
			a.release()
			if err, ok := resultOf(result); !ok || err != nil {
				t.Errorf("call %d did not start: %v", i, err)
			}
		}
		a.release()
		if a.running != 0 || len(a.waiting) != 0 {
			t.Errorf("%d compute and %d wait in the end", a.running, len(a.waiting))
		}
	})
}

// TestQueue_refusedByAge, until the queue moves.
func TestQueue_refusedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1, time.Second).of(trusted)
		_ = a.enter(t.Context(), false)
		first := enterAsync(a, t.Context())
		synctest.Wait()
		time.Sleep(time.Second)
		second := enterAsync(a, t.Context())
		if _, ok := resultOf(second); ok {
			t.Error("a call was refused while the first had time")
		}
		time.Sleep(time.Nanosecond)
		if err := a.enter(t.Context(), false); !errors.Is(err, scripting.ErrOverloaded) {
			t.Errorf("a new call ended with %v", err)
		}
		third := enterAsync(a, t.Context(), true)
		if err, ok := resultOf(third); ok {
			t.Errorf("a call that must not be refused ended with %v", err)
		}
		a.release()
		if err, ok := resultOf(first); !ok || err != nil {
			t.Errorf("the first did not start: %v", err)
		}
		fourth := enterAsync(a, t.Context())
		if err, ok := resultOf(fourth); ok {
			t.Errorf("the fourth ended with %v, although the queue has moved", err)
		}
		for _, result := range []<-chan error{second, third, fourth} {
			a.release()
			if err, ok := resultOf(result); !ok || err != nil {
				t.Errorf("a call did not start: %v", err)
			}
		}
	})
}

// TestQueue_refusedByInterval: with ten starts a second and a maximum of half a second, five may
// wait.
func TestQueue_refusedByInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(8, 500*time.Millisecond).of(trusted)
		var refused, late atomic.Int64
		for n := range 1000 {
			time.Sleep(10 * time.Millisecond) // ten times the capacity
			go func() {
				began := time.Now()
				err := a.enter(t.Context(), false)
				switch waited := time.Since(began); {
				case errors.Is(err, scripting.ErrOverloaded) && waited == 0:
					refused.Add(1)
					return
				case err != nil || n > 400 && waited > 700*time.Millisecond: // the interval is known then
					late.Add(1)
				}
				time.Sleep(400*time.Millisecond + time.Duration(n*7919%801)*time.Millisecond)
				a.release()
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		if late.Load() > 60 || refused.Load() < 800 || refused.Load() > 920 {
			t.Errorf("%d of 1000 were refused and %d started late", refused.Load(), late.Load())
		}
		a.admission.mu.Lock()
		defer a.admission.mu.Unlock()
		if a.running != 0 || len(a.waiting) != 0 {
			t.Errorf("%d compute and %d wait in the end", a.running, len(a.waiting))
		}
	})
}

// TestQueue_refusedByDeadline: a hundred calls arrive at once, and end one each 100 ms. Calls with
// ten seconds wait for their turn. Calls with one second are refused once their turn would be too
// late, except for one or two.
func TestQueue_refusedByDeadline(t *testing.T) {
	for _, c := range []struct{ has, longest time.Duration }{{20 * time.Second, 0}, {time.Second, 900 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) { judgeBurst(t, c.has, c.longest) })
	}
}

// judgeBurst expects no refusals, or refusals within longest.
func judgeBurst(t *testing.T, has, longest time.Duration) {
	a := newAdmission(1, 500*time.Millisecond).of(trusted)
	var begun, refused, late atomic.Int64
	for range 100 {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), has)
			defer cancel()
			came := time.Now()
			switch err := a.enter(ctx, false); {
			case err == nil:
				begun.Add(1)
				time.Sleep(100 * time.Millisecond)
				a.release()
			case errors.Is(err, scripting.ErrOverloaded) && time.Since(came) <= longest:
				refused.Add(1)
			default:
				late.Add(1)
			}
		}()
	}
	time.Sleep(time.Minute)
	if b, r := begun.Load(), refused.Load(); longest == 0 && b != 100 || b+r < 98 || b < 6 {
		t.Errorf("%d have started, %d were refused, and %d were too late", b, r, late.Load())
	}
}

func TestQueue_canceledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1, time.Second).of(trusted)
		_ = a.enter(t.Context(), false)
		ctx, cancel := context.WithCancel(t.Context())
		first := enterAsync(a, ctx)
		synctest.Wait()
		second := enterAsync(a, t.Context())
		synctest.Wait()
		cancel()
		if err, ok := resultOf(first); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("the first ended with %v", err)
		}
		a.release()
		if err, ok := resultOf(second); !ok || err != nil {
			t.Errorf("the second did not start: %v", err)
		}
		a.release()
	})
}

func TestQueue_reacquire(t *testing.T) {
	a := newAdmission(1, time.Second).of(trusted)
	_ = a.enter(t.Context(), false)
	a.release()
	_ = a.enter(t.Context(), false)
	a.reacquire()
	if a.running != 2 {
		t.Errorf("%d compute", a.running)
	}
}

// TestQueue_intervalReused: after many calls of 100 ms that arrived one by one, a thousand arrive
// at once, with ten seconds each. Calls that could not start within a third of that are refused at
// once.
func TestQueue_intervalReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1, 500*time.Millisecond).of(trusted)
		var begun, refused, late atomic.Int64
		come := func(calls int) {
			for range calls {
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					came := time.Now()
					switch err := a.enter(ctx, false); {
					case err == nil:
						time.Sleep(100 * time.Millisecond)
						a.release()
						begun.Add(1)
					case errors.Is(err, scripting.ErrOverloaded) && time.Since(came) == 0:
						refused.Add(1)
					default:
						late.Add(1)
					}
				}()
				synctest.Wait()
			}
			time.Sleep(time.Minute)
		}
		come(10)
		come(1000)
		if b, r := begun.Load(), refused.Load(); b < 10+30 || b > 10+38 || b+r != 1010 {
			t.Errorf("%d have started, %d were refused at once, and %d late", b, r, late.Load())
		}
	})
}

// TestQueue_firstStartsIgnored: the first calls wait for processes and compilers, and hundreds of
// later calls may wait for their hosts.
func TestQueue_firstStartsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(16, 500*time.Millisecond).of(trusted)
		for range 16 {
			_ = a.enter(t.Context(), false)
		}
		for range 3 {
			time.Sleep(500 * time.Millisecond)
			a.release()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var all sync.WaitGroup
		come := make(chan struct{})
		for range 500 {
			all.Go(func() {
				if err := a.enter(ctx, false); err != nil {
					t.Error(err)
					return
				}
				<-come
				a.release()
			})
			synctest.Wait()
		}
		close(come)
		for range 13 {
			a.release()
		}
		all.Wait()
	})
}

// TestQueue_fewAfterLongCalls: the next calls may be short.
func TestQueue_fewAfterLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(4, 500*time.Millisecond).of(trusted)
		for range 20 {
			_ = a.enter(t.Context(), false)
			time.Sleep(10 * time.Second)
			a.release()
		}
		for range 20 {
			go func() {
				if err := a.enter(t.Context(), false); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				a.release()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
	})
}
