package engine

import (
	"slices"
	"testing"
)

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
