// Package watch reports when directories and files on disk may have changed.
//
// A [Watcher] uses notifications of the operating system, or polls every second where
// there are none. It waits until changes have settled, and then sends one [Change]. An
// editor that saves by rename, a Kubernetes ConfigMap that swaps its ..data link, and a
// checkout of a thousand files are one Change each. Changes have settled when nothing
// happened for the debounce time, which grows with the pauses of the writer, and git
// holds no lock.
//
// The package reports what to read again, not what changed. It does not know the
// meaning of files, and never opens them while notifications work. It is the only
// package that may import fsnotify.
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options configure a Watcher.
type Options struct {
	// Roots are directories, watched recursively. Links below them are not followed. A
	// root may be a link, may be missing, and may be removed and recreated.
	Roots []string
	// Files are single files, each watched through its directory. A file may be a link,
	// may be missing, and may be removed and recreated.
	Files []string
	// Globs are patterns of files in one directory: only the last element is a pattern
	// for [filepath.Match]. Matches are watched like Files, whenever they appear.
	Globs []string
	// Skip reports the base names of entries below the roots to ignore, such as ".git".
	// It is not called for names that start with "..". Nil skips nothing.
	Skip func(name string) bool
	// Logger logs for the operator. Nil discards.
	Logger *slog.Logger
}

// Change reports that files may have changed. It may be a false alarm, so read and
// compare; but no change is missed.
type Change struct {
	// Paths are sorted. Each is a root, a file, an entry below a root or a match of a
	// glob, with the names of Options. It may be a directory, and may be removed.
	Paths []string
	// Rescan means that Paths may be incomplete.
	Rescan bool
}

// Watcher watchSet directories and files. Create one with [New].
type Watcher struct {
	changes chan Change
	targets []target
	skip    func(string) bool
	log     *slog.Logger
	open    func() (*fsnotify.Watcher, error)
	source  source
	retry   time.Time // when to retry notifications; zero while they work
	// lockWaitExceeded is the lock that timed out.
	lockWaitExceeded lock
}

// retryAfter is the interval between attempts to return from polling to notifications.
const retryAfter = time.Minute

// New starts watching: Run reports changes from now on. Exactly one of Run and Close
// must be called, once.
//
// If the operating system provides no notifications, New logs a warning and the Watcher
// polls. New fails only if a path cannot be made absolute, or a pattern is malformed.
func New(o Options) (*Watcher, error) { return newWatcher(o, fsnotify.NewWatcher) }

func newWatcher(o Options, open func() (*fsnotify.Watcher, error)) (*Watcher, error) {
	w := &Watcher{changes: make(chan Change), skip: o.Skip, log: o.Logger, open: open}
	if w.skip == nil {
		w.skip = func(string) bool { return false }
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	err := errors.Join(w.addTargets(o.Roots, rootTarget), w.addTargets(o.Files, fileTarget), w.addTargets(o.Globs, globTarget))
	if err != nil {
		return nil, err
	}
	w.openSource()
	return w, nil
}

func (w *Watcher) addTargets(paths []string, k kind) error {
	var errs []error
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err == nil && k == globTarget {
			_, err = filepath.Match(filepath.Base(path), "")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("watch %s: %w", path, err))
			continue
		}
		w.targets = append(w.targets, target{path: path, abs: abs, kind: k})
	}
	return errors.Join(errs...)
}

// Changes returns the channel of changes, which is closed when Run returns. Unreceived
// changes are merged.
func (w *Watcher) Changes() <-chan Change { return w.changes }

// Close releases a Watcher that will not Run.
func (w *Watcher) Close() error { return w.source.close() }

// Run reports changes until ctx is done. It then releases the Watcher and returns nil
// or the error of that.
func (w *Watcher) Run(ctx context.Context) error {
	defer close(w.changes)
	settled := time.NewTimer(never)
	defer settled.Stop()
	pulse := time.NewTimer(w.source.interval())
	defer pulse.Stop()
	for p := (pending{}); ; {
		settled.Reset(p.wait(time.Now()))
		var out chan<- Change
		var change Change
		if p.ready {
			out, change = w.changes, p.change()
			select {
			case out <- change: // the next event restarts the debounce
				p = pending{}
				continue
			default:
			}
		}
		select {
		case <-ctx.Done():
			return w.source.close()
		case e, ok := <-w.source.events():
			w.event(&p, e, ok)
		case err, ok := <-w.source.errors():
			w.lost(&p, err, ok)
		case <-pulse.C:
			w.check(&p)
			pulse.Reset(w.source.interval())
		case <-settled.C:
			w.settle(&p)
		case out <- change:
			p = pending{}
		}
	}
}

// settle makes the pending change ready to send, unless there are more events or a git
// lock.
func (w *Watcher) settle(p *pending) {
	if w.locked(p) {
		return
	}
	select {
	case e, ok := <-w.source.events():
		w.event(p, e, ok)
	default:
		p.ready = !w.check(p)
	}
}

func (w *Watcher) event(p *pending, e fsnotify.Event, ok bool) {
	if !ok {
		w.usePolling(p, errors.New("notifications ended"))
		return
	}
	p.event(time.Now(), w.source.handle(e))
}

func (w *Watcher) lost(p *pending, err error, ok bool) {
	if !ok {
		w.usePolling(p, errors.New("notifications ended"))
		return
	}
	w.log.Warn("file notifications lost, rescanning", "error", err)
	p.add(time.Now(), w.source.overflowed())
}

// check looks for changes without notification, and reports whether it found any.
func (w *Watcher) check(p *pending) bool {
	if !w.retry.IsZero() && time.Now().After(w.retry) && w.openSource() {
		p.add(time.Now(), observation{rescan: true})
		return true
	}
	seen, err := w.source.check()
	if err != nil {
		w.usePolling(p, err)
		return true
	}
	p.add(time.Now(), seen)
	return !seen.empty()
}

// usePolling switches from notifications to polling.
func (w *Watcher) usePolling(p *pending, why error) {
	w.poll(errors.Join(why, w.source.close()))
	p.add(time.Now(), observation{rescan: true, many: true})
}

// openSource opens the best available source, and reports whether it has notifications.
func (w *Watcher) openSource() bool {
	n, err := newNotifier(w.targets, w.skip, w.open)
	if err != nil {
		w.poll(err)
		return false
	}
	if !w.retry.IsZero() {
		w.log.Info("file notifications restored")
	}
	w.source, w.retry = n, time.Time{}
	return true
}

// poll switches to polling.
func (w *Watcher) poll(why error) {
	if w.retry.IsZero() {
		w.log.Warn("file notifications unavailable, polling", "error", why)
		w.source = newPoller(w.targets, w.skip)
	}
	w.retry = time.Now().Add(retryAfter)
}

// source is a source of observations. It belongs to one goroutine.
type source interface {
	// events and errors deliver notifications of the operating system. They are nil for
	// a source without notifications. A closed channel means that the source has failed.
	events() <-chan fsnotify.Event
	errors() <-chan error
	// handle interprets an event.
	handle(fsnotify.Event) observation
	// overflowed returns the observation for lost events.
	overflowed() observation
	// check looks for changes without notification. It is called at every interval, and
	// before a change is reported, until it finds nothing. An error means that the source
	// has failed.
	check() (observation, error)
	// interval is the time between checks.
	interval() time.Duration
	close() error
}

// observation is the result of one look of a source.
type observation struct {
	paths []string
	// rescan means that paths may be incomplete.
	rescan bool
	// many announces more changes, as after a checkout.
	many bool
}

func (o observation) empty() bool { return len(o.paths) == 0 && !o.rescan }

// A target is a watched item of the Options.
type target struct {
	path string // as given by the user
	abs  string
	kind kind
}

// A kind is the kind of a target.
type kind uint8

const (
	rootTarget kind = iota // a directory and everything below it
	fileTarget
	globTarget // the matches in a directory
)

// absPath returns the absolute path of the target; for a glob, of its directory.
func (t target) absPath() string {
	if t.kind == globTarget {
		return filepath.Dir(t.abs)
	}
	return t.abs
}

// matches returns the matches of a glob in a directory as targets. folder is the real
// path of the directory of the glob.
func (t target) matches(folder string) []target {
	var files []target
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // unreadable files cannot be served
	}
	for _, e := range entries {
		if t.covers(e.Name()) {
			files = append(files, target{path: t.sibling(e.Name()), abs: filepath.Join(folder, e.Name()), kind: fileTarget})
		}
	}
	return files
}

// covers reports whether a glob matches a name.
func (t target) covers(name string) bool {
	ok, err := filepath.Match(filepath.Base(t.abs), name)
	return ok && err == nil
}

// sibling returns the user's path of another entry in the directory of the target.
func (t target) sibling(name string) string { return filepath.Join(filepath.Dir(t.path), name) }
