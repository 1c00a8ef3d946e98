package authn

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/apikey"
)

// keyAge is how old what is known of a file of keys may be when a key is checked:
// a revoked key is refused that much later at most.
const keyFileMaxAge = 500 * time.Millisecond

// keyFile is a file of keys as it was last read. It is looked at when a key is
// checked, and holds the last good records while the file has a mistake. While it
// cannot be read at all, no key is taken.
type keyFile struct {
	// Fixed at creation.
	path    string
	now     func() time.Time
	log     *slog.Logger
	onEvent func(KeyEvent)

	keys      atomic.Pointer[apikey.KeySet]
	checkedAt atomic.Int64 // when, in nanoseconds

	// Guarded by mu, which whoever looks at the file holds.
	mu      sync.Mutex
	seen    fs.FileInfo
	lastErr error          // with the file as it was seen
	current *apikey.KeySet // what was read last, without what was revoked since
}

// KeyEvent is a key that a file of keys has more than it had, or less.
type KeyEvent struct {
	// Name is KeyAdded or KeyRevoked.
	Name string
	// Key is the id of the key, and Principal that of its holder.
	Key, Principal string
}

// The names of key events. A key that is taken out of its file is revoked.
const (
	KeyAdded   = "key.added"
	KeyRevoked = "key.revoked"
)

// newKeyFile reads a file of keys. tell hears of each key that the file has more or less
// from then on, once that counts.
func newKeyFile(path string, now func() time.Time, log *slog.Logger, tell func(KeyEvent)) (*keyFile, error) {
	f := &keyFile{path: path, now: now, log: log, onEvent: tell}
	seen, _ := os.Stat(path)
	ring, err := apikey.Load(path)
	if err != nil {
		return nil, err
	}
	f.seen, f.current = seen, ring
	f.keys.Store(ring)
	f.checkedAt.Store(now().UnixNano())
	return f, nil
}

// check returns whose a key is.
func (f *keyFile) check(k apikey.Key) (identity.Principal, error) {
	now := f.now()
	f.refresh(now)
	return f.keys.Load().Check(k, now)
}

// refresh looks at the file unless that was done a moment ago.
func (f *keyFile) refresh(now time.Time) {
	if age := now.UnixNano() - f.checkedAt.Load(); age >= int64(keyFileMaxAge) || age < 0 {
		f.reload(now)
	}
}

// mistake returns what is wrong with the file, nil for nothing.
func (f *keyFile) err() error {
	f.refresh(f.now())
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastErr
}

// look reads the file again if it has changed, and tells which keys it has more or less.
// While somebody looks, others go on with what is known; nobody waits for who is told.
func (f *keyFile) reload(now time.Time) {
	if !f.mu.TryLock() {
		return
	}
	before := f.current
	f.read(now)
	after := f.current
	f.mu.Unlock()
	if before == after {
		return
	}
	added, revoked := after.ChangesSince(before)
	for _, r := range added {
		f.onEvent(KeyEvent{KeyAdded, r.ID, r.Principal})
	}
	for _, r := range revoked {
		f.onEvent(KeyEvent{KeyRevoked, r.ID, r.Principal})
	}
}

// read reads the file again if it has changed. The caller holds mu.
func (f *keyFile) read(now time.Time) {
	defer f.checkedAt.Store(now.UnixNano())
	info, err := os.Stat(f.path)
	if err == nil && sameFile(f.seen, info, now) {
		return
	}
	ring, err := apikey.Load(f.path)
	f.seen = info
	f.publish(ring, err, now)
}

// take publishes what was read, or what a file with a mistake revokes. The
// caller holds mu.
func (f *keyFile) publish(ring *apikey.KeySet, err error, now time.Time) {
	if err == nil {
		f.current = ring
		f.keys.Store(ring)
		if f.lastErr != nil {
			f.log.Info("the file of keys is good again", slog.String("file", f.path))
		}
		f.lastErr = nil
		return
	}
	said := "the file of keys cannot be read: no key is taken, as any of them may have been revoked"
	if broken := (*apikey.FileError)(nil); errors.As(err, &broken) {
		said = "the file of keys has a mistake: the keys that were in it go on, but for those that it revokes"
		f.current = f.current.Without(broken.Revoked, now)
		f.keys.Store(f.current)
	} else {
		f.keys.Store(&apikey.KeySet{})
	}
	if f.lastErr == nil || err.Error() != f.lastErr.Error() {
		f.log.Error(said, slog.String("error", err.Error()))
	}
	f.lastErr = err
}

// fileRace is how long after it was written a file is read again, whatever the
// disk says of it: its clock is coarse, and a second write may leave no trace.
const minFileAge = 3 * time.Second

// unchanged reports whether a file is surely the one that was seen before. Nil
// stands for none.
func sameFile(seen, now fs.FileInfo, at time.Time) bool {
	return seen != nil && now != nil && os.SameFile(seen, now) && seen.Size() == now.Size() && seen.Mode() == now.Mode() &&
		seen.ModTime().Equal(now.ModTime()) && at.Sub(now.ModTime()) > minFileAge
}
