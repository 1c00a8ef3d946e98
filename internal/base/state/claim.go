package state

import (
	"context"
	"errors"
	"time"
)

// Nonce is a number used once: it tells one request state from all others.
type Nonce [16]byte

// Claim is what becomes of the wish to use a nonce.
type Claim struct {
	// Won says that the caller is the first, and is to do the work.
	Won bool
	// Answer is what the first was given. Nobody may change it.
	Answer []byte
}

// The phases of a claim. One that is claimed while no flight of this process
// has its nonce is lost. One that is unkept had an answer that had no room.
const (
	claimed = iota
	answered
	unkept
)

// A flight is a claim that was won and not yet finished.
type flight struct {
	entry Entry
	done  chan struct{}
	// claim and err are what those who wait get; they are set when done is closed.
	claim Claim
	err   error
}

// end gives all who wait what they get.
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

// claim returns the flight to wait for, or else the claim.
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
	if e, known := s.ledgers[claimKind].entries[id]; known {
		c, err := s.past(e)
		return nil, c, err
	}
	e := Entry{Kind: claimKind, ID: id, Owner: owner.key(), Phase: claimed, Expires: expires}
	if err := s.write(e, nil); err != nil {
		return nil, Claim{}, err
	}
	s.flights[id] = &flight{entry: e, done: make(chan struct{})}
	return nil, Claim{Won: true}, nil
}

// past returns a claim that is no longer running; mu is held.
func (s *store) past(e Entry) (Claim, error) {
	switch e.Phase {
	case answered:
		data, err := s.read(e)
		return Claim{Answer: data}, err
	case unkept:
		return Claim{}, ErrUnkept
	}
	return Claim{}, ErrLost
}

func (s *store) Finish(nonce Nonce, answer []byte) error {
	unlock, f, err := s.land(nonce)
	if err != nil {
		return err
	}
	defer unlock()
	defer f.end(Claim{Answer: answer}, nil)
	f.entry.Phase = answered
	err = s.write(f.entry, answer)
	if full := (*FullError)(nil); errors.As(err, &full) {
		f.entry.Phase = unkept
		if err := s.write(f.entry, nil); err != nil {
			return err
		}
	}
	return err
}

func (s *store) Lose(nonce Nonce) error {
	unlock, f, err := s.land(nonce)
	if err != nil {
		return err
	}
	defer unlock()
	f.end(Claim{}, ErrLost)
	return nil
}

// errNotClaimed is the error of a claim that is ended twice, or was never won.
var errNotClaimed = errors.New("the claim is not running")

// land locks the store and takes a flight out of those that are running.
func (s *store) land(nonce Nonce) (unlock func(), f *flight, err error) {
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
