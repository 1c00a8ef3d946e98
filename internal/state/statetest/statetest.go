// Package statetest checks that a [state.Store] keeps its contract, in the
// manner of testing/slogtest.
//
// Describe how stores are made as a [Suite], and call [Suite.Run] from a test.
// Run the test with the race detector: claims come from many goroutines at once.
package statetest

import (
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/state"
)

// Suite is how the stores of one kind are made. The tests close them.
type Suite struct {
	// New returns an empty store.
	New func(t testing.TB, o state.Options) state.Store
	// Restart closes a store that New or Crash has made, and opens it again. Crash leaves
	// the store as it is, and opens what a kill would have left of it. Both are
	// nil for stores that end with their process.
	Restart, Crash func(t testing.TB, s state.Store, o state.Options) state.Store
}

// Run checks the stores.
func (s Suite) Run(t *testing.T) {
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
		"a task is nobody else's":                                         tasksHaveOwners,
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
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	if s.Restart == nil {
		return
	}
	for how, reopen := range map[string]func(testing.TB, state.Store, state.Options) state.Store{"restart": s.Restart, "crash": s.Crash} {
		t.Run("after a "+how+" everything is there, and what ran is lost", func(t *testing.T) { survives(t, s, reopen) })
		t.Run("after a "+how+" all pairs are there", func(t *testing.T) { pairsSurvive(t, s, reopen) })
	}
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now is what state.Options takes.
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
func (s Suite) fresh(t testing.TB, o state.Options) (state.Store, *clock) {
	t.Helper()
	c := newClock()
	o.Now = c.Now
	store := s.New(t, o)
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

// nonce returns one that is no other's.
func nonce(n int) state.Nonce { return state.Nonce{byte(n), byte(n >> 8), 0xff} }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
