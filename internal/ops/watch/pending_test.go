package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPendingWaitsForQuiet(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	type seen struct {
		after time.Duration
		glance
	}
	one := func(after time.Duration, paths ...string) seen { return seen{after, glance{paths: paths}} }
	rows := []struct {
		name string
		seen []seen
		now  time.Duration
		want time.Duration
	}{
		{"nothing seen waits for ever", nil, 0, never},
		{"an empty glance is nothing", []seen{one(0)}, 0, never},
		{"one path waits 10 ms", []seen{one(0, "a")}, 0, 10 * time.Millisecond},
		{"the same path again starts the wait again", []seen{one(0, "a"), one(8*time.Millisecond, "a")}, 9 * time.Millisecond, 9 * time.Millisecond},
		{"three paths wait 10 ms", []seen{one(0, "a", "b", "c")}, 0, 10 * time.Millisecond},
		{"four paths wait 100 ms", []seen{one(0, "a", "b", "c", "d")}, 0, 100 * time.Millisecond},
		{"a pause before four paths makes them wait three times as long", []seen{one(0, "a"), one(70*time.Millisecond, "b", "c", "d")}, 70 * time.Millisecond, 210 * time.Millisecond},
		{"a pause before three paths changes nothing", []seen{one(0, "a"), one(70*time.Millisecond, "b")}, 70 * time.Millisecond, 10 * time.Millisecond},
		{"a short pause changes nothing", []seen{one(0, "a"), one(30*time.Millisecond, "b", "c", "d")}, 30 * time.Millisecond, 100 * time.Millisecond},
		{"a lone rescan waits 10 ms", []seen{{0, glance{rescan: true}}}, 0, 10 * time.Millisecond},
		{"what announces more waits 100 ms", []seen{{0, glance{rescan: true, many: true}}}, 0, 100 * time.Millisecond},
		{"past the quiet the wait is over", []seen{one(0, "a")}, time.Second, 0},
		{"it never waits longer than 2 s", []seen{one(0, "a"), one(1995*time.Millisecond, "a")}, 1996 * time.Millisecond, 4 * time.Millisecond},
		{"past 2 s the wait is over", []seen{one(0, "a"), one(2010*time.Millisecond, "a")}, 2011 * time.Millisecond, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var p pending
			for _, s := range r.seen {
				p.event(at(s.after), s.glance)
			}
			if got := p.wait(at(r.now)); got != r.want {
				t.Errorf("wait is %v, want %v", got, r.want)
			}
		})
	}
}

func TestPendingReportsEachPathOnceAndSorted(t *testing.T) {
	var p pending
	p.add(time.Unix(1, 0), glance{paths: []string{"b", "a"}})
	p.add(time.Unix(1, 0), glance{paths: []string{"a", "c"}, rescan: true})
	p.add(time.Unix(1, 0), glance{paths: []string{"b"}})
	want := Change{Paths: []string{"a", "b", "c"}, Rescan: true}
	if diff := cmp.Diff(want, p.change()); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
}

func TestPendingIsBounded(t *testing.T) {
	var p pending
	for i := range 10 * maxPaths {
		p.add(time.Unix(1, 0), glance{paths: []string{fmt.Sprint(i)}})
		if len(p.paths) > maxPaths {
			t.Fatalf("%d paths are kept, at most %d may be", len(p.paths), maxPaths)
		}
	}
	if !p.change().Rescan {
		t.Error("paths were dropped and no rescan was asked for")
	}
}

func TestWhatComesWhileReadyIsWaitedFor(t *testing.T) {
	var p pending
	p.add(time.Unix(1, 0), glance{paths: []string{"a"}})
	p.ready = true
	if got := p.wait(time.Unix(1, 0)); got != never {
		t.Errorf("a ready change waits %v, want for ever", got)
	}
	p.add(time.Unix(1, 0), glance{paths: []string{"b"}})
	if p.ready {
		t.Error("the change is ready although something has just happened")
	}
}
