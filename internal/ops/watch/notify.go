package watch

import (
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notifyPulse is how often the notifier looks for what the operating system
// does not tell: a folder far above a root renamed, a file system mounted.
const notifyPulse = 2 * time.Second

// notifier is the eye that the operating system tells what happens. Every
// folder of the trees is watched, and every folder that holds a step to one.
//
// A watch belongs to an inode, and keeps reporting under the name that the
// inode had at first; and fsnotify's own table of the two breaks (it panics)
// when a name is watched again after folders have changed places. So where
// folders come, go or move, the whole set of watches is made anew.
type notifier struct {
	open    func() (*fsnotify.Watcher, error)
	targets []target
	skip    func(string) bool
	chart   chart
	set     *watches
	stale   bool // the set may not be of the folders on disk
}

func newNotifier(targets []target, skip func(string) bool, open func() (*fsnotify.Watcher, error)) (*notifier, error) {
	n := &notifier{open: open, targets: targets, skip: skip, chart: survey(targets)}
	var err error
	n.set, err = watchAll(n.chart, skip, open)
	return n, err
}

func (n *notifier) events() <-chan fsnotify.Event { return n.set.fs.Events }
func (n *notifier) errors() <-chan error          { return n.set.failed }
func (n *notifier) pulse() time.Duration          { return notifyPulse }
func (n *notifier) close() error                  { return n.set.close() }

func (n *notifier) lost() glance {
	n.stale = true
	return glance{rescan: true, many: true}
}

func (n *notifier) see(e fsnotify.Event) glance {
	path := filepath.Clean(e.Name)
	g := glance{paths: n.chart.spell(path, n.skip)}
	if n.set.has(path) && e.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
		n.stale, g.rescan = true, true
	}
	if len(g.paths) == 0 || !n.chart.holds(path) {
		return g
	}
	if filepath.Base(path) == "..data" {
		g.rescan = true
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		n.stale, g.rescan = true, true
	}
	return g
}

// check makes the watches anew where they may not fit. The new ones are in
// place before the old ones go, and a rescan finds what came in between.
func (n *notifier) check() (glance, error) {
	now := survey(n.targets)
	if !n.stale && now.same(n.chart) {
		return glance{}, nil
	}
	set, err := watchAll(now, n.skip, n.open)
	if err != nil {
		return glance{}, err
	}
	old := n.set
	n.chart, n.set, n.stale = now, set, false
	return glance{rescan: true}, old.close()
}
