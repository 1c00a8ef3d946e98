package state

import (
	"cmp"
	"math"
	"time"
)

// Kind is a kind of records.
type Kind int

// The kinds of records.
const (
	KeyKind Kind = iota
	ClaimKind
	JournalKind
	TaskKind
	kinds = int(iota)
)

func (k Kind) String() string { return [...]string{"key", "claim", "journal", "task"}[k] }

// Plural returns the kind as in [FullError].
func (k Kind) Plural() string {
	return [...]string{"sealing keys", "request states", "journals", "tasks"}[k]
}

// Entry is the part of a record that is always in memory.
type Entry struct {
	Kind Kind
	ID   string
	// Owner is the [Owner.Key] of the owner.
	Owner string
	// Phase is the phase of a claim, or the number of a Status.
	Phase int
	// Expires is in milliseconds since 1970.
	Expires int64
	// Size is the counted size of the record in bytes.
	Size int64
}

// Record is an entry with its data.
type Record struct {
	Entry
	Data []byte
}

// recordBytes is the minimum counted size of a record, so that the final message of a
// task always fits.
const recordBytes = 1 << 10

// NewRecord returns the record of an entry, with its size.
func NewRecord(e Entry, data []byte) Record {
	e.Size = max(recordBytes, int64(len(e.ID)+len(e.Owner)+len(data)))
	return Record{e, data}
}

// Rows store records and pairs. They are not safe for concurrent use. A change that
// returned without an error is durable, if the rows are persistent. After an error, the
// change has happened completely or not at all.
type Rows interface {
	Each(yield func(Entry)) error
	// Get returns the data of an existing record, which must not be changed.
	Get(k Kind, id string) ([]byte, error)
	// Put adds records, or replaces those with the same kind and id.
	Put(records ...Record) error
	// Drop removes records. Missing ones are ignored.
	Drop(k Kind, ids []string) error

	// Pair returns the pair of a key, even if it has expired.
	Pair(space, key string) (StoredPair, error)
	// PutPair adds or replaces a pair.
	PutPair(space, key string, p StoredPair) error
	// DropPair removes a pair, if it exists.
	DropPair(space, key string) error
	// PairKeys returns the keys from from up to but excluding end, in order, of pairs
	// that have not expired.
	PairKeys(space, from, end string, now int64, most int) ([]string, error)
	// DropExpired removes at most most expired pairs of one space, or of all spaces if
	// space is empty. It returns the freed usage by space.
	DropExpired(space string, now int64, most int) (freed map[string]Usage, err error)
	// Soonest returns the first expiry of all pairs, or [math.MaxInt64].
	Soonest() (int64, error)
	// EachSpace calls yield with the usage of each space.
	EachSpace(yield func(space string, u Usage)) error

	// IsFull reports whether an error means that the disk is full.
	IsFull(err error) bool
	Close() error
}

// Limits bound the records of one kind. A zero field means its default.
type Limits struct {
	// Count and Bytes bound all records. Each record counts at least 1 KiB.
	Count int
	Bytes int64
	// OwnerCount and OwnerBytes bound the records of one owner.
	OwnerCount int
	OwnerBytes int64
}

// or returns the limits with zero fields replaced.
func (l Limits) or(standard Limits) Limits {
	return Limits{
		cmp.Or(l.Count, standard.Count), cmp.Or(l.Bytes, standard.Bytes),
		cmp.Or(l.OwnerCount, standard.OwnerCount), cmp.Or(l.OwnerBytes, standard.OwnerBytes),
	}
}

type Usage struct {
	Count int
	Bytes int64
}

// A ledger tracks the entries of one kind and their usage.
type ledger struct {
	limits  Limits
	entries map[string]Entry
	all     Usage
	owners  map[string]Usage
	// soonest is not after the first expiry of a removable entry.
	soonest int64
}

func newLedger(limits Limits) *ledger {
	return &ledger{limits: limits, entries: map[string]Entry{}, owners: map[string]Usage{}, soonest: math.MaxInt64}
}

// fits reports whether the limits allow an entry, possibly replacing one with the same
// id. An entry that does not grow always fits.
func (l *ledger) fits(e Entry) bool {
	old, known := l.entries[e.ID]
	if known && e.Size <= old.Size {
		return true
	}
	count := 1
	if known {
		count = 0
	}
	owner := l.owners[e.Owner]
	grown := e.Size - old.Size
	return l.all.Count+count <= l.limits.Count && owner.Count+count <= l.limits.OwnerCount &&
		l.all.Bytes+grown <= l.limits.Bytes && owner.Bytes+grown <= l.limits.OwnerBytes
}

func (l *ledger) set(e Entry) {
	l.remove(e.ID)
	l.entries[e.ID] = e
	l.count(e, 1)
	l.soonest = min(l.soonest, e.Expires)
}

func (l *ledger) remove(id string) {
	if e, known := l.entries[id]; known {
		delete(l.entries, id)
		l.count(e, -1)
	}
}

// count adds an entry, or removes it if sign is -1.
func (l *ledger) count(e Entry, sign int) {
	owner := l.owners[e.Owner]
	for _, u := range []*Usage{&l.all, &owner} {
		u.Count += sign
		u.Bytes += int64(sign) * e.Size
	}
	l.owners[e.Owner] = owner
	if owner.Count == 0 {
		delete(l.owners, e.Owner)
	}
}

// expired returns the ids of all expired entries, except those that must be kept.
func (l *ledger) expired(now int64, kept func(id string) bool) []string {
	if now < l.soonest {
		return nil
	}
	var ids []string
	l.soonest = math.MaxInt64
	for id, e := range l.entries {
		switch {
		case kept(id):
		case e.Expires <= now:
			ids = append(ids, id)
		default:
			l.soonest = min(l.soonest, e.Expires)
		}
	}
	return ids
}

// wait returns the time until the first entry expires, in whole seconds, at least one.
func (l *ledger) wait(now int64) time.Duration { return WaitUntil(l.soonest, now) }

// WaitUntil returns the time from now until the first expiry, [math.MaxInt64] if there is
// none, in whole seconds, at least one.
func WaitUntil(soonest, now int64) time.Duration {
	seconds := int64(1)
	if soonest != math.MaxInt64 {
		seconds = max(1, (soonest-now+999)/1000)
	}
	return time.Duration(seconds) * time.Second
}
