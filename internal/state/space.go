package state

import (
	"fmt"
	"time"
)

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

func newSpaces(limits Limits) *spaces { return &spaces{limits: limits, of: map[string]Usage{}} }

// count adds to what a space takes up.
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
