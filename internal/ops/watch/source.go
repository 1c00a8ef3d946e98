package watch

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollPulse is the polling interval.
	pollPulse = time.Second
	// fresh is the age up to which the content of a file is read: two saves within the
	// resolution of the timestamp can leave time and size equal.
	fresh = 3 * time.Second
	// sampled is the maximum number of bytes read from a file.
	sampled = 8 << 20
)

// poller is the source without notifications: it lists all entries and compares them.
type poller struct {
	targets []target
	skip    func(string) bool
	seen    map[string]fileStamp
}

// fileStamp is the observed state of an entry.
type fileStamp struct {
	info fs.FileInfo
	link string
	sum  [sha256.Size]byte // of the content, zero if not read
}

func newPoller(targets []target, skip func(string) bool) *poller {
	p := &poller{targets: targets, skip: skip}
	p.seen = p.scan()
	return p
}

func (p *poller) events() <-chan fsnotify.Event     { return nil }
func (p *poller) errors() <-chan error              { return nil }
func (p *poller) handle(fsnotify.Event) observation { return observation{} }
func (p *poller) overflowed() observation           { return observation{rescan: true} }
func (p *poller) interval() time.Duration           { return pollPulse }
func (p *poller) close() error                      { return nil }

func (p *poller) check() (observation, error) {
	now := p.scan()
	var g observation
	for path, was := range p.seen {
		if is, ok := now[path]; !ok || !is.same(was) {
			g.paths = append(g.paths, path)
		}
	}
	for path := range now {
		if _, ok := p.seen[path]; !ok {
			g.paths = append(g.paths, path)
		}
	}
	p.seen = now
	return g, nil
}

// scan returns the current state by the user's names.
func (p *poller) scan() map[string]fileStamp {
	now := map[string]fileStamp{}
	targets, _ := expandGlobs(p.targets)
	for _, t := range targets {
		_, real := follow(t.absPath())
		if real == "" || t.kind == globTarget {
			continue
		}
		if t.kind == fileTarget {
			p.record(now, t.path, real)
			continue
		}
		// An entry with an error counts as missing.
		_ = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if path != real && skipped(d.Name(), p.skip) {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			p.record(now, filepath.Join(t.path, path[len(real):]), path)
			return nil
		})
	}
	return now
}

// record stores the state of an entry. It reads the content of a file that is too new
// for its timestamp to be trusted, and keeps a known sum while the timestamp is
// unchanged.
func (p *poller) record(now map[string]fileStamp, name, real string) {
	info, err := os.Lstat(real)
	if err != nil {
		return
	}
	s := fileStamp{info: info}
	was, known := p.seen[name]
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		s.link, _ = os.Readlink(real)
	case info.Mode().IsRegular() && time.Since(info.ModTime()) < fresh:
		s.sum = sum(real)
	case known && was.stat(s):
		s.sum = was.sum
	}
	now[name] = s
}

// stat reports whether two stamps are equal except for the content.
func (s fileStamp) stat(t fileStamp) bool {
	if s.info.Mode() != t.info.Mode() || s.link != t.link || !os.SameFile(s.info, t.info) {
		return false
	}
	return s.info.IsDir() || s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime())
}

func (s fileStamp) same(t fileStamp) bool { return s.stat(t) && s.sum == t.sum }

// sum returns the hash of a file, or zero if it cannot be read.
func sum(path string) (h [sha256.Size]byte) {
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer func() { _ = f.Close() }()
	d := sha256.New()
	if _, err := io.Copy(d, io.LimitReader(f, sampled)); err != nil {
		return h
	}
	return [sha256.Size]byte(d.Sum(nil))
}

// notifyPulse is the interval of checks for changes without notification: a renamed
// ancestor of a root, or a mounted file system.
const notifyPulse = 2 * time.Second

// notifier is the source with notifications of the operating system. It watches every
// directory of the trees, and every directory with a step to one.
//
// A watch belongs to an inode and keeps reporting the first name of that inode. The
// table of fsnotify breaks (it panics) if a name is watched again after directories
// were swapped. Therefore any change of directories recreates the whole set of watchSet.
type notifier struct {
	open    func() (*fsnotify.Watcher, error)
	targets []target
	skip    func(string) bool
	chart   pathMap
	set     *watchSet
	stale   bool // the set may not match the directories on disk
}

func newNotifier(targets []target, skip func(string) bool, open func() (*fsnotify.Watcher, error)) (*notifier, error) {
	n := &notifier{open: open, targets: targets, skip: skip, chart: newPathMap(targets)}
	var err error
	n.set, err = watchAll(n.chart, skip, open)
	return n, err
}

func (n *notifier) events() <-chan fsnotify.Event { return n.set.fs.Events }
func (n *notifier) errors() <-chan error          { return n.set.failed }
func (n *notifier) interval() time.Duration       { return notifyPulse }
func (n *notifier) close() error                  { return n.set.close() }

func (n *notifier) overflowed() observation {
	n.stale = true
	return observation{rescan: true, many: true}
}

func (n *notifier) handle(e fsnotify.Event) observation {
	path := filepath.Clean(e.Name)
	g := observation{paths: n.chart.userPaths(path, n.skip)}
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

// check recreates the watchSet if they may be outdated. It adds the new ones before it
// removes the old ones, and a rescan finds changes in between.
func (n *notifier) check() (observation, error) {
	now := newPathMap(n.targets)
	if !n.stale && now.same(n.chart) {
		return observation{}, nil
	}
	set, err := watchAll(now, n.skip, n.open)
	if err != nil {
		return observation{}, err
	}
	old := n.set
	n.chart, n.set, n.stale = now, set, false
	return observation{rescan: true}, old.close()
}
