package state

// Kind says what a record is.
type Kind int

const (
	keyKind Kind = iota
	claimKind
	journalKind
	taskKind
	kinds = int(iota)
)

// String returns the name of the kind in files.
func (k Kind) String() string { return [...]string{"key", "claim", "journal", "task"}[k] }

// plural returns the name of many in messages.
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

// newRecord returns a record with its size.
func newRecord(e Entry, data []byte) Record {
	e.Size = max(recordBytes, int64(len(e.ID)+len(e.Owner)+len(data)))
	return Record{e, data}
}

// Rows keep records and pairs. One goroutine at a time uses them. What a change
// has returned from without an error outlives the process, where rows promise that
// at all; with an error, nothing or all of it has happened.
type Rows interface {
	// Each calls yield with the entry of every record.
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
