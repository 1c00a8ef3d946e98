package state

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Pair is a stored value of a key.
type Pair struct {
	// Value is nil for no pair; otherwise it is not empty.
	Value []byte
	// Expires is the expiry in whole milliseconds; the zero time means never.
	Expires time.Time
}

// Room bounds one space.
type Room struct {
	Keys int
	// Bytes bounds keys and values together.
	Bytes int64
}

// ErrRoom is the error for a pair that does not fit into its space.
var ErrRoom = errors.New("the space has no room for another pair")

// Pairs store values by key. Every pair belongs to a space, and each method accesses
// only its space. Spaces and keys are compared bytewise and never joined. The name of a
// space is not empty, and keys are valid UTF-8.
type Pairs interface {
	// Pair returns the value of a key, which must not be changed.
	Pair(space, key string) (Pair, error)
	// ChangePair replaces the value of a key by the result of change. The change is
	// atomic, and change must not use the store. If change fails, ChangePair returns
	// its error and nothing has changed. A growing pair must fit into room: [ErrRoom].
	ChangePair(space, key string, room Room, change func(old Pair, now time.Time) (Pair, error)) error
	// PairKeys returns the keys with a prefix that are after after, in bytewise order:
	// at most most of them, which is positive.
	PairKeys(space, prefix, after string, most int) ([]string, error)
}

// never is the expiry of a pair without one.
const never = math.MaxInt64

// StoredPair is a pair in [Rows]. A nil value means none.
type StoredPair struct {
	Value   []byte
	Expires int64
}

func (p StoredPair) Size(key string) int64 { return int64(len(key) + len(p.Value)) }

// Public returns the pair, or none if it has expired.
func (p StoredPair) Public(now int64) Pair {
	switch {
	case p.Value == nil || p.Expires <= now:
		return Pair{}
	case p.Expires == never:
		return Pair{Value: p.Value}
	}
	return Pair{Value: p.Value, Expires: time.UnixMilli(p.Expires)}
}

// Stored returns the pair for [Rows].
func (p Pair) Stored() StoredPair {
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
	return found.Public(s.millis()), nil
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
	made, err := change(old.Public(now.UnixMilli()), now)
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
	return s.putPair(space, key, room, old, made.Stored())
}

// dropPair removes a pair, if it exists; mu is held.
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

// putPair stores a pair if it fits; mu is held. The old pair has not expired.
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

func (s *store) PairKeys(space, prefix, after string, limit int) ([]string, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	from := prefix
	if after >= prefix {
		from = after + "\x00"
	}
	// UTF-8 never contains the byte 0xff.
	keys, err := s.rows.PairKeys(space, from, prefix+"\xff", s.millis(), limit)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return keys, nil
}

// sweepBatch is the number of pairs to remove at once, so that other calls do not wait
// long.
const sweepBatch = 1 << 10

// spaces tracks the usage of all spaces.
type spaces struct {
	limits Limits
	all    Usage
	of     map[string]Usage
	// soonest is not after the first expiry of a pair.
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

// fits returns the reason why a space cannot grow: [ErrRoom], a [*FullError], or nil.
// Shrinking always fits.
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

// makeSpace removes expired pairs if capacity is needed; mu is held.
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

// sweepSpaces removes a batch of expired pairs of one space, or of all spaces if space
// is empty, and returns their number; mu is held. If nothing can have expired it does
// nothing, since a full store may be called often.
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
