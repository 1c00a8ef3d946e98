package upstream

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
)

// However Keep and those who subscribe come together, the server that is kept in the end
// tells of what was subscribed to and not taken back.
func TestASubscriptionOutlivesTheServerThatIsReplacedMeanwhile(t *testing.T) {
	f := NewFleet(Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, func() {}, func(string, string) {})
	defer f.Close()
	replace := func(n int) { f.Keep([]Place{{Name: "one", Command: []string{fmt.Sprintf("/nowhere/%d", n)}}}) }
	replace(0)
	const rounds = 400
	kept, gone := func(n int) string { return fmt.Sprint("kept://", n) }, func(n int) string { return fmt.Sprint("gone://", n) }
	for n := range rounds {
		f.Subscribe("one", gone(n))
	}
	var all sync.WaitGroup
	for n := range rounds {
		all.Go(func() { replace(n + 1) })
		all.Go(func() { f.Subscribe("one", kept(n)) })
		all.Go(func() { f.Unsubscribe("one", gone(n)) })
	}
	all.Wait()
	wanted := f.server("one").subscriptions
	for n := range rounds {
		if !wanted.wants(kept(n)) || wanted.wants(gone(n)) {
			t.Errorf("in round %d a subscription is lost, or comes back", n)
		}
	}
}
