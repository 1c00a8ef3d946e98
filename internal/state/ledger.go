package state

import (
	"math"
	"time"
)

// Limits bound the records of one kind. A zero member means its default.
type Limits struct {
	// Count and Bytes bound all of them. Every record counts at least 1 KiB.
	Count int
	Bytes int64
	// OwnerCount and OwnerBytes bound those of one owner.
	OwnerCount int
	OwnerBytes int64
}

// or returns the limits with the zero members replaced.
func (l Limits) or(standard Limits) Limits {
	if l.Count == 0 {
		l.Count = standard.Count
	}
	if l.Bytes == 0 {
		l.Bytes = standard.Bytes
	}
	if l.OwnerCount == 0 {
		l.OwnerCount = standard.OwnerCount
	}
	if l.OwnerBytes == 0 {
		l.OwnerBytes = standard.OwnerBytes
	}
	return l
}

// usage is what some records take up.
type usage struct {
	count int
	bytes int64
}

// A ledger knows the entries of one kind, and what they take up.
type ledger struct {
	limits  Limits
	entries map[string]entry
	all     usage
	owners  map[string]usage
	// soonest is no later than the first expiry of an entry that may go.
	soonest int64
}

func newLedger(limits Limits) *ledger {
	return &ledger{limits: limits, entries: map[string]entry{}, owners: map[string]usage{}, soonest: math.MaxInt64}
}

// fits reports whether the limits admit an entry, in place of one with the same
// id. One that takes up no more than it did always fits.
func (l *ledger) fits(e entry) bool {
	old, known := l.entries[e.id]
	if known && e.size <= old.size {
		return true
	}
	count := 1
	if known {
		count = 0
	}
	owner := l.owners[e.owner]
	grown := e.size - old.size
	return l.all.count+count <= l.limits.Count && owner.count+count <= l.limits.OwnerCount &&
		l.all.bytes+grown <= l.limits.Bytes && owner.bytes+grown <= l.limits.OwnerBytes
}

// set adds an entry or replaces the one with the same id.
func (l *ledger) set(e entry) {
	l.remove(e.id)
	l.entries[e.id] = e
	l.count(e, 1)
	l.soonest = min(l.soonest, e.expires)
}

// remove takes an entry out, if there is one.
func (l *ledger) remove(id string) {
	if e, known := l.entries[id]; known {
		delete(l.entries, id)
		l.count(e, -1)
	}
}

// count adds an entry, or with -1 takes it away.
func (l *ledger) count(e entry, sign int) {
	owner := l.owners[e.owner]
	for _, u := range []*usage{&l.all, &owner} {
		u.count += sign
		u.bytes += int64(sign) * e.size
	}
	l.owners[e.owner] = owner
	if owner.count == 0 {
		delete(l.owners, e.owner)
	}
}

// expired returns the ids of all entries whose time is over, but for those
// that must be kept.
func (l *ledger) expired(now int64, kept func(id string) bool) []string {
	if now < l.soonest {
		return nil
	}
	var ids []string
	l.soonest = math.MaxInt64
	for id, e := range l.entries {
		switch {
		case kept(id):
		case e.expires <= now:
			ids = append(ids, id)
		default:
			l.soonest = min(l.soonest, e.expires)
		}
	}
	return ids
}

// wait returns how long it takes until the first entry expires, in whole
// seconds and at least one.
func (l *ledger) wait(now int64) time.Duration {
	seconds := int64(1)
	if l.soonest != math.MaxInt64 {
		seconds = max(1, (l.soonest-now+999)/1000)
	}
	return time.Duration(seconds) * time.Second
}
