package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// aim adds targets of one kind.
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
