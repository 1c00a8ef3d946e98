package state

import (
	"cmp"
	"math"
	"time"
)

type Kind int

const (
	keyKind Kind = iota
	claimKind
	journalKind
	taskKind
	kinds = int(iota)
)

func (k Kind) String() string { return [...]string{"key", "claim", "journal", "task"}[k] }

func (k Kind) plural() string {
	return [...]string{"sealing keys", "request states", "journals", "tasks"}[k]
}

// Entry is what the store always knows of a record.
type Entry struct {
	Kind Kind
	ID   string
	// Owner is the [Owner.key] of whom it belongs to.
	Owner string
	// Phase is a claimPhase or a Status.
	Phase int
	// Expires is in milliseconds since 1970.
	Expires int64
	// Size is how many bytes the record counts.
	Size int64
}

// Record is an entry together with what it stands for.
type Record struct {
	Entry
	Data []byte
}

// recordBytes is what a record counts at least, so that the message which ends
// a task has room even when nothing else has.
const recordBytes = 1 << 10

func newRecord(e Entry, data []byte) Record {
	e.Size = max(recordBytes, int64(len(e.ID)+len(e.Owner)+len(data)))
	return Record{e, data}
}

// Rows keep records and pairs. One goroutine at a time uses them. What a change
// has returned from without an error outlives the process, where rows promise that
// at all; with an error, nothing or all of it has happened.
type Rows interface {
	Each(yield func(Entry)) error
	// Get returns the data of a record, which nobody may change. The record exists.
	Get(k Kind, id string) ([]byte, error)
	// Put adds records, or replaces those with the same kind and id.
	Put(records ...Record) error
	// Drop removes records. Those that do not exist are ignored.
	Drop(k Kind, ids []string) error

	// Pair returns the pair under a key, expired or not.
	Pair(space, key string) (StoredPair, error)
	// PutPair adds a pair or replaces the one under the same key.
	PutPair(space, key string, p StoredPair) error
	// DropPair removes a pair, if there is one.
	DropPair(space, key string) error
	// PairKeys returns keys from the first on that is not before from and is
	// before end, in order, of pairs that have not expired.
	PairKeys(space, from, end string, now int64, most int) ([]string, error)
	// DropExpired removes pairs that have expired, at most so many, of one space
	// or, when it is empty, of all. It returns what they took up in each.
	DropExpired(space string, now int64, most int) (freed map[string]Usage, err error)
	// Soonest returns the first expiry of all pairs, [math.MaxInt64] for none.
	Soonest() (int64, error)
	// EachSpace calls yield with what each space takes up.
	EachSpace(yield func(space string, u Usage)) error

	// IsFull reports whether an error of the rows means that the disk has no room.
	IsFull(err error) bool
	Close() error
}

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
	return Limits{
		cmp.Or(l.Count, standard.Count), cmp.Or(l.Bytes, standard.Bytes),
		cmp.Or(l.OwnerCount, standard.OwnerCount), cmp.Or(l.OwnerBytes, standard.OwnerBytes),
	}
}

type Usage struct {
	Count int
	Bytes int64
}

// A ledger knows the entries of one kind, and what they take up.
type ledger struct {
	limits  Limits
	entries map[string]Entry
	all     Usage
	owners  map[string]Usage
	// soonest is no later than the first expiry of an entry that may go.
	soonest int64
}

func newLedger(limits Limits) *ledger {
	return &ledger{limits: limits, entries: map[string]Entry{}, owners: map[string]Usage{}, soonest: math.MaxInt64}
}

// fits reports whether the limits admit an entry, in place of one with the same
// id. One that takes up no more than it did always fits.
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

// count adds an entry, or with -1 takes it away.
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
		case e.Expires <= now:
			ids = append(ids, id)
		default:
			l.soonest = min(l.soonest, e.Expires)
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
