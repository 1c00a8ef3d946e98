package workqueue_test

import (
	"sync"
	"testing"

	"github.com/mcpd/mcpd/internal/base/workqueue"
)

// take takes as many places of an owner as it gets, up to so many.
func take(s *workqueue.Shares, owner uint64, most, want int) (got int) {
	for got < want && s.Begin(owner, most) {
		got++
	}
	return got
}

func TestShares_leaveSomeToOthers(t *testing.T) {
	var s workqueue.Shares
	if got := take(&s, 1, 1024, 2000); got != 896 {
		t.Errorf("the first owner has %d places, want seven eighths", got)
	}
	if got := take(&s, 2, 1024, 100); got != 100 {
		t.Errorf("the second owner has %d places, want all that it asks for", got)
	}
	if got := take(&s, 1, 1024, 1); got != 0 {
		t.Error("the first owner has places that are left for others")
	}
	if got := take(&s, 3, 1024, 2000); got != 28 {
		t.Errorf("the third owner has %d places, want those that are left", got)
	}
	if s.Begin(4, 1024) {
		t.Error("there are more places than there may be")
	}
	for range 896 {
		s.End(1)
	}
	if got := take(&s, 4, 1024, 2000); got != 1024-128-128 {
		t.Errorf("the next owner has %d places", got)
	}
}

// TestShares_ofFewPlacesAreNotKept: where there are less than eight, one owner may have all.
func TestShares_ofFewPlacesAreNotKept(t *testing.T) {
	for most := 1; most < 8; most++ {
		var s workqueue.Shares
		if got := take(&s, 1, most, 100); got != most {
			t.Errorf("of %d places one owner has %d", most, got)
		}
	}
}

// TestShares_joinedPlaces: nested calls count against their owner, and cannot take the
// reserve from others.
func TestShares_joinedPlaces(t *testing.T) {
	var s workqueue.Shares
	if got := take(&s, 1, 1024, 16); got != 16 {
		t.Fatalf("the first owner has %d places", got)
	}
	for range 16 * 63 {
		s.Join(1)
	}
	if s.Begin(1, 1024) {
		t.Error("an owner whose nested calls take all places begins another call")
	}
	if got := take(&s, 2, 1024, 100); got != 100 {
		t.Errorf("the second owner has %d places beside nested calls of the first", got)
	}
	for range 16 * 63 {
		s.Leave(1)
	}
	if !s.Begin(1, 1024) {
		t.Error("no place is left after the nested calls have ended")
	}
}

func TestShares_concurrentUse(t *testing.T) {
	var s workqueue.Shares
	var all sync.WaitGroup
	for owner := range uint64(8) {
		all.Go(func() {
			for range 1000 {
				if s.Begin(owner, 16) {
					s.End(owner)
				}
			}
		})
	}
	all.Wait()
	if got := take(&s, 1, 16, 100); got != 14 {
		t.Errorf("%d places are left of 14", got)
	}
}
