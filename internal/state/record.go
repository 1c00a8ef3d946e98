package state

// kind says what a record is.
type kind int

const (
	keyKind kind = iota
	claimKind
	journalKind
	taskKind
	kinds = int(iota)
)

// String returns the name of the kind in files.
func (k kind) String() string { return [...]string{"key", "claim", "journal", "task"}[k] }

// plural returns the name of many in messages.
func (k kind) plural() string {
	return [...]string{"sealing keys", "request states", "journals", "tasks"}[k]
}

// An entry is what the store always knows of a record.
type entry struct {
	kind kind
	id   string
	// owner is the [Owner.key] of whom it belongs to.
	owner string
	// phase is a claimPhase or a Status.
	phase int
	// expires is in milliseconds since 1970.
	expires int64
	// size is how many bytes the record counts.
	size int64
}

// A record is an entry together with what it stands for.
type record struct {
	entry
	data []byte
}

// recordBytes is what a record counts at least, so that the message which ends
// a task has room even when nothing else has.
const recordBytes = 1 << 10

// newRecord returns a record with its size.
func newRecord(e entry, data []byte) record {
	e.size = max(recordBytes, int64(len(e.id)+len(e.owner)+len(data)))
	return record{e, data}
}

// rows keep records. One goroutine at a time uses them. What put and drop have
// returned from without an error outlives the process, where rows promise that
// at all; with an error, nothing or all of it has happened.
type rows interface {
	// each calls yield with the entry of every record.
	each(yield func(entry)) error
	// get returns the data of a record, which nobody may change. The record exists.
	get(k kind, id string) ([]byte, error)
	// put adds records, or replaces those with the same kind and id.
	put(records ...record) error
	// drop removes records. Those that do not exist are ignored.
	drop(k kind, ids []string) error
	close() error
	pairRows
}
