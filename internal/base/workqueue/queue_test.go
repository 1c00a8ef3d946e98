package workqueue_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJobsOfOneKeyRunInOrderAndNoneIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type job struct{ key, number int }
		var mu sync.Mutex
		ran := map[int][]int{}
		q := workqueue.New(3, 8, func(j job) {
			mu.Lock()
			defer mu.Unlock()
			ran[j.key] = append(ran[j.key], j.number)
		})
		const keys, each = 10, 100
		for number := range each {
			for key := range keys {
				q.Add(uint64(key), 1, job{key, number})
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

func TestAJobThatDoesNotEndHoldsUpItsOwnKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		ran := 0
		q := workqueue.New(2, 1000, func(job int) {
			if job == 0 {
				<-release
			}
			mu.Lock()
			defer mu.Unlock()
			ran++
		})
		q.Add(0, 1, 0)
		q.Add(0, 1, 1)
		for job := 1; job <= 100; job++ {
			q.Add(uint64(job), 1, job)
		}
		synctest.Wait()
		if ran != 100 {
			t.Errorf("%d jobs ran beside the one that does not end, want 100", ran)
		}
		close(release)
		synctest.Wait()
		if ran != 102 {
			t.Errorf("%d jobs ran, want 102", ran)
		}
	})
}

func TestNoMoreJobsRunAtOnceThanTheQueueIsWide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		begun := 0
		q := workqueue.New(3, 1000, func(int) {
			mu.Lock()
			begun++
			mu.Unlock()
			<-release
		})
		for job := range 100 {
			q.Add(uint64(job), 1, job)
		}
		synctest.Wait()
		if begun != 3 {
			t.Errorf("%d jobs run at once, want 3", begun)
		}
		close(release)
		synctest.Wait()
		if begun != 100 {
			t.Errorf("%d jobs ran, want 100", begun)
		}
	})
}

func TestWhoOrdersMoreThanTheQueueHoldsWaitsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		var admitted, ran []int
		q := workqueue.New(1, 2, func(job int) {
			<-step
			ran = append(ran, job)
		})
		for job := range 2 {
			if q.Add(uint64(job), 1, job) {
				t.Errorf("job %d waited where there was room", job)
			}
		}
		for job := 2; job < 5; job++ {
			go func() {
				if !q.Add(uint64(job), 1, job) {
					t.Errorf("job %d found room where there was none", job)
				}
				admitted = append(admitted, job)
			}()
			synctest.Wait()
		}
		for n := range 3 {
			if len(admitted) != n {
				t.Errorf("%d were admitted when %d jobs had run", len(admitted), n)
			}
			step <- struct{}{}
			synctest.Wait()
		}
		close(step)
		synctest.Wait()
		if want := []int{2, 3, 4}; !slices.Equal(admitted, want) {
			t.Errorf("admitted %v, want %v", admitted, want)
		}
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(ran, want) {
			t.Errorf("ran %v, want %v", ran, want)
		}
	})
}

func TestACrowdingLastsUntilTheQueueIsHalfEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		q := workqueue.New(1, 4, func(int) { <-step })
		fill := func(jobs int) {
			for range jobs {
				q.Add(0, 1, 0)
			}
		}
		want := func(when string, crowded bool, number uint64) {
			t.Helper()
			synctest.Wait()
			begun, n := q.Crowding()
			got := false
			select {
			case <-begun:
				got = true
			default:
			}
			if got != crowded || n != number {
				t.Errorf("%s: crowded %v, number %d, want %v, %d", when, got, n, crowded, number)
			}
		}
		fill(4)
		want("a full queue that nobody waits for", false, 1)
		go fill(1)
		want("somebody waits", true, 1)
		step <- struct{}{}
		want("full again", true, 1)
		step <- struct{}{}
		want("three of four", true, 1)
		step <- struct{}{}
		want("half empty", false, 2)
		fill(2)
		go fill(1)
		want("the next time", true, 2)
		close(step)
		want("empty", false, 3)
	})
}
