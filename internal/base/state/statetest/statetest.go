// Package statetest has the contract tests of [state.Store]. A [Suite] creates the stores of one kind,
// and [Suite.Run] tests them.
package statetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
)

// Suite creates stores of one kind. The tests close them.
type Suite struct {
	// New returns an empty store.
	New func(t testing.TB, o state.Options) state.Store
	// Restart closes a store and opens it again. Crash leaves the store open, and opens
	// a copy as after a kill. Both are nil for stores in memory.
	Restart, Crash func(t testing.TB, s state.Store, o state.Options) state.Store
	// Waiting returns once a further claim of a store waits for the answer of another. It is nil
	// for stores without connections: their tests run in a bubble of [synctest].
	Waiting func(s state.Store)
}

// bubble runs a test in a bubble, if connections allow it.
func (suite Suite) bubble(t *testing.T, test func(*testing.T)) {
	if suite.Waiting == nil {
		synctest.Test(t, test)
	} else {
		test(t)
	}
}

// Run runs the contract tests.
func (suite Suite) Run(t *testing.T) {
	for name, test := range map[string]func(*testing.T, Suite){
		"a key seals for a day and is known until its seals have expired": keysTurn,
		"journals are kept until they expire":                             journalsExpire,
		"one of many claims wins and all others get its answer":           oneClaimWins,
		"a claim waits no longer than its context":                        claimsEndWithTheirContext,
		"a lost claim stays lost":                                         lostClaims,
		"an expired claim is refused and forgotten":                       claimsExpire,
		"a claim that runs past its expiry is kept until its end":         claimsOutliveExpiry,
		"a full store refuses and says when to come back":                 claimsAreBounded,
		"an owner cannot take the room of another":                        ownersAreBounded,
		"an answer without room is lost to all who come later":            answersAreBounded,
		"a task goes from working to its end":                             tasksEnd,
		"a task has one owner":                                            tasksHaveOwners,
		"all tasks are listed without their results":                      tasksAreListed,
		"a change that fails changes nothing":                             changesFail,
		"a task is gone after its TTL":                                    tasksExpire,
		"the end of a task has room in a full store":                      tasksAreBounded,
		"who watches a task hears of changes and of its end":              tasksAreWatched,
		"many changes of one task come one after the other":               tasksChangeInTurn,
		"a closed store refuses everything and wakes who waits":           storesClose,
		"a sealed state opens for what it was made for alone":             seals,
		"a sealed state expires":                                          sealsExpire,
		"a large journal stays in the store":                              largeJournals,
		"the text of a sealed state opens unchanged alone":                tampering,
		"a pair is kept until it is removed":                              pairsAreKept,
		"a pair that has expired is gone, and so is its weight":           pairsExpire,
		"pairs are bounded in their space and in all":                     pairsAreBounded,
		"many changes of one pair come one after the other":               pairsChangeInTurn,
		"no space reaches another":                                        spacesAreApart,
		"keys are listed in order and in pieces":                          keysAreListed,
	} {
		t.Run(name, func(t *testing.T) { test(t, suite) })
	}
	if suite.Restart == nil {
		return
	}
	for how, reopen := range map[string]func(testing.TB, state.Store, state.Options) state.Store{"restart": suite.Restart, "crash": suite.Crash} {
		t.Run("records after "+how, func(t *testing.T) { survives(t, suite, reopen) })
		t.Run("pairs after "+how, func(t *testing.T) { pairsSurvive(t, suite, reopen) })
	}
}

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now is the clock for state.Options.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fresh returns a new store with a clock.
func (suite Suite) fresh(t testing.TB, o state.Options) (state.Store, *clock) {
	t.Helper()
	c := newClock()
	o.Now = c.Now
	store := suite.New(t, o)
	closeAfter(t, store)
	return store, c
}

func closeAfter(t testing.TB, store state.Store) {
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

var (
	ann = state.Owner{ID: "ann", Kind: "key", Issuer: "here"}
	bob = state.Owner{ID: "bob", Kind: identity.KindLocal}
)

// nonce returns a unique nonce.
func nonce(n int) state.Nonce { return state.Nonce{byte(n), byte(n >> 8), 0xff} }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func keysTurn(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	if _, err := s.KeyByID(1); !errors.Is(err, state.ErrTampered) {
		t.Errorf("key before the first use: %v", err)
	}
	first, err := s.SealingKey()
	check(t, err)
	if first.Secret == ([32]byte{}) {
		t.Fatal("empty key")
	}
	c.advance(24*time.Hour - time.Second)
	wantKey(t, s, first)
	c.advance(time.Second)
	second, err := s.SealingKey()
	check(t, err)
	if first.ID == second.ID || first.Secret == second.Secret {
		t.Fatal("same key after a day")
	}
	c.advance(state.MaxLife)
	check(t, s.Sweep())
	if old, err := s.KeyByID(first.ID); err != nil || old != first {
		t.Errorf("old key while its last seals are valid: %v", err)
	}
	c.advance(time.Second)
	check(t, s.Sweep())
	if _, err := s.KeyByID(first.ID); !errors.Is(err, state.ErrTampered) {
		t.Errorf("old key after its last seal: %v", err)
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

// wantKey checks which key seals, and that its id finds it.
func wantKey(t testing.TB, s state.Store, want state.Key) {
	t.Helper()
	sealing, err := s.SealingKey()
	check(t, err)
	known, err := s.KeyByID(want.ID)
	check(t, err)
	if sealing != want || known != want {
		t.Fatalf("%v seals, found %v; want %v", sealing, known, want)
	}
}

func journalsExpire(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Journals: state.Limits{Count: 2, Bytes: 3 << 10}})
	expires := c.Now().Add(time.Minute)
	if _, err := s.Journal(nonce(1)); !errors.Is(err, state.ErrLost) {
		t.Errorf("unknown journal: %v", err)
	}
	journal := []byte("journal")
	check(t, s.PutJournal(ann, nonce(1), expires, journal))
	copy(journal, "changed")
	if got, err := s.Journal(nonce(1)); err != nil || string(got) != "journal" {
		t.Errorf("journal %q, %v", got, err)
	}
	wantFull(t, s.PutJournal(ann, nonce(2), expires, make([]byte, 3<<10)), time.Minute)
	check(t, s.PutJournal(ann, nonce(2), expires, []byte("second")))
	wantFull(t, s.PutJournal(ann, nonce(3), expires, nil), time.Minute)
	check(t, s.PutJournal(ann, nonce(1), expires, []byte("journal")))
	c.advance(time.Minute)
	if _, err := s.Journal(nonce(1)); !errors.Is(err, state.ErrLost) {
		t.Errorf("expired journal: %v", err)
	}
	check(t, s.PutJournal(ann, nonce(3), c.Now().Add(time.Minute), nil))
}

func storesClose(t *testing.T, suite Suite) {
	suite.bubble(t, func(t *testing.T) {
		s, c := suite.fresh(t, state.Options{})
		expires := c.Now().Add(time.Minute)
		task := create(t, s)
		changes, stop, err := s.WatchTask(ann, task.ID)
		check(t, err)
		win(t, s, ann, 1, expires)
		waits := suite.joined(t.Context(), s, 1, expires)
		check(t, s.Close())
		check(t, s.Close())
		if g := <-waits; !errors.Is(g.err, state.ErrClosed) {
			t.Errorf("waiting claim: %v", g.err)
		}
		if _, open := <-changes; open {
			t.Error("the watch channel of a task is not closed")
		}
		stop()
		for method, err := range afterClose(s, task, expires) {
			if !errors.Is(err, state.ErrClosed) {
				t.Errorf("%s on a closed store: %v", method, err)
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

// survives checks the records after a store is opened again.
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
		t.Errorf("journal %q, %v", got, err)
	}
	wantClaim(t, s, 1, expires, "done", nil)
	wantClaim(t, s, 2, expires, "", state.ErrLost)
	if s.Finish(nonce(2), nil) == nil {
		t.Error("a lost claim was finished")
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

// wantFailed checks that a task has failed with a reason.
func wantFailed(t testing.TB, s state.Store, task state.Task, when time.Time) {
	t.Helper()
	got, err := s.Task(ann, task.ID)
	check(t, err)
	if got.Status != state.Failed || got.Message == task.Message || !got.Updated.Equal(when) {
		t.Errorf("interrupted task: %s, %q, updated %v", got.Status, got.Message, got.Updated)
	}
}
