package watch

import (
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

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
