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

// StoredPair is a pair as [Rows] know it. A nil value is none.
type StoredPair struct {
	Value   []byte
	Expires int64
}

func (p StoredPair) Size(key string) int64 { return int64(len(key) + len(p.Value)) }

// public returns the pair, or none when it has expired.
func (p StoredPair) public(now int64) Pair {
	switch {
	case p.Value == nil || p.Expires <= now:
		return Pair{}
	case p.Expires == never:
		return Pair{Value: p.Value}
	}
	return Pair{Value: p.Value, Expires: time.UnixMilli(p.Expires)}
}

func (p Pair) stored() StoredPair {
	if p.Expires.IsZero() {
		return StoredPair{p.Value, never}
	}
	return StoredPair{p.Value, p.Expires.UnixMilli()}
}

func (s *store) Pair(space, key string) (Pair, error) {
	unlock, err := s.open()
	if err != nil {
		return Pair{}, err
	}
	defer unlock()
	found, err := s.rows.Pair(space, key)
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
	old, err := s.rows.Pair(space, key)
	if err != nil {
		return fmt.Errorf("read a value: %w", err)
	}
	made, err := change(old.public(now.UnixMilli()), now)
	if err != nil {
		return err
	}
	if made.Value == nil || old.Expires <= now.UnixMilli() {
		if err := s.dropPair(space, key, old); err != nil {
			return err
		}
		old = StoredPair{}
	}
	if made.Value == nil {
		return nil
	}
	return s.putPair(space, key, room, old, made.stored())
}

// dropPair removes a pair, if there is one; mu is held.
func (s *store) dropPair(space, key string, old StoredPair) error {
	if old.Value == nil {
		return nil
	}
	if err := s.rows.DropPair(space, key); err != nil {
		return fmt.Errorf("remove a value: %w", err)
	}
	s.spaces.count(space, Usage{-1, -old.Size(key)})
	return nil
}

// putPair stores a pair if there is room; mu is held. The old one has not expired.
func (s *store) putPair(space, key string, room Room, old, made StoredPair) error {
	grown := Usage{1, made.Size(key)}
	if old.Value != nil {
		grown = Usage{0, made.Size(key) - old.Size(key)}
	}
	if err := s.makeSpace(space, room, grown); err != nil {
		return err
	}
	if err := s.rows.PutPair(space, key, made); err != nil {
		if s.rows.IsFull(err) {
			return &FullError{What: "values", Wait: time.Minute, Err: err}
		}
		return fmt.Errorf("write a value: %w", err)
	}
	s.spaces.count(space, grown)
	s.spaces.soonest = min(s.spaces.soonest, made.Expires)
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
	keys, err := s.rows.PairKeys(space, from, prefix+"\xff", s.millis(), most)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return keys, nil
}

// sweepBatch is how many pairs are removed at once, so that nobody waits for long.
const sweepBatch = 1 << 10

// spaces know what the pairs of all spaces take up.
type spaces struct {
	limits Limits
	all    Usage
	of     map[string]Usage
	// soonest is no later than the first expiry of a pair.
	soonest int64
}

func (s *spaces) count(space string, grown Usage) {
	u := s.of[space]
	u.Count, u.Bytes = u.Count+grown.Count, u.Bytes+grown.Bytes
	s.all.Count, s.all.Bytes = s.all.Count+grown.Count, s.all.Bytes+grown.Bytes
	if s.of[space] = u; u.Count == 0 {
		delete(s.of, space)
	}
}

// fits returns why a space cannot grow: [ErrRoom], a [*FullError], or nil. What
// does not grow always fits.
func (s *spaces) fits(space string, room Room, grown Usage) error {
	u := s.of[space]
	switch {
	case grown.Count > 0 && u.Count+grown.Count > room.Keys, grown.Bytes > 0 && u.Bytes+grown.Bytes > room.Bytes:
		return ErrRoom
	case grown.Count > 0 && s.all.Count+grown.Count > s.limits.Count, grown.Bytes > 0 && s.all.Bytes+grown.Bytes > s.limits.Bytes:
		return &FullError{What: "values", Wait: time.Minute}
	}
	return nil
}

// makeSpace removes what has expired when that is needed; mu is held.
func (s *store) makeSpace(space string, room Room, grown Usage) error {
	err := s.spaces.fits(space, room, grown)
	if err == nil {
		return nil
	}
	for _, from := range []string{space, ""} {
		if _, err := s.sweepSpaces(from); err != nil {
			return err
		}
		if err = s.spaces.fits(space, room, grown); err == nil {
			return nil
		}
	}
	return err
}

// sweepSpaces removes a batch of pairs that have expired, of one space or, when
// its name is empty, of all. It returns how many; mu is held. Where nothing can
// have expired it looks at nothing: a full store may be asked often.
func (s *store) sweepSpaces(space string) (removed int, err error) {
	if s.millis() < s.spaces.soonest {
		return 0, nil
	}
	freed, err := s.rows.DropExpired(space, s.millis(), sweepBatch)
	if err != nil {
		return 0, fmt.Errorf("remove values: %w", err)
	}
	for space, u := range freed {
		s.spaces.count(space, Usage{-u.Count, -u.Bytes})
		removed += u.Count
	}
	if space == "" && removed < sweepBatch {
		s.spaces.soonest, err = s.rows.Soonest()
	}
	return removed, err
}
