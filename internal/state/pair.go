package state

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Pair is a value that is kept under a key.
type Pair struct {
	// Value is nil for no pair, and never empty otherwise.
	Value []byte
	// Expires is when the pair is gone, in whole milliseconds; the zero time is never.
	Expires time.Time
}

// Room bounds one space.
type Room struct {
	Keys int
	// Bytes bounds keys and values together.
	Bytes int64
}

// ErrRoom is the error of a pair that does not fit into the room of its space.
var ErrRoom = errors.New("the space has no room for the pair")

// Pairs keep values under keys. Every pair stands in a space: no method reaches
// another one than that which it is given. Spaces and keys are compared byte by
// byte and are never joined. A space has a name that is not empty, and keys are
// valid UTF-8.
type Pairs interface {
	// Pair returns what a key holds, which nobody may change.
	Pair(space, key string) (Pair, error)
	// ChangePair puts in the place of what a key holds what change makes of it.
	// Nobody else changes the store meanwhile, and change must not use it. When
	// change fails, so does ChangePair, and nothing has changed. A pair that
	// takes up more than it did must fit into the room: [ErrRoom].
	ChangePair(space, key string, room Room, change func(old Pair, now time.Time) (Pair, error)) error
	// PairKeys returns keys that begin with prefix and come behind after, in the
	// order of their bytes: the first of them, at most so many, which is not 0.
	PairKeys(space, prefix, after string, most int) ([]string, error)
}

// never is the expiry of a pair that has none.
const never = math.MaxInt64

// pair is a pair as rows know it.
type pair struct {
	value   []byte
	expires int64
}

func (p pair) size(key string) int64 { return int64(len(key) + len(p.value)) }

// public returns the pair, or none when it has expired.
func (p pair) public(now int64) Pair {
	switch {
	case p.value == nil || p.expires <= now:
		return Pair{}
	case p.expires == never:
		return Pair{Value: p.value}
	}
	return Pair{Value: p.value, Expires: time.UnixMilli(p.expires)}
}

// stored returns the pair as rows know it.
func (p Pair) stored() pair {
	if p.Expires.IsZero() {
		return pair{p.Value, never}
	}
	return pair{p.Value, p.Expires.UnixMilli()}
}

// pairRows keep pairs. What rows promise, they promise too.
type pairRows interface {
	// pair returns what stands under a key, expired or not; a nil value is none.
	pair(space, key string) (pair, error)
	// putPair adds a pair or replaces the one under the same key.
	putPair(space, key string, p pair) error
	// dropPair removes a pair, if there is one.
	dropPair(space, key string) error
	// pairKeys returns keys from the first on that is not before from and is
	// before end, in order, of pairs that have not expired.
	pairKeys(space, from, end string, now int64, most int) ([]string, error)
	// dropExpired removes pairs that have expired, at most so many, of one space
	// or, when it is empty, of all. It returns what they took up in each.
	dropExpired(space string, now int64, most int) (freed map[string]usage, err error)
	// soonest returns the first expiry of all pairs.
	soonest() (int64, error)
	// eachSpace calls yield with what each space takes up.
	eachSpace(yield func(space string, u usage)) error
}

func (s *store) Pair(space, key string) (Pair, error) {
	unlock, err := s.open()
	if err != nil {
		return Pair{}, err
	}
	defer unlock()
	found, err := s.rows.pair(space, key)
	if err != nil {
		return Pair{}, fmt.Errorf("read a value: %w", err)
	}
	return found.public(s.millis()), nil
}

func (s *store) ChangePair(space, key string, room Room, change func(old Pair, now time.Time) (Pair, error)) error {
	unlock, err := s.open()
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.sweepNowAndThen(); err != nil {
		return err
	}
	now := s.now()
	old, err := s.rows.pair(space, key)
	if err != nil {
		return fmt.Errorf("read a value: %w", err)
	}
	made, err := change(old.public(now.UnixMilli()), now)
	if err != nil {
		return err
	}
	if made.Value == nil || old.expires <= now.UnixMilli() {
		if err := s.dropPair(space, key, old); err != nil {
			return err
		}
		old = pair{}
	}
	if made.Value == nil {
		return nil
	}
	return s.putPair(space, key, room, old, made.stored())
}

// dropPair removes a pair, if there is one; mu is held.
func (s *store) dropPair(space, key string, old pair) error {
	if old.value == nil {
		return nil
	}
	if err := s.rows.dropPair(space, key); err != nil {
		return fmt.Errorf("remove a value: %w", err)
	}
	s.spaces.count(space, usage{-1, -old.size(key)})
	return nil
}

// putPair stores a pair if there is room; mu is held. The old one has not expired.
func (s *store) putPair(space, key string, room Room, old, made pair) error {
	grown := usage{1, made.size(key)}
	if old.value != nil {
		grown = usage{0, made.size(key) - old.size(key)}
	}
	if err := s.makeSpace(space, room, grown); err != nil {
		return err
	}
	if err := s.rows.putPair(space, key, made); err != nil {
		if isDiskFull(err) {
			return &FullError{What: "values", Wait: time.Minute, Err: err}
		}
		return fmt.Errorf("write a value: %w", err)
	}
	s.spaces.count(space, grown)
	s.spaces.soonest = min(s.spaces.soonest, made.expires)
	return nil
}

func (s *store) PairKeys(space, prefix, after string, most int) ([]string, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	from := prefix
	if after >= prefix {
		from = after + "\x00"
	}
	// No text in UTF-8 has the byte 0xff.
	keys, err := s.rows.pairKeys(space, from, prefix+"\xff", s.millis(), most)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return keys, nil
}
