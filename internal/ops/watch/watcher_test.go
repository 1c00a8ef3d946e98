package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEye reports the observations that a test injects.
type fakeEye struct {
	shown  chan fsnotify.Event
	failed chan error

	mu     sync.Mutex
	found  []observation // results of the next checks
	blind  error         // error of the next check
	closed bool
}

func newFakeEye() *fakeEye {
	return &fakeEye{shown: make(chan fsnotify.Event), failed: make(chan error)}
}

func (e *fakeEye) events() <-chan fsnotify.Event        { return e.shown }
func (e *fakeEye) errors() <-chan error                 { return e.failed }
func (e *fakeEye) overflowed() observation              { return observation{rescan: true, many: true} }
func (e *fakeEye) interval() time.Duration              { return notifyPulse }
func (e *fakeEye) close() error                         { e.closed = true; return nil }
func (e *fakeEye) handle(ev fsnotify.Event) observation { return observation{paths: []string{ev.Name}} }

// finds sets the results or the error of the next checks.
func (e *fakeEye) finds(blind error, found ...observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.found, e.blind = found, blind
}

func (e *fakeEye) check() (observation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.blind != nil || len(e.found) == 0 {
		return observation{}, e.blind
	}
	g := e.found[0]
	e.found = e.found[1:]
	return g, nil
}

// watching runs a Watcher with a fake source and fake time.
func watching(t *testing.T, test func(t *testing.T, w *Watcher, e *fakeEye, show func(path string))) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEye()
		w := &Watcher{changes: make(chan Change), source: e, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		test(t, w, e, func(path string) { e.shown <- fsnotify.Event{Name: path} })
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if _, open := <-w.Changes(); open {
			t.Error("a change was sent after Run returned")
		}
	})
}

func TestWatcher_saveDebounce(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		start := time.Now()
		show("a.hcl")
		got := <-w.Changes()
		if diff := cmp.Diff(Change{Paths: []string{"a.hcl"}}, got); diff != "" {
			t.Errorf("change (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != debounceFew {
			t.Errorf("it took %v, want %v", took, debounceFew)
		}
	})
}

func TestWatcher_checkoutIsOneChange(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		for i := range 1000 {
			show(fmt.Sprintf("%04d.hcl", i))
			time.Sleep(time.Millisecond)
		}
		got := <-w.Changes()
		if len(got.Paths) != 1000 {
			t.Errorf("%d paths, want 1000", len(got.Paths))
		}
		time.Sleep(time.Minute)
		select {
		case again := <-w.Changes():
			t.Errorf("second change: %v", again)
		default:
		}
	})
}

func TestWatcher_pausingWriter(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		for i, pause := range []time.Duration{0, 9, 9, 9, 60, 90, 170, 400, 9} {
			time.Sleep(pause * time.Millisecond)
			show(fmt.Sprint(i))
		}
		last := time.Now()
		if got := <-w.Changes(); len(got.Paths) != 9 {
			t.Errorf("paths %v, want all 9", got.Paths)
		}
		if took, want := time.Since(last), gapsQuiet*400*time.Millisecond; took != want {
			t.Errorf("it took %v, want %v", took, want)
		}
	})
}

func TestWatcher_burstWithoutReceiver(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		show("first")
		time.Sleep(time.Minute)
		start := time.Now()
		for i := range 10 {
			show(fmt.Sprint(i))
			time.Sleep(5 * time.Millisecond)
		}
		if got := <-w.Changes(); len(got.Paths) != 11 {
			t.Errorf("paths %v, want all 11", got.Paths)
		}
		if took, want := time.Since(start), 45*time.Millisecond+debounceMany; took != want {
			t.Errorf("it took %v, want %v", took, want)
		}
	})
}

func TestWatcher_endlessWrites(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		start := time.Now()
		go func() {
			for time.Since(start) < 3*longest {
				show("log")
				time.Sleep(time.Millisecond)
			}
		}()
		for i := range 2 {
			<-w.Changes()
			if took := time.Since(start); took > time.Duration(i+1)*(longest+5*time.Millisecond) {
				t.Errorf("change %d after %v", i, took)
			}
		}
		time.Sleep(3 * longest)
		synctest.Wait()
	})
}

func TestWatcher_mergesUnreceived(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, _ *fakeEye, show func(string)) {
		show("a")
		time.Sleep(time.Minute)
		show("b")
		time.Sleep(time.Minute)
		if diff := cmp.Diff(Change{Paths: []string{"a", "b"}}, <-w.Changes()); diff != "" {
			t.Errorf("change (-want +got):\n%s", diff)
		}
	})
}

func TestNew_malformedPattern(t *testing.T) {
	if _, err := New(Options{Globs: []string{"x/[a.v"}}); err == nil {
		t.Error("no error")
	}
}

func TestWatcher_checkIsDebounced(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, e *fakeEye, show func(string)) {
		start := time.Now()
		e.finds(nil, observation{paths: []string{"a/b"}, rescan: true}, observation{paths: []string{"a/b/c"}})
		show("a")
		want := Change{Paths: []string{"a", "a/b", "a/b/c"}, Rescan: true}
		if diff := cmp.Diff(want, <-w.Changes()); diff != "" {
			t.Errorf("change (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 3*debounceFew {
			t.Errorf("it took %v, want %v: one quiet for each thing found", took, 3*debounceFew)
		}
	})
}

func TestWatcher_periodicCheck(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, e *fakeEye, _ func(string)) {
		e.finds(nil, observation{rescan: true})
		if diff := cmp.Diff(Change{Rescan: true}, <-w.Changes()); diff != "" {
			t.Errorf("change (-want +got):\n%s", diff)
		}
	})
}

func TestWatcher_overflow(t *testing.T) {
	watching(t, func(t *testing.T, w *Watcher, e *fakeEye, _ func(string)) {
		e.failed <- fsnotify.ErrEventOverflow
		if got := <-w.Changes(); !got.Rescan {
			t.Errorf("change is %v, want a rescan", got)
		}
	})
}

func TestWatcher_fallsBackToPolling(t *testing.T) {
	rows := map[string]func(e *fakeEye){
		"a check fails":             func(e *fakeEye) { e.finds(errors.New("no space left on device")) },
		"the event channel closes":  func(e *fakeEye) { close(e.shown) },
		"the errors channel closes": func(e *fakeEye) { close(e.failed) },
	}
	for name, goBlind := range rows {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				e := newFakeEye()
				w := &Watcher{
					changes: make(chan Change), source: e, log: slog.New(slog.NewTextHandler(&log, nil)),
					targets: []target{{path: "tools", abs: dir}},
					skip:    func(string) bool { return false },
					open:    func() (*fsnotify.Watcher, error) { return nil, errors.New("none left") },
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- w.Run(ctx) }()
				goBlind(e)
				if got := <-w.Changes(); !got.Rescan {
					t.Errorf("change is %v, want a rescan", got)
				}
				if !e.closed {
					t.Error("the failed source was not closed")
				}
				write(t, filepath.Join(dir, "a.hcl"), "x")
				want := Change{Paths: []string{"tools", "tools/a.hcl"}}
				if got := <-w.Changes(); !cmp.Equal(got.Paths[len(got.Paths)-1], want.Paths[1]) {
					t.Errorf("change is %v, want %v", got, want)
				}
				time.Sleep(3 * retryAfter)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if n := strings.Count(log.String(), "polling"); n != 1 {
					t.Errorf("%d polling records in the log, want one:\n%s", n, &log)
				}
			})
		})
	}
}

func TestNew_pollsWithoutNotify(t *testing.T) {
	var log bytes.Buffer
	o := Options{Roots: []string{t.TempDir()}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	w, err := newWatcher(o, func() (*fsnotify.Watcher, error) { return nil, errors.New("too many open files") })
	if err != nil {
		t.Fatal(err)
	}
	if _, polls := w.source.(*poller); !polls {
		t.Errorf("the source is a %T", w.source)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "too many open files") {
		t.Errorf("the log has no reason for polling: %s", &log)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestNew_pollsOnWatchLimit(t *testing.T) {
	w, err := newWatcher(Options{Roots: []string{t.TempDir()}}, func() (*fsnotify.Watcher, error) {
		fs, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, err
		}
		return fs, fs.Close() // makes every Add fail
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, polls := w.source.(*poller); !polls {
		t.Errorf("the source is a %T", w.source)
	}
}

func TestWatcher_retriesNotify(t *testing.T) {
	var log bytes.Buffer
	none := true
	w, err := newWatcher(Options{Roots: []string{t.TempDir()}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func() (*fsnotify.Watcher, error) {
		if none {
			return nil, errors.New("too many open files")
		}
		return fsnotify.NewWatcher()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for range 3 {
		w.retry = time.Now().Add(-time.Hour)
		var p pending
		if w.check(&p) {
			t.Fatalf("unexpected change: %v", p.change())
		}
	}
	none = false
	w.retry = time.Now().Add(-time.Hour)
	var p pending
	if !w.check(&p) || !p.change().Rescan {
		t.Error("no rescan after the switch")
	}
	if _, notified := w.source.(*notifier); !notified || !w.retry.IsZero() {
		t.Errorf("the source is a %T", w.source)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d log records, want one for the loss and one for the recovery:\n%s", n, &log)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
