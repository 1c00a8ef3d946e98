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

// pathMap holds the real locations of the targets at one time.
type pathMap struct {
	// steps maps each entry that determines the location of a target (a link on its
	// path, the first missing entry, and the target itself) to those targets.
	steps map[string][]target
	// trees maps the real path of each existing root to its roots.
	trees map[string]realDir
	// globs maps the real path of each existing directory to the globs in it.
	globs map[string][]target
}

// realDir is a directory that one or more roots lead to.
type realDir struct {
	roots []target
	info  fs.FileInfo
}

// newPathMap resolves the targets.
func newPathMap(targets []target) pathMap {
	c := pathMap{steps: map[string][]target{}, trees: map[string]realDir{}}
	targets, c.globs = expandGlobs(targets)
	for _, t := range targets {
		steps, real := follow(t.absPath())
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
		c.trees[real] = realDir{append(c.trees[real].roots, t), info}
	}
	return c
}

// expandGlobs returns the targets plus the files that match globs, and the globs by the real
// paths of their directories.
func expandGlobs(targets []target) (all []target, globs map[string][]target) {
	all, globs = slices.Clone(targets), map[string][]target{}
	for _, t := range targets {
		if t.kind != globTarget {
			continue
		}
		if _, real := follow(t.absPath()); real != "" {
			globs[real] = append(globs[real], t)
			all = append(all, t.matches(real)...)
		}
	}
	return all, globs
}

// same reports whether two charts lead to the same locations.
func (m pathMap) same(d pathMap) bool {
	sameTargets := func(a, b []target) bool { return slices.Equal(a, b) }
	sameTree := func(a, b realDir) bool { return os.SameFile(a.info, b.info) && slices.Equal(a.roots, b.roots) }
	return maps.EqualFunc(m.steps, d.steps, sameTargets) && maps.EqualFunc(m.trees, d.trees, sameTree)
}

// userPaths returns the user's names of a real path: none if it is not watched, several if
// several roots lead to it.
func (m pathMap) userPaths(real string, skip func(string) bool) []string {
	var names []string
	for _, t := range m.steps[real] {
		names = append(names, t.path)
	}
	for _, t := range m.globs[filepath.Dir(real)] {
		if name := filepath.Base(real); t.covers(name) || name == "..data" {
			names = append(names, t.sibling(name))
		}
	}
	for root, tree := range m.trees {
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
func (m pathMap) holds(real string) bool {
	for ; ; real = filepath.Dir(real) {
		if _, ok := m.trees[real]; ok {
			return true
		}
		if real == filepath.Dir(real) {
			return false
		}
	}
}

// skipped reports whether an entry is ignored. A Kubernetes ConfigMap is swapped
// through names that start with two dots.
func skipped(name string, skip func(string) bool) bool {
	return name != "" && !strings.HasPrefix(name, "..") && skip(name)
}

// maxLinks is the maximum number of links on a path, as in Linux.
const maxLinks = 40

// follow resolves an absolute path through all links. steps are the real paths of the
// entries that determine the result. real is the real path, or "" if nothing is there.
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

// watchSet is a set of watched directories. Directories are never removed from it.
type watchSet struct {
	fs      *fsnotify.Watcher
	failed  chan error    // the latest unhandled error
	drained chan struct{} // closed after the last error
	skip    func(string) bool
	folders map[string]struct{}
}

// watchAll watches everything in a path map.
func watchAll(c pathMap, skip func(string) bool, open func() (*fsnotify.Watcher, error)) (*watchSet, error) {
	fsw, err := open()
	if err != nil {
		return nil, fmt.Errorf("create file notifier: %w", err)
	}
	w := &watchSet{
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
		errs = append(errs, w.addRecursive(root))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// drain receives fsnotify errors immediately, because fsnotify sends them while it
// holds the lock for adding a watch.
func (w *watchSet) drain() {
	defer close(w.drained)
	defer close(w.failed)
	for err := range w.fs.Errors {
		select {
		case w.failed <- err:
		default:
		}
	}
}

func (w *watchSet) close() error {
	err := w.fs.Close()
	<-w.drained
	return err
}

func (w *watchSet) has(folder string) bool {
	_, ok := w.folders[folder]
	return ok
}

// addRecursive watchSet a directory and everything below it. It watchSet a directory before
// reading it, so that no change is missed.
func (w *watchSet) addRecursive(folder string) error {
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
		if err := w.addRecursive(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// add watchSet one directory, and reports whether it exists.
func (w *watchSet) add(folder string) (bool, error) {
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

// closed reports whether an error means that a directory is gone or unreadable. Its
// content then cannot be served, and a change of that is reported by its parent.
func closed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
}
