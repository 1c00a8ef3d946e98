package state

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// sweepEvery is how often a store that nobody writes to is swept.
const sweepEvery = time.Minute

// How long a store waits for another process to give up its file. For a file that one can do
// without it is less than a call takes that needs the store first.
const (
	patience         = 5 * time.Second
	optionalPatience = 250 * time.Millisecond
)

// Opener opens the store in a file, which it makes when it is missing, together with its
// folder. One process at a time has the file: patience is how long Opener waits for another.
type Opener func(path string, o Options, patience time.Duration) (Store, error)

// Lazy is a store that is opened when it is first needed, and swept while it is
// open. It is safe for concurrent use.
type Lazy struct {
	// Path is the file, which File opens; empty for a store in memory.
	Path string
	File Opener
	// Optional says that a file that cannot be had is no error: then the store
	// is in memory, and the log says so.
	Optional bool
	Options  Options
	// Logger gets what the operator should know. Nil discards it.
	Logger *slog.Logger

	mu     sync.Mutex
	store  Store
	timer  *time.Timer
	closed bool
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
	store, err := l.make()
	if err != nil {
		return nil, err
	}
	l.store = store
	l.timer = time.AfterFunc(sweepEvery, l.sweep)
	return store, nil
}

func (l *Lazy) make() (Store, error) {
	if l.Path == "" {
		return NewMemory(l.Options), nil
	}
	if !l.Optional {
		return l.File(l.Path, l.Options, patience)
	}
	err := os.MkdirAll(filepath.Dir(l.Path), 0o700)
	if err == nil {
		var store Store
		if store, err = l.File(l.Path, l.Options, optionalPatience); err == nil {
			return store, nil
		}
	}
	l.log().Warn("calls that wait, tasks and what tools keep are kept in memory, and a restart ends them", slog.String("error", err.Error()))
	return NewMemory(l.Options), nil
}

// sweep removes what has expired, and comes again.
func (l *Lazy) sweep() {
	l.mu.Lock()
	store := l.store
	l.mu.Unlock()
	if store == nil {
		return
	}
	if err := store.Sweep(); err != nil && !errors.Is(err, ErrClosed) {
		l.log().Warn("the state store cannot be swept", slog.String("error", err.Error()))
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

// Close closes the store, if it was opened. Nothing is opened afterwards.
func (l *Lazy) Close() error {
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
