package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/state"
)

// inbox returns a channel with the messages that a replica receives.
func inbox(s state.Shared) <-chan state.Message {
	got := make(chan state.Message, 20_000)
	s.Receive(func(m state.Message) { got <- m })
	return got
}

func updated(uri string) state.Message {
	return state.Message{Topic: state.ResourceUpdated, Name: uri}
}

func TestPublish_otherReplica(t *testing.T) {
	for name, h := range map[string]hooks{"notification": {frozen: true, noPoll: true}, "poll": {frozen: true, noListen: true}} {
		t.Run(name, func(t *testing.T) {
			url := newURL(t)
			a := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
			check(t, a.Publish([]state.Message{updated("before b")}))
			b := opened(t, state.Database{URL: url}, state.Options{}, h)
			check(t, a.Publish([]state.Message{updated("first"), {Topic: "of another version", Name: "x"}}))
			atA, atB := inbox(a), inbox(b)
			long := strings.Repeat("x", state.MaxName+1)
			check(t, a.Publish([]state.Message{updated("second"), {Topic: state.TokenDropped, Name: long}}))
			for _, want := range []state.Message{updated("first"), {Topic: "of another version", Name: "x"}, updated("second"), {Topic: state.TokenDropped}} {
				if got := <-atB; got != want {
					t.Errorf("received %+v, want %+v", got, want)
				}
			}
			check(t, b.Publish([]state.Message{updated("of b")}))
			if got := <-atA; got != updated("of b") {
				t.Errorf("a received its own message %+v", got)
			}
		})
	}
}

// Each message arrives once, and those of a replica in their order.
func TestPublish_concurrently(t *testing.T) {
	stores := replicas(t, 3, state.Options{})
	got := inbox(stores[0])
	const each, at = 40, 2
	var all sync.WaitGroup
	for i := range at {
		all.Go(func() {
			for n := range each {
				if err := stores[1+i].Publish([]state.Message{updated(fmt.Sprintf("%d a %d", i, n)), updated(fmt.Sprintf("%d b %d", i, n))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	bySender := map[string][]string{}
	for range 2 * each * at {
		m := <-got
		bySender[m.Name[:1]] = append(bySender[m.Name[:1]], m.Name)
	}
	all.Wait()
	for i := range at {
		var want []string
		for n := range each {
			want = append(want, fmt.Sprintf("%d a %d", i, n), fmt.Sprintf("%d b %d", i, n))
		}
		if sender := fmt.Sprint(i); !slices.Equal(bySender[sender], want) {
			t.Errorf("replica %s: %q", sender, bySender[sender])
		}
	}
}

// The zero message stands for messages that the database has no more.
func TestPublish_missed(t *testing.T) {
	url := newURL(t)
	a := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true})
	b := opened(t, state.Database{URL: url}, state.Options{}, hooks{frozen: true, noListen: true, noPoll: true})
	many := make([]state.Message, keptMessages+1)
	for i := range many {
		many[i] = updated(fmt.Sprint(i))
	}
	check(t, a.Publish(many))
	got := inbox(b)
	if first, second := <-got, <-got; first != (state.Message{}) || second != many[1] {
		t.Errorf("received %+v, %+v", first, second)
	}
	for _, want := range many[2:] {
		if got := <-got; got != want {
			t.Fatalf("received %+v, want %+v", got, want)
		}
	}
	var kept int
	c, err := pgx.ConnectConfig(t.Context(), a.config.Copy())
	check(t, err)
	defer c.Close(context.Background())
	check(t, c.QueryRow(t.Context(), a.q(`SELECT count(*) FROM {s}.messages`)).Scan(&kept))
	if kept != keptMessages {
		t.Errorf("the database keeps %d messages", kept)
	}
}

// A standby that lags, or a restored backup, has used fewer numbers than the database before it.
func TestPublish_afterFailover(t *testing.T) {
	stores := replicas(t, 2, state.Options{})
	a, b := stores[0], stores[1]
	got := inbox(b)
	check(t, a.Publish([]state.Message{updated("1"), updated("2"), updated("3")}))
	for range 3 {
		<-got
	}
	execute(t, a, `DELETE FROM {s}.messages`)
	execute(t, a, `UPDATE {s}.newest_message SET id = 0`)
	check(t, a.Publish([]state.Message{updated("4")}))
	if first := <-got; first != (state.Message{}) {
		t.Errorf("received %+v, want the zero message", first)
	}
	check(t, a.Publish([]state.Message{updated("5")}))
	for m := range got { // 4 too, unless the zero message stands for it
		if m == updated("5") {
			break
		}
	}
}

// A replica with another key cannot read a message: tokens and resources may have changed. No
// authorization ends, since only the zero message and TokenDropped end them.
func TestPublish_encrypted(t *testing.T) {
	url := newURL(t)
	database := func(key ...string) state.Database { return state.Database{URL: url, Keys: key} }
	a := opened(t, database("a key of the operator"), state.Options{}, hooks{frozen: true})
	rotated := opened(t, database("the next key", "a key of the operator"), state.Options{}, hooks{frozen: true})
	atA, atRotated := inbox(a), inbox(rotated)
	check(t, a.Publish([]state.Message{updated("file:///accounts/ada")}))
	if got := <-atRotated; got != updated("file:///accounts/ada") {
		t.Errorf("received %+v", got)
	}
	var found bool
	c, err := pgx.ConnectConfig(t.Context(), a.config.Copy())
	check(t, err)
	defer c.Close(context.Background())
	check(t, c.QueryRow(t.Context(), a.q(`SELECT bool_or(position('ada'::bytea IN data) > 0) FROM {s}.messages`)).Scan(&found))
	if found {
		t.Error("a name is in the database in clear text")
	}
	check(t, rotated.Publish([]state.Message{updated("file:///accounts/ada")}))
	wantUnreadable := func() {
		t.Helper()
		for _, want := range []state.Message{{Topic: state.TokenChanged}, {Topic: state.ResourceUpdated}} {
			if got := <-atA; got != want {
				t.Errorf("received %+v, want %+v", got, want)
			}
		}
	}
	wantUnreadable()
	execute(t, a, `SELECT {s}.publish_1('stranger', ARRAY['\x00'::bytea, '\x'], 10, 'none')`)
	check(t, rotated.Publish([]state.Message{updated("x")}))
	for range 3 {
		wantUnreadable()
	}
}

func TestPublish_closed(t *testing.T) {
	s := opened(t, state.Database{URL: newURL(t)}, state.Options{}, hooks{frozen: true})
	check(t, s.Close())
	if err := s.Publish([]state.Message{updated("x")}); !errors.Is(err, state.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// lazy returns a store that is opened at its first use, and the messages that it receives.
func lazy(t *testing.T, url string) (*state.Lazy, <-chan state.Message) {
	got := make(chan state.Message, 1000)
	l := &state.Lazy{
		Database:     func() (*state.Database, error) { return &state.Database{URL: url}, nil },
		OpenDatabase: Open, Receive: func(m state.Message) { got <- m },
	}
	t.Cleanup(func() { check(t, l.Close()) })
	return l, got
}

// Messages wait for the database.
func TestLazyPublish(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, os.Getenv(needed))
	url := server.URL("postgres", "")
	a, atA := lazy(t, url)
	b, atB := lazy(t, url)
	for _, l := range []*state.Lazy{a, b} {
		_, err := l.Open()
		check(t, err)
	}
	a.Publish(state.ResourceUpdated, "one")
	if got := <-atB; got != updated("one") {
		t.Errorf("received %+v", got)
	}
	check(t, server.Stop())
	a.Publish(state.ResourceUpdated, "two", "three", "two")
	a.Publish(state.TokenDropped, strings.Repeat("x", state.MaxName+1), "covered")
	check(t, server.Restart())
	for _, want := range []state.Message{updated("two"), updated("three"), {Topic: state.TokenDropped}} {
		if got := <-atB; got != want {
			t.Errorf("received %+v, want %+v", got, want)
		}
	}
	b.Publish(state.ResourceUpdated, "at the end")
	check(t, b.Close())
	if got := <-atA; got != updated("at the end") {
		t.Errorf("received %+v", got)
	}
	b.Publish(state.ResourceUpdated, "after the end")
	late, atLate := lazy(t, url)
	late.Connect()
	for { // until it is connected
		a.Publish(state.ResourceUpdated, "late")
		select {
		case <-atLate:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
