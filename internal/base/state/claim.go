package state

import (
	"context"
	"errors"
	"time"
)

// Nonce is a number used once, which identifies a request state.
type Nonce [16]byte

// Claim is the result of claiming a nonce.
type Claim struct {
	// Won means that the caller is the first and must do the work.
	Won bool
	// Answer is the answer of the first caller. It must not be changed.
	Answer []byte
}

// Phases of a claim. A claimed nonce without a flight in this process is lost. The
// answer of a notStored claim did not fit into the store.
const (
	claimed = iota
	answered
	notStored
)

// A flight is a won claim that is not finished.
type flight struct {
	entry Entry
	done  chan struct{}
	// claim and err are the result for waiters; they are set before done is closed.
	claim Claim
	err   error
}

// end returns the result to all waiters.
func (f *flight) end(c Claim, err error) {
	f.claim, f.err = c, err
	close(f.done)
}

func (f *flight) wait(ctx context.Context) (Claim, error) {
	select {
	case <-f.done:
		return f.claim, f.err
	case <-ctx.Done():
		return Claim{}, ctx.Err()
	}
}

func (s *store) Claim(ctx context.Context, owner Owner, nonce Nonce, expires time.Time) (Claim, error) {
	running, c, err := s.claim(owner, string(nonce[:]), expires.UnixMilli())
	if running != nil {
		return running.wait(ctx)
	}
	return c, err
}

// claim returns the flight to wait for, or the claim.
func (s *store) claim(owner Owner, id string, expires int64) (*flight, Claim, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, Claim{}, err
	}
	defer unlock()
	if expires <= s.millis() {
		return nil, Claim{}, ErrExpired
	}
	if running := s.flights[id]; running != nil {
		return running, Claim{}, nil
	}
	if e, known := s.ledgers[ClaimKind].entries[id]; known {
		c, err := s.endedClaim(e)
		return nil, c, err
	}
	e := Entry{Kind: ClaimKind, ID: id, Owner: owner.Key(), Phase: claimed, Expires: expires}
	if err := s.write(e, nil); err != nil {
		return nil, Claim{}, err
	}
	s.flights[id] = &flight{entry: e, done: make(chan struct{})}
	return nil, Claim{Won: true}, nil
}

// endedClaim returns a claim that is not running; mu is held.
func (s *store) endedClaim(e Entry) (Claim, error) {
	switch e.Phase {
	case answered:
		data, err := s.read(e)
		return Claim{Answer: data}, err
	case notStored:
		return Claim{}, ErrNotStored
	}
	return Claim{}, ErrLost
}

func (s *store) Finish(nonce Nonce, answer []byte) error {
	unlock, f, err := s.removeFlight(nonce)
	if err != nil {
		return err
	}
	defer unlock()
	defer f.end(Claim{Answer: answer}, nil)
	f.entry.Phase = answered
	err = s.write(f.entry, answer)
	if full := (*FullError)(nil); errors.As(err, &full) {
		f.entry.Phase = notStored
		if err := s.write(f.entry, nil); err != nil {
			return err
		}
	}
	return err
}

func (s *store) Lose(nonce Nonce) error {
	unlock, f, err := s.removeFlight(nonce)
	if err != nil {
		return err
	}
	defer unlock()
	f.end(Claim{}, ErrLost)
	return nil
}

// errNotClaimed is the error for a claim that was not won or has already ended.
var errNotClaimed = errors.New("the claim is not running")

// removeFlight locks the store and removes a flight from the running ones.
func (s *store) removeFlight(nonce Nonce) (unlock func(), f *flight, err error) {
	unlock, err = s.open()
	if err != nil {
		return nil, nil, err
	}
	id := string(nonce[:])
	if f = s.flights[id]; f == nil {
		unlock()
		return nil, nil, errNotClaimed
	}
	delete(s.flights, id)
	return unlock, f, nil
}
