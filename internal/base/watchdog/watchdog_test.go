package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subject wants to be checked at most most times; 0 means without end.
type subject struct{ looks, most int }

func (s *subject) Look() bool {
	s.looks++
	return s.looks != s.most
}

func TestWatchdog_checksUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Watchdog
		often, once, left := &subject{}, &subject{most: 1}, &subject{}
		for _, s := range []*subject{often, once, left} {
			w.Watch(s)
		}
		w.Unwatch(left)
		time.Sleep(10*Tick + 1)
		synctest.Wait()
		if often.looks != 10 || once.looks != 1 || left.looks != 0 {
			t.Errorf("%d, %d and %d looks, want 10, 1 and 0", often.looks, once.looks, left.looks)
		}
		w.Unwatch(often)
	})
}

func TestWatchdog_idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Watchdog
		s := &subject{}
		for range 2 {
			w.Watch(s)
			time.Sleep(3 * Tick)
			synctest.Wait()
			if !w.armed {
				t.Error("no tick while work is running")
			}
			w.Unwatch(s)
			time.Sleep(3 * Tick)
			synctest.Wait()
			if w.armed || len(w.watched) > 0 {
				t.Error("tick without running work")
			}
		}
	})
}

// There is one timer for all.
func TestWatchdog_allocations(t *testing.T) {
	var w Watchdog
	s := &subject{}
	w.Watch(s)
	w.Unwatch(s)
	if got := testing.AllocsPerRun(1000, func() {
		w.Watch(s)
		w.Unwatch(s)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
