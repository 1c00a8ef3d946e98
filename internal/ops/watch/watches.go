package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// watches is one set of watched folders. No folder is ever taken out of it.
type watches struct {
	fs      *fsnotify.Watcher
	failed  chan error    // the newest error that was not looked at yet
	drained chan struct{} // closed when no more errors come
	skip    func(string) bool
	folders map[string]struct{}
}

// watchAll watches all that a chart shows.
func watchAll(c chart, skip func(string) bool, open func() (*fsnotify.Watcher, error)) (*watches, error) {
	fsw, err := open()
	if err != nil {
		return nil, fmt.Errorf("ask for notifications: %w", err)
	}
	w := &watches{
		fs: fsw, failed: make(chan error, 1), drained: make(chan struct{}),
		skip: skip, folders: map[string]struct{}{},
	}
	go w.drain()
	var errs []error
	for step := range c.steps {
		_, err := w.add(filepath.Dir(step))
		errs = append(errs, err)
	}
	for folder := range c.globs {
		_, err := w.add(folder)
		errs = append(errs, err)
	}
	for root := range c.trees {
		errs = append(errs, w.grow(root))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// drain takes fsnotify's errors off its hands at once: it sends them while it
// holds the lock that adding a watch needs.
func (w *watches) drain() {
	defer close(w.drained)
	defer close(w.failed)
	for err := range w.fs.Errors {
		select {
		case w.failed <- err:
		default:
		}
	}
}

func (w *watches) close() error {
	err := w.fs.Close()
	<-w.drained
	return err
}

// has reports whether a folder is in the set.
func (w *watches) has(folder string) bool {
	_, ok := w.folders[folder]
	return ok
}

// grow watches a folder and all below it. A folder is watched before it is
// read, so that nothing can come in between.
func (w *watches) grow(folder string) error {
	if ok, err := w.add(folder); !ok {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !closed(err) {
		return fmt.Errorf("watch: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || skipped(e.Name(), w.skip) {
			continue
		}
		if err := w.grow(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// add watches one folder, and reports whether there is such a folder.
func (w *watches) add(folder string) (bool, error) {
	if w.has(folder) {
		return true, nil
	}
	if err := w.fs.Add(folder); closed(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("watch %s: %w", folder, err)
	}
	w.folders[folder] = struct{}{}
	return true, nil
}

// closed reports whether an error means that a folder is gone by now or not
// ours to read. What is in it cannot be served then, and when that changes,
// the folder above tells.
func closed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
}
