package lanes_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/lanes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// add adds a job of weight 1 to the only lane of a queue.
func add(q *lanes.Queue[int], job int, patience time.Duration) (added, waited bool) {
	return q.Add(0, 1, job, patience)
}

func TestJobsOfOneKeyRunInOrderAndNoneIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type job struct{ key, number int }
		var mu sync.Mutex
		ran := map[int][]int{}
		q := lanes.New(3, 8, func(j job) {
			mu.Lock()
			defer mu.Unlock()
			ran[j.key] = append(ran[j.key], j.number)
		})
		const keys, each = 10, 100
		for number := range each {
			for key := range keys {
				q.Add(uint64(key), 1, job{key, number}, time.Hour)
			}
		}
		synctest.Wait()
		for key := range keys {
			if len(ran[key]) != each || !slices.IsSorted(ran[key]) {
				t.Errorf("key %d ran %v", key, ran[key])
			}
		}
	})
}

func TestWhoOrdersMoreThanTheQueueHoldsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ran := 0
		q := lanes.New(1, 2, func(int) { <-release; ran++ })
		add(q, 1, time.Hour)
		if added, waited := add(q, 2, time.Hour); !added || waited {
			t.Errorf("where there was room: added %v, waited %v", added, waited)
		}
		returned := false
		go func() {
			if added, waited := add(q, 3, time.Hour); !added || !waited {
				t.Errorf("where there was none: added %v, waited %v", added, waited)
			}
			returned = true
		}()
		synctest.Wait()
		if returned {
			t.Error("a third job was taken by a queue of two")
		}
		close(release)
		synctest.Wait()
		if !returned || ran != 3 {
			t.Errorf("returned: %v, %d jobs ran", returned, ran)
		}
	})
}

func TestWhoRunsOutOfPatienceGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ran := 0
		q := lanes.New(1, 1, func(int) { <-release; ran++ })
		add(q, 1, time.Hour)
		began := time.Now()
		if added, waited := add(q, 2, time.Second); added || !waited || time.Since(began) != time.Second {
			t.Errorf("added %v, waited %v, after %s", added, waited, time.Since(began))
		}
		close(release)
		synctest.Wait()
		if ran != 1 {
			t.Errorf("%d jobs ran", ran)
		}
	})
}

func TestNobodyElseWaitsInVainBeforeTheQueueIsHalfEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		q := lanes.New(1, 4, func(int) { <-step })
		for job := range 4 {
			add(q, job, time.Hour)
		}
		add(q, 4, time.Second)
		if added, waited := add(q, 5, time.Hour); added || waited {
			t.Errorf("behind one who waited in vain: added %v, waited %v", added, waited)
		}
		step <- struct{}{}
		step <- struct{}{}
		synctest.Wait()
		for job := range 2 {
			add(q, 6+job, 0)
		}
		if added, waited := add(q, 8, time.Second); added || !waited {
			t.Errorf("full again: added %v, waited %v", added, waited)
		}
		close(step)
	})
}
