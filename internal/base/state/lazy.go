package state

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sweepEvery is the interval of sweeps in an idle store.
const sweepEvery = time.Minute

// Time to wait for another process to release the file. For an optional file it is
// shorter than the timeout of the first call that needs the store.
const (
	patience         = 5 * time.Second
	optionalPatience = 250 * time.Millisecond
)

// Opener opens the store in a file, and creates the file and its directory if they are
// missing. Only one process can use the file: patience is the time to wait for another
// one.
type Opener func(path string, o Options, patience time.Duration) (Store, error)

// Database is a database with the state of a fleet of servers.
type Database struct {
	// URL is postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full. In addition to the
	// options of libpq it has schema, "mcpd" by default, and pool_max_conns, 8 by default.
	URL string
	// Fleet is the name that all servers with the same state share: a database refuses another one.
	// An empty name fits every fleet.
	Fleet string
	// Keys are secrets of any length. The first encrypts what is stored, and all decrypt it. Without
	// keys, nothing is encrypted.
	Keys []string
	// Existing means that the database must have state of this version: it is not created or upgraded.
	Existing bool
}

// Lazy is a store that is opened on first use, and swept while it is open. It is safe
// for concurrent use.
type Lazy struct {
	// Path is the file that File opens, or "" for a store in memory.
	Path string
	File Opener
	// Database returns the database to use instead of a file, or nil; nil for none. OpenDatabase opens
	// it. While the database cannot be reached, it tries again for patience.
	Database     func() (*Database, error)
	OpenDatabase func(d Database, o Options, patience time.Duration) (Store, error)
	// InDatabase reports whether Database returns a database or an error, without waiting; nil for
	// false.
	InDatabase func() bool
	// ReplicaConfig returns the replica block of the database, or nil; nil for none.
	ReplicaConfig func() *ReplicaConfig
	// Optional means that a file that cannot be opened is not an error: the store is
	// then in memory, and a warning is logged.
	Optional bool
	Options  Options
	// Logger logs for the operator. Nil discards.
	Logger *slog.Logger
	// Receive is called with the messages of other replicas, if the store has any; see
	// [Shared.Receive]. Nil ignores them.
	Receive func(Message)

	outbox outbox

	mu     sync.Mutex
	store  Store
	timer  *time.Timer
	tried  bool // to open a database
	closed bool
	keys   []string // of the open database

	shared   atomic.Pointer[bool]               // whether the open store is in a database
	fleet    atomic.Pointer[Fleet]              // the open store, if it is in a database
	results  atomic.Pointer[Results]            // the open store, if it is in a database
	about    atomic.Pointer[func() ReplicaInfo] // see Describe
	endpoint atomic.Pointer[Endpoint]           // see Announce
}

// Keys returns the secrets of the database, if it is open.
func (l *Lazy) Keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.keys)
}

// Shared reports whether the open store, or the one that Open opens, is in a database. It does not
// wait.
func (l *Lazy) Shared() bool {
	if p := l.shared.Load(); p != nil {
		return *p
	}
	return l.InDatabase != nil && l.InDatabase()
}

func (l *Lazy) Open() (Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.store != nil:
		return l.store, nil
	case l.closed:
		return nil, errors.New("the state store is closed")
	}
	store, shared, err := l.make()
	if err != nil {
		return nil, err
	}
	if shared, ok := store.(Shared); ok && l.Receive != nil {
		shared.Receive(l.Receive)
	}
	if fleet, ok := store.(Fleet); ok {
		l.fleet.Store(&fleet)
		if l.about.Load() != nil || l.endpoint.Load() != nil {
			fleet.Describe(l.describe)
		}
	}
	if results, ok := store.(Results); ok {
		l.results.Store(&results)
	}
	l.store = store
	l.shared.Store(&shared)
	l.timer = time.AfterFunc(sweepEvery, l.sweep)
	return store, nil
}

func (l *Lazy) make() (store Store, shared bool, err error) {
	if l.Database != nil {
		if d, err := l.Database(); err != nil || d != nil {
			store, err = l.makeShared(d, err)
			return store, true, err
		}
	}
	if l.Path == "" {
		return NewMemory(l.Options), false, nil
	}
	if !l.Optional {
		store, err = l.File(l.Path, l.Options, patience)
		return store, false, err
	}
	if err = os.MkdirAll(filepath.Dir(l.Path), 0o700); err == nil {
		if store, err = l.File(l.Path, l.Options, optionalPatience); err == nil {
			return store, false, nil
		}
	}
	l.log().Warn("open state file", slog.String("fallback", "memory"), slog.String("error", err.Error()))
	return NewMemory(l.Options), false, nil
}

// makeShared opens the store in a database.
func (l *Lazy) makeShared(d *Database, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	// Only the start is patient: later a call waits.
	wait := patience
	if l.tried {
		wait = 0
	}
	l.tried = true
	o := l.Options
	o.Logger = l.Logger
	store, err := l.OpenDatabase(*d, o, wait)
	if err == nil {
		l.keys = d.Keys
	}
	return store, err
}

// sweep removes expired items, and reschedules itself.
func (l *Lazy) sweep() {
	l.mu.Lock()
	store := l.store
	l.mu.Unlock()
	if store == nil {
		return
	}
	if err := store.Sweep(); err != nil && !errors.Is(err, ErrClosed) {
		l.log().Warn("sweep state store", slog.String("error", err.Error()))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.timer.Reset(sweepEvery)
	}
}

func (l *Lazy) log() *slog.Logger {
	if l.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.Logger
}

// Close sends the messages of [Lazy.Publish] and closes the store if it was opened. It cannot be
// opened afterwards.
func (l *Lazy) Close() error {
	l.outbox.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.store == nil {
		return nil
	}
	l.timer.Stop()
	store := l.store
	l.store = nil
	return store.Close()
}

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
