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
	// pollPulse is how often the poller looks.
	pollPulse = time.Second
	// fresh is how young a file must be for its content to be read: two saves
	// within the resolution of its time can leave time and size the same.
	fresh = 3 * time.Second
	// sampled is how much of a file is read, in bytes.
	sampled = 8 << 20
)

// poller is the eye that needs no notifications: it looks at everything and
// compares.
type poller struct {
	targets []target
	skip    func(string) bool
	seen    map[string]sight
}

// A sight is what one entry looked like.
type sight struct {
	info fs.FileInfo
	link string
	sum  [sha256.Size]byte // of the content, zero when it was not read
}

func newPoller(targets []target, skip func(string) bool) *poller {
	p := &poller{targets: targets, skip: skip}
	p.seen = p.look()
	return p
}

func (p *poller) events() <-chan fsnotify.Event { return nil }
func (p *poller) errors() <-chan error          { return nil }
func (p *poller) see(fsnotify.Event) glance     { return glance{} }
func (p *poller) lost() glance                  { return glance{rescan: true} }
func (p *poller) pulse() time.Duration          { return pollPulse }
func (p *poller) close() error                  { return nil }

func (p *poller) check() (glance, error) {
	now := p.look()
	var g glance
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

// look returns what is there now, by the names that the user knows.
func (p *poller) look() map[string]sight {
	now := map[string]sight{}
	targets, _ := unfold(p.targets)
	for _, t := range targets {
		_, real := follow(t.place())
		if real == "" || t.kind == globTarget {
			continue
		}
		if t.kind == fileTarget {
			p.note(now, t.path, real)
			continue
		}
		// An error is of one entry, which then counts as absent.
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
			p.note(now, filepath.Join(t.path, path[len(real):]), path)
			return nil
		})
	}
	return now
}

// note puts down what an entry looks like. The content of a file is read when
// it is too young for its time to be trusted; a sum once known is kept as long
// as the time stays the same.
func (p *poller) note(now map[string]sight, name, real string) {
	info, err := os.Lstat(real)
	if err != nil {
		return
	}
	s := sight{info: info}
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

// stat reports whether two sights are the same but for the content.
func (s sight) stat(t sight) bool {
	if s.info.Mode() != t.info.Mode() || s.link != t.link || !os.SameFile(s.info, t.info) {
		return false
	}
	return s.info.IsDir() || s.info.Size() == t.info.Size() && s.info.ModTime().Equal(t.info.ModTime())
}

func (s sight) same(t sight) bool { return s.stat(t) && s.sum == t.sum }

// sum returns the hash of a file, or zero when it cannot be read.
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
