package upstream

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestServersThatHangHoldUpOthersForTheirStartAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hanging = 650
		g := make(gate, maxDialling)
		began := time.Now()
		for range hanging {
			go func() { _ = g.enter(t.Context()) }() // and never leaves
		}
		synctest.Wait()
		g.enter(t.Context())()
		if waited, most := time.Since(began), (hanging+maxDialling-1)/maxDialling*maxHeld; waited > most {
			t.Errorf("one that does well waits for %s, and %s would do", waited, most)
		}
		time.Sleep(time.Minute)
	})
}

func TestOfManyServersFewAreConnectedToAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := make(gate, maxDialling)
		var within atomic.Int64
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				defer g.enter(t.Context())()
				if n := within.Add(1); n > maxDialling {
					t.Errorf("%d are connected to at once", n)
				}
				time.Sleep(maxHeld / 2)
				within.Add(-1)
			})
		}
		all.Wait()
	})
}
