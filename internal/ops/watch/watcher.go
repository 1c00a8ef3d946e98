// Package watch tells when folders and files on disk may have changed.
//
// A [Watcher] sees through the operating system's notifications, or by looking
// every second where there are none, waits until all is quiet, and then sends
// one [Change]: so an editor that saves by rename, a Kubernetes ConfigMap that
// swaps its ..data link, and a checkout of a thousand files are one Change each.
// Quiet is when nothing has happened for a while, which grows with the pauses
// of who writes, and git holds no lock.
//
// The package does not say what changed, only what to read again: it knows
// nothing of what the files mean, and never opens them while notifications
// work. It is the only package that may import fsnotify.
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

// Options say what to watch.
type Options struct {
	// Roots are folders, watched with all that is below them; links below
	// them are not followed. A root may itself be a link, may be absent, and
	// may vanish and come back.
	Roots []string
	// Files are single files, each watched through its folder. A file may be
	// a link, may be absent, and may vanish and come back.
	Files []string
	// Globs name files by pattern, each within one folder: only the last
	// element of the path is a pattern, as of [filepath.Match]. What matches is
	// watched like Files, whenever it comes.
	Globs []string
	// Skip names entries below the roots that are of no interest, such as
	// ".git", by their base name. Entries that begin with ".." are never
	// asked about. Nil skips nothing.
	Skip func(name string) bool
	// Logger gets what the operator should know. Nil discards it.
	Logger *slog.Logger
}

// Change says that something may be different on disk. It may be a false
// alarm, so what it names is to be read and compared; but nothing is missed.
type Change struct {
	// Paths are dirty: sorted, each one of the roots or files, below a root or
	// matched by a glob, spelled as in Options. They may be folders, and may be gone.
	Paths []string
	// Rescan is set when Paths may not be all that is dirty.
	Rescan bool
}

// Watcher watches folders and files. Make one with [New].
type Watcher struct {
	changes chan Change
	targets []target
	skip    func(string) bool
	log     *slog.Logger
	open    func() (*fsnotify.Watcher, error)
	eye     eye
	retry   time.Time // when to ask for notifications again; zero while there are some
	// outwaited is the lock that lasted too long to be waited for again.
	outwaited lock
}

// retryAfter is how long polling lasts before notifications are asked for again.
const retryAfter = time.Minute

// New starts to watch: what changes after New has returned is reported by Run.
// Of Run and Close exactly one must be called, once.
//
// Where the operating system has no notifications left to give, New says so in
// the log and looks every second instead. It fails only when a path cannot be
// made absolute, or a pattern is malformed.
func New(o Options) (*Watcher, error) { return newWatcher(o, fsnotify.NewWatcher) }

func newWatcher(o Options, open func() (*fsnotify.Watcher, error)) (*Watcher, error) {
	w := &Watcher{changes: make(chan Change), skip: o.Skip, log: o.Logger, open: open}
	if w.skip == nil {
		w.skip = func(string) bool { return false }
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	err := errors.Join(w.aim(o.Roots, rootTarget), w.aim(o.Files, fileTarget), w.aim(o.Globs, globTarget))
	if err != nil {
		return nil, err
	}
	w.look()
	return w, nil
}

func (w *Watcher) aim(paths []string, k kind) error {
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

// Changes returns the channel of changes, which is closed when Run returns.
// Changes that nobody receives pile up into one.
func (w *Watcher) Changes() <-chan Change { return w.changes }

// Close releases a Watcher that is not going to Run.
func (w *Watcher) Close() error { return w.eye.close() }

// Run reports changes until ctx is done. It then releases the Watcher and
// returns nil, or the error of doing so.
func (w *Watcher) Run(ctx context.Context) error {
	defer close(w.changes)
	settled := time.NewTimer(never)
	defer settled.Stop()
	pulse := time.NewTimer(w.eye.pulse())
	defer pulse.Stop()
	for p := (pending{}); ; {
		settled.Reset(p.wait(time.Now()))
		var out chan<- Change
		var change Change
		if p.ready {
			out, change = w.changes, p.change()
			select {
			case out <- change: // an event of the same moment would have it wait anew
				p = pending{}
				continue
			default:
			}
		}
		select {
		case <-ctx.Done():
			return w.eye.close()
		case e, ok := <-w.eye.events():
			w.event(&p, e, ok)
		case err, ok := <-w.eye.errors():
			w.lost(&p, err, ok)
		case <-pulse.C:
			w.check(&p)
			pulse.Reset(w.eye.pulse())
		case <-settled.C:
			w.settle(&p)
		case out <- change:
			p = pending{}
		}
	}
}

// settle makes the pending change ready to be sent, unless there is more or
// git says that more is to come.
func (w *Watcher) settle(p *pending) {
	if w.locked(p) {
		return
	}
	select {
	case e, ok := <-w.eye.events():
		w.event(p, e, ok)
	default:
		p.ready = !w.check(p)
	}
}

func (w *Watcher) event(p *pending, e fsnotify.Event, ok bool) {
	if !ok {
		w.fallBack(p, errors.New("notifications ended"))
		return
	}
	p.event(time.Now(), w.eye.see(e))
}

func (w *Watcher) lost(p *pending, err error, ok bool) {
	if !ok {
		w.fallBack(p, errors.New("notifications ended"))
		return
	}
	w.log.Warn("notifications of file changes were lost: reading everything again", "error", err)
	p.add(time.Now(), w.eye.lost())
}

// check has the eye look for what notifications do not tell, and reports
// whether it found anything.
func (w *Watcher) check(p *pending) bool {
	if !w.retry.IsZero() && time.Now().After(w.retry) && w.look() {
		p.add(time.Now(), glance{rescan: true})
		return true
	}
	seen, err := w.eye.check()
	if err != nil {
		w.fallBack(p, err)
		return true
	}
	p.add(time.Now(), seen)
	return !seen.empty()
}

// fallBack goes from notifications to polling.
func (w *Watcher) fallBack(p *pending, why error) {
	w.poll(errors.Join(why, w.eye.close()))
	p.add(time.Now(), glance{rescan: true, many: true})
}

// look opens the best eye there is, and reports whether that is notifications.
func (w *Watcher) look() bool {
	n, err := newNotifier(w.targets, w.skip, w.open)
	if err != nil {
		w.poll(err)
		return false
	}
	if !w.retry.IsZero() {
		w.log.Info("watching files by notifications again")
	}
	w.eye, w.retry = n, time.Time{}
	return true
}

// poll opens the eye that needs nothing of the operating system.
func (w *Watcher) poll(why error) {
	if w.retry.IsZero() {
		w.log.Warn("watching files without notifications: looking every second", "error", why)
		w.eye = newPoller(w.targets, w.skip)
	}
	w.retry = time.Now().Add(retryAfter)
}

// An eye is one way to see what happens on disk. It belongs to one goroutine.
type eye interface {
	// events and errors deliver what the operating system tells. They are nil
	// for an eye that is not told anything. A closed channel means that the
	// eye has gone blind.
	events() <-chan fsnotify.Event
	errors() <-chan error
	// see says what an event means.
	see(fsnotify.Event) glance
	// lost says what it means that events were lost.
	lost() glance
	// check looks for what events do not tell. It is called at every pulse,
	// and before a change is reported, until it finds nothing more. An error
	// means that this eye has gone blind.
	check() (glance, error)
	// pulse is how long to wait between two checks.
	pulse() time.Duration
	close() error
}

// A glance is what an eye saw at one time.
type glance struct {
	paths []string
	// rescan means that paths may not be all.
	rescan bool
	// many means that more is to come, as after a checkout.
	many bool
}

func (g glance) empty() bool { return len(g.paths) == 0 && !g.rescan }

// A target is what the user wants to have watched.
type target struct {
	path string // as the user gave it
	abs  string
	kind kind
}

// A kind is what a target stands for.
type kind uint8

const (
	rootTarget kind = iota // a folder and all below it
	fileTarget
	globTarget // the files of a folder whose names match the last element
)

// place returns the absolute path that leads to the target: for a glob, to its
// folder.
func (t target) place() string {
	if t.kind == globTarget {
		return filepath.Dir(t.abs)
	}
	return t.abs
}

// matches returns the files of a folder that a glob stands for, as targets of
// their own. folder is where the glob's own folder really is.
func (t target) matches(folder string) []target {
	var files []target
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // what cannot be read cannot be served
	}
	for _, e := range entries {
		if t.covers(e.Name()) {
			files = append(files, target{path: t.sibling(e.Name()), abs: filepath.Join(folder, e.Name()), kind: fileTarget})
		}
	}
	return files
}

// covers reports whether a glob stands for files of this name.
func (t target) covers(name string) bool {
	ok, err := filepath.Match(filepath.Base(t.abs), name)
	return ok && err == nil
}

// sibling returns the path of another entry of the target's folder, as the user
// would give it.
func (t target) sibling(name string) string { return filepath.Join(filepath.Dir(t.path), name) }
