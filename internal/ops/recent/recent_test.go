package recent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestRing_recordsOnceStarted(t *testing.T) {
	var r Ring
	r.Add(Call{Name: "before"})
	if r.Recording() || len(r.Last(10)) != 0 {
		t.Error("a ring that was not started records")
	}
	r.Start()
	r.Add(Call{Name: "a"})
	r.Start() // keeps what it has
	r.Add(Call{Name: "b"})
	if got := r.Last(10); len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || got[1].Seq != 2 {
		t.Errorf("the last calls are %v", got)
	}
	if got := r.Last(1); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("the last call is %v", got)
	}
}

func TestRing_keepsTheLastCalls(t *testing.T) {
	var r Ring
	r.Start()
	for range 3*Size + 7 {
		r.Add(Call{})
	}
	got := r.Last(2 * Size)
	if len(got) != Size || got[0].Seq != 2*Size+8 || got[Size-1].Seq != 3*Size+7 {
		t.Errorf("%d calls from %d", len(got), got[0].Seq)
	}
}

func TestRing_boundsTexts(t *testing.T) {
	var r Ring
	r.Start()
	r.Add(Call{Agent: strings.Repeat("é", 1<<20), Name: "a"})
	if got := r.Last(1)[0]; len(got.Agent) > maxText+len("…") || !strings.HasSuffix(got.Agent, "é…") || got.Name != "a" {
		t.Errorf("the agent has %d bytes", len(got.Agent))
	}
}

func TestRing_watch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Ring
		r.Start()
		for _, name := range []string{"a", "b", "c"} {
			r.Add(Call{Name: name})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		var busy sync.WaitGroup
		calls := r.Watch(ctx, 2)
		busy.Go(func() {
			for c := range calls {
				got = append(got, c.Name)
			}
		})
		synctest.Wait()
		r.Add(Call{Name: "d"})
		synctest.Wait()
		r.Add(Call{Name: "e"})
		synctest.Wait()
		cancel()
		busy.Wait()
		if strings.Join(got, "") != "bcde" {
			t.Errorf("the watcher got %v", got)
		}
	})
}

// A watcher that falls behind loses the oldest calls, and does not delay the server.
func TestRing_slowWatcher(t *testing.T) {
	var r Ring
	var first uint64
	calls := r.Watch(t.Context(), 0)
	for range 2 * Size {
		r.Add(Call{})
	}
	n := 0
	for c := range calls {
		if n++; n == 1 {
			first = c.Seq
		}
		if n == Size {
			break
		}
	}
	if first != Size+1 {
		t.Errorf("the first call is %d", first)
	}
}
