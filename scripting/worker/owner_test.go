package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// of returns the queue of owner 0 for a rating.
func (a *admission) of(r rating) *queue {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owner(0, 0).queueFor(r)
}

// choose returns a process for a call, of owner 0 by default; nil if the call would have to wait.
func (e *Executor) choose(n requirements) (*process, error) {
	n.own(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tryAcquire(n)
}

// release removes a call from a process that choose returned.
func release(e *Executor, p *process, n requirements, said rating) {
	n.own(e)
	e.release(p, n, said)
}

func (n *requirements) own(e *Executor) {
	if n.owner == nil {
		n.owner = e.admission.of(unrated).owner
	}
}

// admit starts a call of owner 0, of an unrated program.
func (q *queue) admit(ctx context.Context, c scripting.Call) error {
	_, err := q.admission.admit(ctx, c, unrated, 1)
	return err
}

// queued are calls of several owners that request admission.
type queued struct {
	t     *testing.T
	a     *admission
	lanes map[string]*queue // of the calls that have started
	ended map[string]error  // errors of the calls that were refused or canceled
	mu    sync.Mutex
}

func newQueued(t *testing.T, most int) *queued {
	return &queued{t: t, a: newAdmission(most, time.Hour), lanes: map[string]*queue{}, ended: map[string]error{}}
}

// enter requests admission for a call, and returns when it has started, ended or waits.
func (q *queued) enter(ctx context.Context, owner uint64, name string, patient bool) {
	go func() {
		c := scripting.Call{Program: &scripting.Program{}, Owner: owner, NoShedding: patient}
		l, err := q.a.admit(ctx, c, unrated, 1)
		q.mu.Lock()
		defer q.mu.Unlock()
		if err != nil {
			q.ended[name] = err
		} else {
			q.lanes[name] = l
		}
	}()
	synctest.Wait()
}

// fill requests admission for several calls, named NAME1, NAME2 and so on.
func (q *queued) fill(owner uint64, name string, calls int) {
	for n := range calls {
		q.enter(q.t.Context(), owner, fmt.Sprint(name, n+1), false)
	}
}

// leave ends a call, and returns the calls that started then.
func (q *queued) leave(name string) (begun []string) {
	q.mu.Lock()
	l, had := q.lanes[name], maps.Clone(q.lanes)
	delete(q.lanes, name)
	q.mu.Unlock()
	if l == nil {
		q.t.Fatalf("%s has not started", name)
	}
	l.finish()
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	for other := range q.lanes {
		if had[other] == nil {
			begun = append(begun, other)
		}
	}
	return begun
}

// started counts the started calls with names that start with a letter.
func (q *queued) started(letter byte) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name := range q.lanes {
		if name[0] == letter {
			n++
		}
	}
	return n
}

// finish ends all calls, and checks that nothing is left.
func (q *queued) finish() {
	q.t.Helper()
	for len(q.lanes) > 0 {
		for name := range q.lanes {
			q.leave(name)
			break
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.a
	if a.running() != 0 || a.waiting != 0 || a.sheddable != 0 || a.active != 0 || len(a.waitingOwners) != 0 {
		q.t.Errorf("in the end %d compute, %d wait (%d refusable) of %d owners, %d in line", a.running(), a.waiting, a.sheddable, a.active, len(a.waitingOwners))
	}
	for id, o := range a.owners {
		if o.calls != 0 || o.running != 0 || o.waiting != 0 || o.sheddable != 0 {
			q.t.Errorf("owner %d is left with %d calls", id, o.calls)
		}
	}
}

// TestOwner_belowShareStartsAtOnce: one owner has all the capacity, and more calls that wait.
func TestOwner_belowShareStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t, 16) // 12 of an untrusted program
		q.fill(1, "a", 100)
		q.fill(2, "b", 100)
		q.fill(3, "c", 100)
		if a, b, c := q.started('a'), q.started('b'), q.started('c'); a != 12 || b != 6 || c != 4 {
			t.Errorf("%d, %d and %d calls have started, want all 12, half and a third", a, b, c)
		}
		for owner := range uint64(100) {
			q.fill(10+owner, fmt.Sprint("d", owner, "-"), 2)
		}
		if all := len(q.lanes); all != 24 {
			t.Errorf("%d calls have started, want twice the limit", all)
		}
		q.finish()
	})
}

// TestOwner_turnToFewestRunning: equal owners alternate, regardless of earlier calls.
func TestOwner_turnToFewestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t, 1) // one more for other owners
		q.fill(1, "a", 50)
		q.fill(2, "b", 3)
		q.fill(3, "c", 2)
		var order []string
		for _, name := range []string{"a1", "c1", "b1", "a2", "c2", "b2", "a3"} {
			order = append(order, q.leave(name)...)
		}
		want := []string{"c1", "a2", "b2", "c2", "a3", "b3", "a4"}
		if !slices.Equal(order, want) {
			t.Errorf("calls have started in the order %v, want %v", order, want)
		}
		q.finish()
	})
}

// TestOwner_longCalls: calls take ten seconds and have one second until their deadline. Later calls
// of the owner are refused; calls of another owner all start at once.
func TestOwner_longCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(16, 500*time.Millisecond)
		run := func(owner uint64, has, takes time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), has)
			defer cancel()
			l, err := a.admit(ctx, scripting.Call{Program: &scripting.Program{}, Owner: owner}, trusted, 1)
			if err == nil {
				time.Sleep(takes)
				l.finish()
			}
			return err
		}
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 32 {
			all.Go(func() {
				for range 200 {
					if err := run(1, time.Second, 10*time.Second); err != nil {
						refused.Add(1)
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		for range 4 {
			all.Go(func() {
				for range 1000 {
					came := time.Now()
					err := run(2, time.Second, 20*time.Millisecond)
					if took := time.Since(came); err != nil || took != 20*time.Millisecond {
						t.Errorf("a call of another owner ended after %v with %v", took, err)
					}
				}
			})
		}
		all.Wait()
		if got := refused.Load(); got < 1000 {
			t.Errorf("%d calls of the overloaded owner were refused", got)
		}
	})
}

// TestOwner_queueLimits: 128 calls of one owner may wait, and 256 in all.
func TestOwner_queueLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t, 1)
		lost := func(want string) {
			t.Helper()
			q.mu.Lock()
			defer q.mu.Unlock()
			if len(q.ended) != 1 || !errors.Is(q.ended[want], scripting.ErrOverloaded) {
				t.Errorf("refused are %v, want %s", q.ended, want)
			}
			clear(q.ended)
		}
		q.fill(1, "a", 1+128)
		q.enter(t.Context(), 1, "a130", false)
		lost("a130")
		q.fill(2, "b", 1+100)
		q.fill(3, "c", 28)
		if len(q.ended) > 0 {
			t.Errorf("refused are %v before the limit is reached", q.ended)
		}
		q.enter(t.Context(), 4, "d1", false)
		lost("a129")
		q.enter(t.Context(), 3, "c29", false)
		lost("a128")
		q.enter(t.Context(), 1, "a131", false)
		lost("a131")
		q.enter(t.Context(), 1, "patient", true)
		q.enter(t.Context(), 5, "e1", false)
		lost("a127")
		q.finish()
	})
}

func TestOwner_canceledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(t, 1)
		q.fill(1, "a", 2)
		q.fill(2, "b", 1)
		ctx, cancel := context.WithCancel(t.Context())
		q.enter(ctx, 3, "c1", false)
		q.fill(3, "d", 1)
		cancel()
		synctest.Wait()
		if err := q.ended["c1"]; !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		if begun := q.leave("a1"); !slices.Equal(begun, []string{"d1"}) {
			t.Errorf("%v have started", begun)
		}
		q.finish()
	})
}

// TestOwner_allTurnsUsed: calls of many owners start, end, wait for their hosts and give up at
// random. Whenever nothing changes, no call waits although there is capacity.
func TestOwner_allTurnsUsed(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			q := newQueued(t, 1+random.IntN(8))
			cancels := map[string]context.CancelFunc{}
			for n := range 400 {
				name := fmt.Sprint("c", n)
				switch random.IntN(4) {
				case 0, 1:
					ctx, cancel := context.WithCancel(t.Context())
					cancels[name] = cancel
					q.enter(ctx, uint64(random.IntN(6)), name, random.IntN(4) == 0)
				case 2:
					for begun := range q.lanes {
						if l := q.lanes[begun]; random.IntN(2) == 0 {
							l.release()
							synctest.Wait()
							l.reacquire()
						}
						q.leave(begun)
						break
					}
				default:
					for _, cancel := range cancels {
						cancel() // no effect on a started call
						break
					}
				}
				synctest.Wait()
				q.a.mu.Lock()
				if q.a.next() != nil {
					t.Errorf("seed %d, step %d: a call waits although there is capacity", seed, n)
				}
				q.a.mu.Unlock()
			}
			for _, cancel := range cancels {
				cancel()
			}
			q.finish()
		})
	}
}

// TestOwner_idleDropped: owners with calls or recent offenses are kept.
func TestOwner_idleDropped(t *testing.T) {
	a := newAdmission(4, time.Hour)
	admit := func(owner uint64) *queue {
		l, err := a.admit(t.Context(), scripting.Call{Program: &scripting.Program{}, Owner: owner}, trusted, 1)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := admit(0)
	first.release()
	offender := admit(20_000)
	offender.owner.offenses.add([32]byte{1}, 1)
	offender.finish()
	for owner := range uint64(10_000) {
		admit(1 + owner).finish()
	}
	if len(a.owners) > 2*keptOwners || a.owners[0] != first.owner {
		t.Errorf("%d owners are kept; the one with a call: %v", len(a.owners), a.owners[0] == first.owner)
	}
	if a.owners[20_000] != offender.owner {
		t.Error("an owner was dropped while its offense counts")
	}
	first.reacquire()
	first.finish()
}

// TestOwner_processToFewest: the owner with the fewest calls in processes gets the next one.
func TestOwner_processToFewest(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	stopTicks(e)
	e.admission.mu.Lock()
	one, other := e.admission.owner(1, 0), e.admission.owner(2, 0)
	e.admission.mu.Unlock()
	alone := func(o *owner) requirements { return requirements{owner: o, memory: e.options.Memory, exclusive: true} }
	var have []*process
	for range 2 {
		p, err := e.choose(alone(one))
		if err != nil || p == nil {
			t.Fatalf("no process: %v", err)
		}
		have = append(have, p)
	}
	e.mu.Lock()
	var waits []*waiter
	for _, o := range []*owner{one, one, other, other} {
		w := &waiter{need: alone(o), result: make(chan acquired, 1)}
		waits = append(waits, w)
		e.waiting = append(e.waiting, w)
	}
	e.mu.Unlock()
	came := func() (who []int) {
		for i, w := range waits {
			if len(w.result) > 0 {
				who = append(who, i)
			}
		}
		return who
	}
	release(e, have[0], alone(one), unrated)
	if who := came(); !slices.Equal(who, []int{2}) {
		t.Errorf("a process went to %v", who)
	}
	e.cancelWait(waits[3])
	e.cancelWait(waits[2]) // the next one gets its process
	if who := came(); !slices.Equal(who, []int{0}) {
		t.Errorf("after that the process went to %v", who)
	}
	release(e, have[1], alone(one), unrated)
	if who := came(); !slices.Equal(who, []int{0, 1}) || len(e.waiting) != 0 {
		t.Errorf("in the end processes went to %v, and %d wait", who, len(e.waiting))
	}
	for _, w := range waits[:2] {
		release(e, (<-w.result).process, w.need, unrated)
	}
	if one.inProcess != 0 || other.inProcess != 0 {
		t.Errorf("the owners have %d and %d calls in processes", one.inProcess, other.inProcess)
	}
}

// TestOwner_offenderIsolated: once a call of an owner has cost a process, its untrusted programs
// share no process with other owners, and leave some processes to these.
func TestOwner_offenderIsolated(t *testing.T) {
	e := executor(t, Options{Processes: 2})
	stopTicks(e)
	e.admission.mu.Lock()
	offender, other := e.admission.owner(1, 0), e.admission.owner(2, 0)
	e.admission.mu.Unlock()
	of := func(o *owner, program byte, alone bool) requirements {
		return requirements{owner: o, memory: e.options.Memory, program: [32]byte{program}, exclusive: alone}
	}
	choose := func(n requirements) *process {
		t.Helper()
		p, err := e.choose(n)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	e.history.update([32]byte{1}, trusted)
	e.history.update([32]byte{2}, trusted)
	e.recordRating(of(offender, 1, false), misbehaved)
	if !e.history.lookup([32]byte{1}).isTrusted() {
		t.Error("the offense counts for another owner")
	}
	bad, good := choose(of(offender, 1, false)), choose(of(other, 1, false))
	if bad == good || bad.trusted || !good.trusted {
		t.Error("the rating does not depend on the owner")
	}
	if choose(of(offender, 2, false)) != good {
		t.Error("a trusted program of the offender has another process")
	}
	strange := choose(of(other, 3, false))
	if strange == bad || choose(of(offender, 3, false)) != bad || choose(of(other, 4, false)) != strange {
		t.Error("the offender shares a process with others")
	}
	for range 2 {
		release(e, good, of(other, 1, false), unrated) // the process becomes idle
	}
	for range 2 {
		if choose(of(offender, 5, true)) == nil {
			t.Fatal("the offender has less than three processes of four")
		}
	}
	if choose(of(offender, 5, true)) != nil {
		t.Error("the offender has all processes of untrusted programs")
	}
	e.ticks.Add(offenseTicks)
	if choose(of(offender, 4, false)) != strange {
		t.Error("the offense does not expire")
	}
}
