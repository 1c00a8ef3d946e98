package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcpd/mcpd/internal/base/state"
)

// A flight is a nonce that a goroutine of this replica claims, works at or waits for. All others of
// this replica wait for the flight, and not for the database. The fields are guarded by the mu of
// the store; claim and err are set before done is closed.
type flight struct {
	phase   flightPhase
	owner   string
	replica replica // that won the claim
	waiters int
	done    chan struct{}
	claim   state.Claim
	err     error
	// again makes the waiters claim once more.
	again bool
}

type flightPhase int

const (
	claiming flightPhase = iota // the database decides
	working                     // this replica won the claim
	ending                      // its end is being stored
	fenced                      // this replica was presumed dead
	remote                      // another replica works at it
)

// end returns the result to all waiters; mu is held.
func (f *flight) end(c state.Claim, err error) {
	select {
	case <-f.done:
	default:
		f.claim, f.err = c, err
		close(f.done)
	}
}

// unsettled is the end of a claim that is still to be stored, since the database was away.
type unsettled struct {
	replica replica
	phase   int
}

// errNotClaimed is the error for a claim that was not won or has already ended.
var errNotClaimed = errors.New("the claim is not running")

func (s *store) Claim(ctx context.Context, owner state.Owner, nonce state.Nonce, expires time.Time) (state.Claim, error) {
	for {
		f, first, err := s.joinClaim(nonce, expires)
		if err != nil {
			return state.Claim{}, err
		}
		if first {
			if won := s.decide(f, owner, nonce, expires); won {
				return state.Claim{Won: true}, nil
			}
		}
		c, again, err := s.wait(ctx, nonce, f)
		if !again {
			return c, err
		}
	}
}

// joinClaim returns the flight of a nonce. first is true if the caller must decide it.
func (s *store) joinClaim(nonce state.Nonce, expires time.Time) (f *flight, first bool, err error) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, state.ErrClosed
	}
	if f = s.flights[nonce]; f != nil {
		if !expires.After(now) {
			return nil, false, state.ErrExpired
		}
		f.waiters++
		return f, false, nil
	}
	switch s.unsettled[nonce].phase {
	case notStored:
		return nil, false, state.ErrNotStored
	case lost:
		return nil, false, state.ErrLost
	}
	f = &flight{waiters: 1, done: make(chan struct{})}
	s.flights[nonce] = f
	return f, true, nil
}

// wait returns the result of a flight.
func (s *store) wait(ctx context.Context, nonce state.Nonce, f *flight) (c state.Claim, again bool, err error) {
	select {
	case <-f.done:
		c, err = f.claim, f.err
	default:
		if s.hooks.waiting != nil {
			s.hooks.waiting()
		}
		select {
		case <-f.done:
			c, err = f.claim, f.err
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiters--
	if f.phase == remote && f.waiters == 0 && s.flights[nonce] == f {
		delete(s.flights, nonce)
	}
	return c, f.again && ctx.Err() == nil, err
}

// decide claims a nonce in the database. It returns true if this replica won.
func (s *store) decide(f *flight, owner state.Owner, nonce state.Nonce, expires time.Time) (won bool) {
	r := state.NewRecord(state.Entry{Kind: state.ClaimKind, ID: string(nonce[:]), Owner: owner.Key(), Expires: expires.UnixMilli()}, nil)
	outcome, me, answer, err := s.tryClaim(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false // Close has ended the flight
	}
	if err != nil {
		delete(s.flights, nonce)
		f.end(state.Claim{}, err)
		return false
	}
	switch outcome {
	case claimed:
		f.phase, f.owner, f.replica = working, r.Owner, me
		f.waiters--
		return true
	case elsewhere:
		f.phase = remote
		s.requestPollLocked()
		return false
	}
	delete(s.flights, nonce)
	f.end(s.endedClaim(outcome, r.ID, answer))
	return false
}

// tryClaim runs claim_1, under a new id if this replica was presumed dead, and after a sweep if there is
// no room.
func (s *store) tryClaim(r state.Record) (outcome int, me replica, answer []byte, err error) {
	var soonest *int64
	err = s.withRoom(state.ClaimKind, func(bool) error {
		return s.asReplica("claim", func(present replica) error {
			me = present
			err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
				return c.QueryRow(ctx, s.q(`SELECT outcome, reply, soonest FROM {s}.claim_1($1, $2, $3, $4, $5, $6, $7, $8)`),
					[]byte(r.ID), digest(r.Owner), me.id, me.fence, r.Expires, r.Size, s.given(), limitsOf(s.options.Limits(state.ClaimKind))).Scan(&outcome, &answer, &soonest)
			})
			if err != nil {
				return fmt.Errorf("write a claim: %w", err)
			}
			return s.outcomeError(state.ClaimKind, outcome, soonest)
		})
	})
	return outcome, me, answer, err
}

// endedClaim returns a claim that is not running.
func (s *store) endedClaim(phase int, id string, answer []byte) (state.Claim, error) {
	switch phase {
	case answered:
		data, err := s.cipher.open("answer", id, answer)
		if err != nil {
			return state.Claim{}, fmt.Errorf("read a claim: %w", err)
		}
		return state.Claim{Answer: data}, nil
	case notStored:
		return state.Claim{}, state.ErrNotStored
	case expired:
		return state.Claim{}, state.ErrExpired
	}
	return state.Claim{}, state.ErrLost
}

func (s *store) Finish(nonce state.Nonce, answer []byte) error {
	return s.endClaim(nonce, answered, answer)
}

func (s *store) Lose(nonce state.Nonce) error { return s.endClaim(nonce, lost, nil) }

// endClaim ends a claim of this replica.
func (s *store) endClaim(nonce state.Nonce, phase int, answer []byte) error {
	s.mu.Lock()
	f := s.flights[nonce]
	switch {
	case s.closed:
		s.mu.Unlock()
		return state.ErrClosed
	case f != nil && f.phase == fenced:
		delete(s.flights, nonce)
		s.mu.Unlock()
		return state.ErrPresumedDead
	case f == nil || f.phase != working:
		s.mu.Unlock()
		return errNotClaimed
	}
	f.phase = ending
	s.mu.Unlock()

	outcome, err := s.storeEnd(nonce, f.owner, f.replica, phase, answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(state.ErrClosed, err)
	}
	delete(s.flights, nonce)
	_, isFull := errors.AsType[*state.FullError](err)
	switch {
	case outcome == dead:
		f.end(state.Claim{}, state.ErrLost)
		return state.ErrPresumedDead
	case err != nil && !isFull:
		s.unsettled[nonce] = unsettled{f.replica, max(phase, notStored)}
	}
	if phase == lost {
		f.end(state.Claim{}, state.ErrLost)
	} else {
		f.end(state.Claim{Answer: answer}, nil)
	}
	return err
}

// storeEnd runs finish_1. If the answer does not fit even after a sweep, the claim ends without it.
func (s *store) storeEnd(nonce state.Nonce, owner string, me replica, phase int, answer []byte) (outcome int, err error) {
	id := string(nonce[:])
	r := state.NewRecord(state.Entry{Kind: state.ClaimKind, ID: id, Owner: owner}, answer)
	var data []byte
	if phase == answered {
		data = s.cipher.seal("answer", id, answer)
	}
	err = s.withRoom(state.ClaimKind, func(final bool) error {
		var soonest *int64
		err := s.do(func(ctx context.Context, c *pgxpool.Conn) error {
			return c.QueryRow(ctx, s.q(`SELECT outcome, soonest FROM {s}.finish_1($1, $2, $3, $4, $5, $6, $7, $8, $9)`), nonce[:], me.id, me.fence, int16(phase), data, r.Size,
				limitsOf(s.options.Limits(state.ClaimKind)), final, s.channel).Scan(&outcome, &soonest)
		})
		switch {
		case err != nil:
			return fmt.Errorf("write a claim: %w", err)
		case outcome == full:
			return s.fullError(state.ClaimKind, soonest)
		}
		return nil
	})
	return outcome, err
}

// settle stores the ends of claims that could not be stored.
func (s *store) settle() {
	s.mu.Lock()
	open := make(map[state.Nonce]unsettled, len(s.unsettled))
	for nonce, u := range s.unsettled {
		if s.flights[nonce] == nil && !s.closed {
			open[nonce] = u
			s.flights[nonce] = &flight{done: make(chan struct{}), again: true}
		}
	}
	s.mu.Unlock()
	for nonce, u := range open {
		_, err := s.storeEnd(nonce, "", u.replica, u.phase, nil)
		s.mu.Lock()
		if err == nil {
			delete(s.unsettled, nonce)
		}
		s.endFlight(nonce, err)
		s.mu.Unlock()
	}
}

// endFlight ends the flight of a nonce that this replica was not claiming; mu is held.
func (s *store) endFlight(nonce state.Nonce, err error) {
	if f := s.flights[nonce]; f != nil {
		delete(s.flights, nonce)
		f.end(state.Claim{}, err)
	}
}

// releaseTime is the time that the database has to start the statement of release.
const releaseTime = 2 * time.Second

// release removes claims of this replica that it does not know: their statement was executed, and its
// result did not arrive, or the statement arrived late. Nothing has run, so others may claim them.
//
// The statement of release may arrive late itself. It does nothing after releaseTime, and until then
// this replica does not claim again: otherwise it could remove the claim of running work.
func (s *store) release() error {
	me, err := s.replica()
	if err != nil {
		return err
	}
	var claims [][]byte
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, s.q(`SELECT nonce FROM {s}.claims WHERE replica = $1 AND fence = $2 AND phase = 0 AND octet_length(nonce) = $3`), me.id, me.fence, len(state.Nonce{}))
		if err == nil {
			claims, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	var unknown [][]byte
	s.mu.Lock()
	for _, id := range claims {
		if len(id) != len(state.Nonce{}) {
			continue
		}
		nonce := state.Nonce(id)
		_, ends := s.unsettled[nonce]
		if s.flights[nonce] == nil && !ends && !s.closed {
			unknown = append(unknown, id)
			s.flights[nonce] = &flight{done: make(chan struct{}), again: true}
		}
	}
	s.mu.Unlock()
	if len(unknown) == 0 {
		return nil
	}
	until := s.Now().Add(releaseTime)
	err = s.do(func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, s.q(`WITH gone AS (DELETE FROM {s}.claims WHERE nonce = ANY ($1) AND replica = $2 AND fence = $3 AND phase = 0 AND {s}.clock_1($5) < $4 RETURNING owner, size)
			SELECT {s}.adjust_1(1::smallint, array_agg(owner), array_agg(-1::bigint), array_agg(-size)) FROM gone`), unknown, me.id, me.fence, until.UnixMilli(), s.given())
		if err != nil {
			return finalError{err} // another try could succeed before this one arrives
		}
		return nil
	})
	if err != nil {
		select {
		case <-time.After(releaseTime + opTimeout):
		case <-s.ctx.Done():
		}
		err = fmt.Errorf("remove claims: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range unknown {
		s.endFlight(state.Nonce(id), err)
	}
	return err
}
