package statetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/state"
)

func keysTurn(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	if _, err := s.KeyByID(1); !errors.Is(err, state.ErrTampered) {
		t.Errorf("a key before the first use: %v", err)
	}
	first, err := s.SealingKey()
	check(t, err)
	if first.Secret == ([32]byte{}) {
		t.Fatal("the key is empty")
	}
	c.advance(24*time.Hour - time.Second)
	wantKey(t, s, first)
	c.advance(time.Second)
	second, err := s.SealingKey()
	check(t, err)
	if first.ID == second.ID || first.Secret == second.Secret {
		t.Fatal("the key is the same after a day")
	}
	c.advance(state.MaxLife)
	check(t, s.Sweep())
	if old, err := s.KeyByID(first.ID); err != nil || old != first {
		t.Errorf("the old key while its last seals live: %v", err)
	}
	c.advance(time.Second)
	check(t, s.Sweep())
	if _, err := s.KeyByID(first.ID); !errors.Is(err, state.ErrTampered) {
		t.Errorf("the old key after its last seal: %v", err)
	}
	wantKey(t, s, second)
	c.advance(-48 * time.Hour)
	third, err := s.SealingKey()
	check(t, err)
	if third.ID == second.ID {
		t.Error("a key from the future seals")
	}
	wantKey(t, s, third)
}

// wantKey checks which key seals, and that it is known by its id.
func wantKey(t testing.TB, s state.Store, want state.Key) {
	t.Helper()
	sealing, err := s.SealingKey()
	check(t, err)
	known, err := s.KeyByID(want.ID)
	check(t, err)
	if sealing != want || known != want {
		t.Fatalf("%v seals, and %v is known; want %v", sealing, known, want)
	}
}

func journalsExpire(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Journals: state.Limits{Count: 2, Bytes: 3 << 10}})
	expires := c.Now().Add(time.Minute)
	if _, err := s.Journal(nonce(1)); !errors.Is(err, state.ErrLost) {
		t.Errorf("a journal that was never kept: %v", err)
	}
	journal := []byte("journal")
	check(t, s.PutJournal(ann, nonce(1), expires, journal))
	copy(journal, "changed")
	if got, err := s.Journal(nonce(1)); err != nil || string(got) != "journal" {
		t.Errorf("the journal is %q, %v", got, err)
	}
	wantFull(t, s.PutJournal(ann, nonce(2), expires, make([]byte, 3<<10)), time.Minute)
	check(t, s.PutJournal(ann, nonce(2), expires, []byte("second")))
	wantFull(t, s.PutJournal(ann, nonce(3), expires, nil), time.Minute)
	check(t, s.PutJournal(ann, nonce(1), expires, []byte("journal")))
	c.advance(time.Minute)
	if _, err := s.Journal(nonce(1)); !errors.Is(err, state.ErrLost) {
		t.Errorf("a journal that has expired: %v", err)
	}
	check(t, s.PutJournal(ann, nonce(3), c.Now().Add(time.Minute), nil))
}

func storesClose(t *testing.T, suite Suite) {
	synctest.Test(t, func(t *testing.T) {
		s, c := suite.fresh(t, state.Options{})
		expires := c.Now().Add(time.Minute)
		task := create(t, s)
		changes, stop, err := s.WatchTask(ann, task.ID)
		check(t, err)
		win(t, s, ann, 1, expires)
		waits := joined(t.Context(), s, 1, expires)
		check(t, s.Close())
		check(t, s.Close())
		if g := <-waits; !errors.Is(g.err, state.ErrClosed) {
			t.Errorf("who waits for a claim: %v", g.err)
		}
		if _, open := <-changes; open {
			t.Error("who watches a task hears of no end")
		}
		stop()
		for method, err := range afterClose(s, task, expires) {
			if !errors.Is(err, state.ErrClosed) {
				t.Errorf("%s of a closed store: %v", method, err)
			}
		}
	})
}

// afterClose calls every method and returns the errors.
func afterClose(s state.Store, task state.Task, expires time.Time) map[string]error {
	errs := map[string]error{}
	_, errs["SealingKey"] = s.SealingKey()
	_, errs["KeyByID"] = s.KeyByID(1)
	errs["PutJournal"] = s.PutJournal(ann, nonce(1), expires, nil)
	_, errs["Journal"] = s.Journal(nonce(1))
	_, errs["Claim"] = s.Claim(context.Background(), ann, nonce(2), expires)
	errs["Finish"] = s.Finish(nonce(1), nil)
	errs["Lose"] = s.Lose(nonce(1))
	_, errs["CreateTask"] = s.CreateTask(task)
	_, errs["Task"] = s.Task(ann, task.ID)
	_, errs["UpdateTask"] = s.UpdateTask(ann, task.ID, ask)
	_, _, errs["WatchTask"] = s.WatchTask(ann, task.ID)
	_, errs["Pair"] = s.Pair("a", "k")
	errs["ChangePair"] = put(s, "a", "k", "1", wide, 0)
	_, errs["PairKeys"] = s.PairKeys("a", "", "", 1)
	errs["Sweep"] = s.Sweep()
	return errs
}

// survives checks what is left when a store is opened again.
func survives(t *testing.T, suite Suite, reopen func(testing.TB, state.Store, state.Options) state.Store) {
	o := state.Options{Claims: state.Limits{OwnerCount: 2}}
	s, c := suite.fresh(t, o)
	o.Now = c.Now
	expires := c.Now().Add(time.Minute)
	key, err := s.SealingKey()
	check(t, err)
	check(t, s.PutJournal(ann, nonce(1), expires, []byte("journal")))
	win(t, s, ann, 1, expires)
	check(t, s.Finish(nonce(1), []byte("done")))
	win(t, s, ann, 2, expires)
	working, waiting, asked, stuck, ended := create(t, s), create(t, s), create(t, s), create(t, s), create(t, s)
	waiting = changed(t, s, waiting, func(t *state.Task) error { t.TTL = 2 * time.Hour; return ask(t) })
	asked = changed(t, s, asked, ask)
	stuck = changed(t, s, stuck, func(t *state.Task) error { t.Status = state.InputRequired; return nil })
	ended = changed(t, s, ended, finish(state.Completed, strings.Repeat("r", 64<<10)))

	c.advance(time.Second)
	o.Tasks.Bytes = 32 << 10
	s = reopen(t, s, o)
	closeAfter(t, s)
	wantKey(t, s, key)
	if got, err := s.Journal(nonce(1)); err != nil || !bytes.Equal(got, []byte("journal")) {
		t.Errorf("the journal is %q, %v", got, err)
	}
	wantClaim(t, s, 1, expires, "done", nil)
	wantClaim(t, s, 2, expires, "", state.ErrLost)
	if s.Finish(nonce(2), nil) == nil {
		t.Error("a lost claim is finished")
	}
	_, err = s.Claim(t.Context(), ann, nonce(3), expires)
	wantFull(t, err, 59*time.Second)
	wantTask(t, s, waiting)
	wantTask(t, s, ended)
	wantFailed(t, s, working, c.Now())
	wantFailed(t, s, stuck, c.Now())
	_, err = s.CreateTask(state.Task{Owner: ann, TTL: time.Hour})
	wantFull(t, err, time.Hour-time.Second)
	changed(t, s, asked, finish(state.Cancelled, ""))
	c.advance(time.Hour)
	win(t, s, ann, 3, c.Now().Add(time.Minute))
	wantTask(t, s, waiting)
	create(t, s)
}

// changed changes a task.
func changed(t testing.TB, s state.Store, task state.Task, change func(*state.Task) error) state.Task {
	t.Helper()
	task, err := s.UpdateTask(ann, task.ID, change)
	check(t, err)
	return task
}

// wantFailed checks that a task has failed and says why.
func wantFailed(t testing.TB, s state.Store, task state.Task, when time.Time) {
	t.Helper()
	got, err := s.Task(ann, task.ID)
	check(t, err)
	if got.Status != state.Failed || got.Message == task.Message || !got.Updated.Equal(when) {
		t.Errorf("a task that was cut off is %s, %q, updated %v", got.Status, got.Message, got.Updated)
	}
}
