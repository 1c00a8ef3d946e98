package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// A chart says where the targets really are at one time.
type chart struct {
	// steps maps each entry that decides where a target is (a link on its
	// path, the first entry that is missing, and its own) to those targets.
	steps map[string][]target
	// trees maps the real path of each root that exists to the roots there.
	trees map[string]tree
	// globs maps the real path of each folder that exists to the globs there.
	globs map[string][]target
}

// A tree is a folder that one or more roots lead to.
type tree struct {
	roots []target
	info  fs.FileInfo
}

// survey finds out where the targets are.
func survey(targets []target) chart {
	c := chart{steps: map[string][]target{}, trees: map[string]tree{}}
	targets, c.globs = unfold(targets)
	for _, t := range targets {
		steps, real := follow(t.place())
		for _, s := range steps {
			c.steps[s] = append(c.steps[s], t)
		}
		if t.kind != rootTarget || real == "" {
			continue
		}
		info, err := os.Lstat(real)
		if err != nil || !info.IsDir() {
			continue
		}
		c.trees[real] = tree{append(c.trees[real].roots, t), info}
	}
	return c
}

// unfold returns the targets with the files that globs among them stand for,
// and the globs by the real paths of their folders.
func unfold(targets []target) (all []target, globs map[string][]target) {
	all, globs = slices.Clone(targets), map[string][]target{}
	for _, t := range targets {
		if t.kind != globTarget {
			continue
		}
		if _, real := follow(t.place()); real != "" {
			globs[real] = append(globs[real], t)
			all = append(all, t.matches(real)...)
		}
	}
	return all, globs
}

// same reports whether two charts lead to the same places.
func (c chart) same(d chart) bool {
	sameTargets := func(a, b []target) bool { return slices.Equal(a, b) }
	sameTree := func(a, b tree) bool { return os.SameFile(a.info, b.info) && slices.Equal(a.roots, b.roots) }
	return maps.EqualFunc(c.steps, d.steps, sameTargets) && maps.EqualFunc(c.trees, d.trees, sameTree)
}

// spell returns the names by which the user knows the real path: none when it
// is not watched, and several when several roots lead to it.
func (c chart) spell(real string, skip func(string) bool) []string {
	var names []string
	for _, t := range c.steps[real] {
		names = append(names, t.path)
	}
	for _, t := range c.globs[filepath.Dir(real)] {
		if name := filepath.Base(real); t.covers(name) || name == "..data" {
			names = append(names, t.sibling(name))
		}
	}
	for root, tree := range c.trees {
		rest, below := strings.CutPrefix(real, root)
		if !below || rest != "" && rest[0] != filepath.Separator && !os.IsPathSeparator(root[len(root)-1]) {
			continue
		}
		if slices.ContainsFunc(strings.Split(rest, string(filepath.Separator)), func(n string) bool { return skipped(n, skip) }) {
			continue
		}
		for _, t := range tree.roots {
			names = append(names, filepath.Join(t.path, rest))
		}
	}
	return names
}

// holds reports whether a real path is in one of the trees.
func (c chart) holds(real string) bool {
	for ; ; real = filepath.Dir(real) {
		if _, ok := c.trees[real]; ok {
			return true
		}
		if real == filepath.Dir(real) {
			return false
		}
	}
}

// skipped reports whether an entry is of no interest. The names that begin
// with two dots are how a Kubernetes ConfigMap is swapped.
func skipped(name string, skip func(string) bool) bool {
	return name != "" && !strings.HasPrefix(name, "..") && skip(name)
}

// maxLinks is how many links are followed on one path, as in Linux.
const maxLinks = 40

// follow walks along an absolute path through all links. It returns the real
// paths of the entries that decide where it leads, and where that is: "" when
// nothing is there.
func follow(abs string) (steps []string, real string) {
	sep := string(filepath.Separator)
	start := filepath.VolumeName(abs) + sep
	at := start
	todo := strings.Split(abs[len(filepath.VolumeName(abs)):], sep)
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return append(steps, next), ""
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		steps = append(steps, next)
		link, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return steps, ""
		}
		if filepath.IsAbs(link) {
			at = filepath.VolumeName(link) + sep
			link = link[len(filepath.VolumeName(link)):]
		}
		todo = append(strings.Split(filepath.FromSlash(link), sep), todo...)
	}
	return append(steps, at), at
}

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
