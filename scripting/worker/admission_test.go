package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// enters has a call ask for admission, and tells what came of that.
func enters(a *admission, ctx context.Context, patient ...bool) <-chan error {
	told := make(chan error, 1)
	go func() { told <- a.enter(ctx, len(patient) > 0) }()
	return told
}

// came returns what came of a call, and whether anything did.
func came(told <-chan error) (error, bool) {
	synctest.Wait()
	select {
	case err := <-told:
		return err, true
	default:
		return nil, false
	}
}

func TestCallsBeginInTheirOrderOnceThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{most: 1, patience: time.Second}
		if err := a.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		first := enters(a, t.Context())
		synctest.Wait()
		second := enters(a, t.Context())
		for i, told := range []<-chan error{first, second} {
			if _, ok := came(told); ok {
				t.Errorf("call %d began without room", i)
			}
			a.leave()
			if err, ok := came(told); !ok || err != nil {
				t.Errorf("call %d did not begin: %v", i, err)
			}
		}
		a.leave()
		if a.computing != 0 || len(a.waiting) != 0 {
			t.Errorf("%d compute and %d wait in the end", a.computing, len(a.waiting))
		}
	})
}

// TestWhoComesWhenOthersHaveWaitedTooLongIsRefusedAtOnce, until the queue moves.
func TestWhoComesWhenOthersHaveWaitedTooLongIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{most: 1, patience: time.Second}
		_ = a.enter(t.Context(), false)
		first := enters(a, t.Context())
		synctest.Wait()
		time.Sleep(time.Second)
		second := enters(a, t.Context())
		if _, ok := came(second); ok {
			t.Error("a call was refused while the first had time")
		}
		time.Sleep(time.Nanosecond)
		if err := a.enter(t.Context(), false); !errors.Is(err, scripting.ErrOverloaded) {
			t.Errorf("one that comes then ended with %v", err)
		}
		third := enters(a, t.Context(), true)
		if err, ok := came(third); ok {
			t.Errorf("a patient call ended with %v", err)
		}
		a.leave()
		if err, ok := came(first); !ok || err != nil {
			t.Errorf("the first did not begin: %v", err)
		}
		fourth := enters(a, t.Context())
		if err, ok := came(fourth); ok {
			t.Errorf("the fourth ended with %v, though the queue has moved", err)
		}
		for _, told := range []<-chan error{second, third, fourth} {
			a.leave()
			if err, ok := came(told); !ok || err != nil {
				t.Errorf("a call did not begin: %v", err)
			}
		}
	})
}

// TestWhoWouldComeLateIsRefusedAtOnce: with ten turns a second, and half a second
// of patience, five may wait.
func TestWhoWouldComeLateIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{most: 8, patience: 500 * time.Millisecond}
		refused, late := 0, 0
		for n := range 1000 {
			time.Sleep(10 * time.Millisecond) // ten times what there is room for
			go func() {
				began := time.Now()
				err := a.enter(t.Context(), false)
				switch waited := time.Since(began); {
				case errors.Is(err, scripting.ErrOverloaded) && waited == 0:
					refused++
					return
				case err != nil || n > 300 && waited > 700*time.Millisecond: // the pace is known then
					late++
				}
				time.Sleep(400*time.Millisecond + time.Duration(n*7919%801)*time.Millisecond)
				a.leave()
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		if late > 30 || refused < 840 || refused > 920 {
			t.Errorf("%d of 1000 were refused and %d began late", refused, late)
		}
		if a.computing != 0 || len(a.waiting) != 0 {
			t.Errorf("%d compute and %d wait in the end", a.computing, len(a.waiting))
		}
	})
}

func TestWhoGivesUpTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{most: 1, patience: time.Second}
		_ = a.enter(t.Context(), false)
		ctx, cancel := context.WithCancel(t.Context())
		first := enters(a, ctx)
		synctest.Wait()
		second := enters(a, t.Context())
		synctest.Wait()
		cancel()
		if err, ok := came(first); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("the first ended with %v", err)
		}
		a.leave()
		if err, ok := came(second); !ok || err != nil {
			t.Errorf("the second did not begin: %v", err)
		}
		a.leave()
	})
}

func TestACallThatGoesOnNeedsNoRoom(t *testing.T) {
	a := &admission{most: 1, patience: time.Second}
	_ = a.enter(t.Context(), false)
	a.leave()
	_ = a.enter(t.Context(), false)
	a.resume()
	if a.computing != 2 {
		t.Errorf("%d compute", a.computing)
	}
}
