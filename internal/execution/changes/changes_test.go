package changes_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/changes"
)

func TestReceive(t *testing.T) {
	var sent []state.Message
	c := changes.New(slog.New(slog.DiscardHandler), func(topic state.Topic, names ...string) {
		for _, name := range names {
			sent = append(sent, state.Message{Topic: topic, Name: name})
		}
	})
	var got [][]string
	stop := c.Subscribe(func(changed []string) { got = append(got, changed) })
	watched := func() []string { return []string{"lab://a", "lab://b"} }
	c.UpstreamUpdated([]string{"lab://x"})
	c.Receive(state.Message{Topic: state.ResourceUpdated, Name: "lab://y"}, watched)
	c.Receive(state.Message{Topic: state.TokenDropped, Name: "lab://z"}, watched)
	c.Receive(state.Message{Topic: "of another version"}, watched)
	c.Receive(state.Message{Topic: state.ResourceUpdated}, watched)
	c.Receive(state.Message{}, watched)
	stop()
	c.Notify([]string{"lab://end"})
	if diff := cmp.Diff([][]string{{"lab://x"}, {"lab://y"}, {"lab://a", "lab://b"}, {"lab://a", "lab://b"}}, got); diff != "" {
		t.Errorf("notified (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]state.Message{{Topic: state.ResourceUpdated, Name: "lab://x"}}, sent); diff != "" {
		t.Errorf("sent (-want +got)\n%s", diff)
	}
}

// Changes of watched resources of upstream servers call Notify outside a load.
func TestNotify_panicDoesNotStopOthers(t *testing.T) {
	var log bytes.Buffer
	c := changes.New(slog.New(slog.NewTextHandler(&log, nil)), func(state.Topic, ...string) {})
	calls := 0
	for range 3 {
		c.Subscribe(func([]string) { calls++; panic("secret value") })
	}
	c.Notify(nil)
	if got := log.String(); calls != 3 || strings.Count(got, "recover panic in subscriber") != 3 || strings.Contains(got, "secret value") {
		t.Errorf("%d calls, log:\n%s", calls, got)
	}
}

func TestSubscribe_stop(t *testing.T) {
	c := changes.New(slog.New(slog.DiscardHandler), func(state.Topic, ...string) {})
	c.Notify([]string{"nobody listens"})
	var first, second []string
	stop := c.Subscribe(func(changed []string) { first = append(first, changed...) })
	c.Subscribe(func(changed []string) {
		second = append(second, changed...)
		stop() // a function may remove itself and others
	})
	c.Notify([]string{"a", "b"})
	c.Notify([]string{"c"})
	if !slices.Equal(second, []string{"a", "b", "c"}) || slices.Contains(first, "c") || len(first) != 2 && len(first) != 0 {
		t.Errorf("the functions got %v and %v", first, second)
	}
	stop()
}
