package state

import "time"

// Results is a store that keeps results of calls for all replicas, which use them again. It is a cache:
// it forgets results when it is full, or after a crash. Its methods return within a quarter of a second.
// After a failure they fail at once for a second.
type Results interface {
	// Result returns a result and its age, or nil. A damaged result, or one that was written without
	// the key of the database, counts as missing. The data is untrusted if the database has no key.
	Result(key [32]byte) (data []byte, age time.Duration, err error)
	// PutResult stores a result of a given age until its age is ttl. It removes the oldest results if
	// there is no room. The data has at most [MaxResult] bytes. The key must not be secret if the
	// database has no key.
	PutResult(key [32]byte, data []byte, age, ttl time.Duration) error
}

// MaxResult bounds a result of [Results] in bytes.
const MaxResult = 1<<20 + 1<<10

// Results returns the results that replicas share, or nil. It does not wait: if the database is not
// open, it opens it in the background.
func (l *Lazy) Results() Results {
	if results := l.results.Load(); results != nil {
		return *results
	}
	if l.Shared() {
		l.Connect()
	}
	return nil
}
