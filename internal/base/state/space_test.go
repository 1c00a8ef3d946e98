package state

import (
	"strconv"
	"testing"
	"time"
)

func TestSweep_removesExpired(t *testing.T) {
	now := soon
	s := NewMemory(Options{Now: func() time.Time { return now }}).(*store)
	t.Cleanup(func() { s.Close() })
	for i := range 3*sweepBatch + 1 {
		err := s.ChangePair("space", strconv.Itoa(i), Room{1 << 20, 1 << 40}, func(Pair, time.Time) (Pair, error) {
			return Pair{Value: []byte("1"), Expires: now.Add(time.Second)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Second)
	if s.spaces.soonest != now.UnixMilli() {
		t.Errorf("first expiry %d", s.spaces.soonest)
	}
	if err := s.Sweep(); err != nil || s.spaces.soonest != never || s.spaces.all != (Usage{}) || len(s.spaces.of) > 0 {
		t.Errorf("remaining: %+v, %v", s.spaces.all, err)
	}
}
