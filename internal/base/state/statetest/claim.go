package statetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

// win claims a new nonce.
func win(t testing.TB, s state.Store, owner state.Owner, n int, expires time.Time) {
	t.Helper()
	if c, err := s.Claim(context.Background(), owner, nonce(n), expires); err != nil || !c.Won {
		t.Fatalf("first claim of a nonce: %v, %v", c.Won, err)
	}
}

// wantClaim claims a finished nonce.
func wantClaim(t testing.TB, s state.Store, n int, expires time.Time, answer string, want error) {
	t.Helper()
	c, err := s.Claim(context.Background(), ann, nonce(n), expires)
	if c.Won || string(c.Answer) != answer || !errors.Is(err, want) {
		t.Fatalf("claim: won %v, %q, %v; want %q, %v", c.Won, c.Answer, err, answer, want)
	}
}

// wantFull checks that an error reports a full store with a wait.
func wantFull(t testing.TB, err error, wait time.Duration) {
	t.Helper()
	var full *state.FullError
	if !errors.As(err, &full) || full.Wait != wait || full.Error() == "" {
		t.Fatalf("got %v, want a full store for %v", err, wait)
	}
}

func oneClaimWins(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{})
	expires := c.Now().Add(time.Minute)
	const many = 100
	won := make(chan struct{}, many)
	answers := make(chan string, many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			claim, err := s.Claim(context.Background(), ann, nonce(1), expires)
			switch {
			case err != nil:
				t.Errorf("claim: %v", err)
			case claim.Won:
				won <- struct{}{}
				if err := s.Finish(nonce(1), []byte("done")); err != nil {
					t.Errorf("finish: %v", err)
				}
			default:
				answers <- string(claim.Answer)
			}
		})
	}
	all.Wait()
	if len(won) != 1 || len(answers) != many-1 {
		t.Fatalf("%d won, %d got an answer", len(won), len(answers))
	}
	for range many - 1 {
		if answer := <-answers; answer != "done" {
			t.Fatalf("answer %q", answer)
		}
	}
	wantClaim(t, s, 1, expires, "done", nil)
	if s.Finish(nonce(1), nil) == nil || s.Lose(nonce(1)) == nil {
		t.Error("a claim ended twice")
	}
}

// got is the result of a claim.
type got struct {
	state.Claim
	err error
}

// joined returns the result of a second claim of a nonce, which is already waiting.
func (suite Suite) joined(ctx context.Context, s state.Store, n int, expires time.Time) <-chan got {
	outcome := make(chan got, 1)
	go func() {
		c, err := s.Claim(ctx, ann, nonce(n), expires)
		outcome <- got{c, err}
	}()
	if suite.Waiting == nil {
		synctest.Wait()
	} else {
		suite.Waiting(s)
	}
	return outcome
}

// wantAnswer checks that a claim got an answer.
func wantAnswer(t testing.TB, g got, answer string) {
	t.Helper()
	if g.Won || string(g.Answer) != answer || g.err != nil {
		t.Errorf("waiting claim: won %v, %q, %v; want %q", g.Won, g.Answer, g.err, answer)
	}
}

func claimsEndWithTheirContext(t *testing.T, suite Suite) {
	suite.bubble(t, func(t *testing.T) {
		s, c := suite.fresh(t, state.Options{})
		expires := c.Now().Add(time.Minute)
		win(t, s, ann, 1, expires)
		ctx, cancel := context.WithCancel(t.Context())
		gone := suite.joined(ctx, s, 1, expires)
		stays := suite.joined(t.Context(), s, 1, expires)
		cancel()
		if g := <-gone; !errors.Is(g.err, context.Canceled) {
			t.Errorf("claim with a done context: %v", g.err)
		}
		check(t, s.Finish(nonce(1), []byte("done")))
		wantAnswer(t, <-stays, "done")
	})
}

func lostClaims(t *testing.T, suite Suite) {
	suite.bubble(t, func(t *testing.T) {
		s, c := suite.fresh(t, state.Options{})
		expires := c.Now().Add(time.Minute)
		win(t, s, ann, 1, expires)
		waits := suite.joined(t.Context(), s, 1, expires)
		check(t, s.Lose(nonce(1)))
		if g := <-waits; !errors.Is(g.err, state.ErrLost) {
			t.Errorf("waiting claim of a lost nonce: %v", g.err)
		}
		wantClaim(t, s, 1, expires, "", state.ErrLost)
	})
}

func claimsExpire(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Claims: state.Limits{Count: 1}})
	expires := c.Now().Add(time.Minute)
	win(t, s, ann, 1, expires)
	check(t, s.Finish(nonce(1), []byte("done")))
	c.advance(time.Minute)
	wantClaim(t, s, 1, expires, "", state.ErrExpired)
	win(t, s, ann, 2, c.Now().Add(time.Minute))
}

func claimsOutliveExpiry(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Claims: state.Limits{Count: 1}})
	win(t, s, ann, 1, c.Now().Add(time.Minute))
	c.advance(time.Hour)
	check(t, s.Sweep())
	_, err := s.Claim(t.Context(), ann, nonce(2), c.Now().Add(time.Minute))
	wantFull(t, err, time.Second)
	check(t, s.Finish(nonce(1), []byte("done")))
	win(t, s, ann, 2, c.Now().Add(time.Minute))
}

func claimsAreBounded(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Claims: state.Limits{Count: 3, OwnerCount: 3}})
	for n := range 3 {
		win(t, s, ann, n, c.Now().Add(time.Duration(n+1)*time.Minute))
		check(t, s.Finish(nonce(n), []byte("done")))
	}
	c.advance(10 * time.Second)
	_, err := s.Claim(t.Context(), bob, nonce(3), c.Now().Add(time.Minute))
	wantFull(t, err, 50*time.Second)
	wantClaim(t, s, 0, c.Now().Add(time.Minute), "done", nil)
	c.advance(50 * time.Second)
	win(t, s, bob, 3, c.Now().Add(time.Minute))
	_, err = s.Claim(t.Context(), bob, nonce(4), c.Now().Add(time.Minute))
	wantFull(t, err, time.Minute)
}

func ownersAreBounded(t *testing.T, suite Suite) {
	s, c := suite.fresh(t, state.Options{Claims: state.Limits{OwnerCount: 2}})
	expires := c.Now().Add(time.Minute)
	win(t, s, ann, 1, expires)
	win(t, s, ann, 2, expires)
	_, err := s.Claim(t.Context(), ann, nonce(3), expires)
	wantFull(t, err, time.Minute)
	win(t, s, bob, 3, expires)

	s, c = suite.fresh(t, state.Options{Journals: state.Limits{OwnerBytes: 3 << 10}})
	expires = c.Now().Add(time.Minute)
	check(t, s.PutJournal(ann, nonce(1), expires, make([]byte, 2<<10)))
	wantFull(t, s.PutJournal(ann, nonce(2), expires, make([]byte, 1<<10)), time.Minute)
	check(t, s.PutJournal(bob, nonce(2), expires, make([]byte, 1<<10)))
}

func answersAreBounded(t *testing.T, suite Suite) {
	suite.bubble(t, func(t *testing.T) {
		s, c := suite.fresh(t, state.Options{Claims: state.Limits{Bytes: 3 << 10}})
		expires := c.Now().Add(time.Minute)
		win(t, s, ann, 1, expires)
		waits := suite.joined(t.Context(), s, 1, expires)
		large := strings.Repeat("x", 4<<10)
		wantFull(t, s.Finish(nonce(1), []byte(large)), time.Minute)
		wantAnswer(t, <-waits, large)
		wantClaim(t, s, 1, expires, "", state.ErrNotStored)
		win(t, s, ann, 2, expires)
		check(t, s.Finish(nonce(2), []byte("done")))
	})
}
