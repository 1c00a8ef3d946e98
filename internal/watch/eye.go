package watch

import (
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

// A target is a root or a file to watch.
type target struct {
	path string // as the user gave it
	abs  string
	tree bool
}
