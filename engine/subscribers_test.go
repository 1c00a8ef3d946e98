package engine

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// Changes of watched resources of upstream servers call notify outside a load.
func TestSubscribers_panicDoesNotStopOthers(t *testing.T) {
	var log bytes.Buffer
	a := subscribers{logger: slog.New(slog.NewTextHandler(&log, nil))}
	calls := 0
	for range 3 {
		a.add(func([]string) { calls++; panic("secret value") })
	}
	a.notify(nil)
	if got := log.String(); calls != 3 || strings.Count(got, "recover panic in subscriber") != 3 || strings.Contains(got, "secret value") {
		t.Errorf("%d calls, log:\n%s", calls, got)
	}
}

func TestSubscribers_addAndLeave(t *testing.T) {
	var a subscribers
	a.notify([]string{"nobody listens"})
	var first, second []string
	leave := a.add(func(changed []string) { first = append(first, changed...) })
	a.add(func(changed []string) {
		second = append(second, changed...)
		leave() // a function may remove itself and others
	})
	a.notify([]string{"a", "b"})
	a.notify([]string{"c"})
	if !slices.Equal(second, []string{"a", "b", "c"}) || slices.Contains(first, "c") || len(first) != 2 && len(first) != 0 {
		t.Errorf("the functions got %v and %v", first, second)
	}
	leave()
}
