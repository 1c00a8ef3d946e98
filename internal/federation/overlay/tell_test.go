package overlay

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/federation"
)

// TestWhoHasWaitedForALoadTellsOfResourcesAtOnce: for how long nothing is told goes by how
// long it took to take in what servers offer, and not by the start that was waited for.
func TestWhoHasWaitedForALoadTellsOfResourcesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const start = 3 * time.Second
		told := make(chan time.Time, 1)
		relist := func() time.Duration {
			time.Sleep(start)
			return time.Millisecond
		}
		f := New(federation.Options{Logger: slog.New(slog.DiscardHandler), Relist: relist, Update: func([]string) { told <- time.Now() }})
		defer f.Close()
		f.told.Go(f.tell)
		f.listed <- struct{}{}
		time.Sleep(start)
		synctest.Wait()
		f.followed.at["note://a"] = "notes"
		f.followed.updated("notes", "note://a")
		changed := time.Now()
		if late := (<-told).Sub(changed); late != leastPause {
			t.Errorf("that a resource has changed is told after %s", late)
		}
	})
}
