package lanes_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/lanes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJobsOfOneKeyRunInOrderAndNoneIsLost(t *testing.T) {
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
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if len(ran[key]) != each || !slices.IsSorted(ran[key]) {
			t.Errorf("key %d ran %v", key, ran[key])
		}
	}
}

func TestWhoOrdersMoreThanTheQueueHoldsWaits(t *testing.T) {
	release := make(chan struct{})
	q := lanes.New(1, 2, func(int) { <-release })
	q.Add(0, 1, 1, time.Hour)
	q.Add(0, 1, 2, time.Hour)
	added := make(chan struct{})
	go func() {
		q.Add(0, 1, 3, time.Hour)
		close(added)
	}()
	for q.Waits() == 0 {
		select {
		case <-added:
			t.Fatal("a third job was taken by a queue of two")
		default:
		}
	}
	close(release)
	<-added
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestFlushEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	q := lanes.New(1, 2, func(int) { <-release })
	q.Add(0, 1, 1, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("flush: %v", err)
	}
	close(release)
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWhoRunsOutOfPatienceGivesUp(t *testing.T) {
	release := make(chan struct{})
	ran := 0
	q := lanes.New(1, 1, func(int) { <-release; ran++ })
	if !q.Add(0, 1, 1, time.Hour) || q.Add(0, 1, 2, time.Nanosecond) {
		t.Error("a full queue took a job, or an empty one did not")
	}
	close(release)
	if err := q.Flush(t.Context()); err != nil || ran != 1 {
		t.Errorf("flush: %v; %d jobs ran", err, ran)
	}
}

func TestNobodyElseWaitsInVainBeforeTheQueueIsHalfEmpty(t *testing.T) {
	step := make(chan struct{})
	done := make(chan struct{})
	q := lanes.New(1, 4, func(int) { <-step; done <- struct{}{} })
	q.Add(0, 2, 1, time.Hour)
	q.Add(0, 2, 2, time.Hour)
	if q.Add(0, 1, 3, time.Nanosecond) {
		t.Fatal("a full queue took a job")
	}
	if q.Add(0, 1, 4, time.Hour) || q.Waits() != 1 {
		t.Errorf("the second waited too: %d waits", q.Waits())
	}
	for range 2 {
		step <- struct{}{}
		<-done
	}
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !q.Add(0, 1, 5, 0) {
		t.Error("an empty queue takes nothing")
	}
	step <- struct{}{}
	<-done
	if err := q.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
