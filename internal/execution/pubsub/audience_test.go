package pubsub_test

import (
	"slices"
	"testing"

	"github.com/mcpd/mcpd/internal/execution/pubsub"
)

func TestWhoHasJoinedIsToldUntilItLeaves(t *testing.T) {
	var a pubsub.Audience
	a.Tell([]string{"nobody listens"})
	var first, second []string
	leave := a.Join(func(changed []string) { first = append(first, changed...) })
	a.Join(func(changed []string) {
		second = append(second, changed...)
		leave() // who is told may leave, and others
	})
	a.Tell([]string{"a", "b"})
	a.Tell([]string{"c"})
	if !slices.Equal(second, []string{"a", "b", "c"}) || slices.Contains(first, "c") || len(first) != 2 && len(first) != 0 {
		t.Errorf("told were %v and %v", first, second)
	}
	leave()
}
