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

// keyFileMaxAge is the maximum age of the key file's state when a key is
// checked: a revoked key is rejected after that time at the latest.
const keyFileMaxAge = 500 * time.Millisecond

// keyFile is a key file as it was last read. It is checked for changes when a
// key is checked. While the file has an error, its last valid records apply.
// While it cannot be read, every key is rejected.
type keyFile struct {
	// Fixed at creation.
	path    string
	now     func() time.Time
	log     *slog.Logger
	onEvent func(KeyEvent)

	keys      atomic.Pointer[apikey.KeySet]
	checkedAt atomic.Int64 // time of the last check, in nanoseconds

	// Guarded by mu, which the goroutine that checks the file holds.
	mu      sync.Mutex
	seen    fs.FileInfo
	lastErr error          // error of the file as last seen
	current *apikey.KeySet // last read, minus the keys revoked since
}

// KeyEvent reports a key that was added to or revoked in a key file.
type KeyEvent struct {
	// Name is KeyAdded or KeyRevoked.
	Name string
	// Key is the id of the key, and Principal the id of its holder.
	Key, Principal string
}

// The names of key events. Removing a key from its file revokes it.
const (
	KeyAdded   = "key.added"
	KeyRevoked = "key.revoked"
)

// newKeyFile reads a key file. It calls onEvent for each later change of a key,
// after the change has taken effect.
func newKeyFile(path string, now func() time.Time, log *slog.Logger, onEvent func(KeyEvent)) (*keyFile, error) {
	f := &keyFile{path: path, now: now, log: log, onEvent: onEvent}
	seen, _ := os.Stat(path)
	keys, err := apikey.Load(path)
	if err != nil {
		return nil, err
	}
	f.seen, f.current = seen, keys
	f.keys.Store(keys)
	f.checkedAt.Store(now().UnixNano())
	return f, nil
}

// check returns the principal of a key.
func (f *keyFile) check(k apikey.Key) (identity.Principal, error) {
	now := f.now()
	f.refresh(now)
	return f.keys.Load().Check(k, now)
}

// refresh checks the file for changes, unless that was done a moment ago.
func (f *keyFile) refresh(now time.Time) {
	if age := now.UnixNano() - f.checkedAt.Load(); age >= int64(keyFileMaxAge) || age < 0 {
		f.reload(now)
	}
}

// err returns the error of the file; nil if it is valid.
func (f *keyFile) err() error {
	f.refresh(f.now())
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastErr
}

// reload reads the file again if it has changed, and reports changed keys.
// While one goroutine reads, others continue with the present keys; none waits
// for the callback.
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
	keys, err := apikey.Load(f.path)
	f.seen = info
	f.publish(keys, err, now)
}

// publish publishes what was read, or the revocations of an invalid file. The
// caller holds mu.
func (f *keyFile) publish(keys *apikey.KeySet, err error, now time.Time) {
	if err == nil {
		f.current = keys
		f.keys.Store(keys)
		if f.lastErr != nil {
			f.log.Info("key file recovered", slog.String("file", f.path))
		}
		f.lastErr = nil
		return
	}
	message := "read key file, rejecting all keys"
	if broken := (*apikey.FileError)(nil); errors.As(err, &broken) {
		message = "read key file, keeping previous keys"
		f.current = f.current.Without(broken.Revoked, now)
		f.keys.Store(f.current)
	} else {
		f.keys.Store(&apikey.KeySet{})
	}
	if f.lastErr == nil || err.Error() != f.lastErr.Error() {
		f.log.Error(message, slog.String("error", err.Error()))
	}
	f.lastErr = err
}

// minFileAge is the age up to which a file is read again even if its metadata
// is unchanged: file times are coarse, and a second write may leave no trace.
const minFileAge = 3 * time.Second

// sameFile reports whether a file is certainly unchanged. Nil means no file.
func sameFile(seen, now fs.FileInfo, at time.Time) bool {
	return seen != nil && now != nil && os.SameFile(seen, now) && seen.Size() == now.Size() && seen.Mode() == now.Mode() &&
		seen.ModTime().Equal(now.ModTime()) && at.Sub(now.ModTime()) > minFileAge
}
