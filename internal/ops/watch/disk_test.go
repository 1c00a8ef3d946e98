package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is the timeout for a change. It is only reached if the change is missed.
const patience = 2 * time.Minute

// disk is a watched directory.
type disk struct {
	*testing.T
	dir string
	w   *Watcher
}

// watchDisk creates files ("x -> y" is a link, "x/" a directory) and watchSet them.
func watchDisk(t *testing.T, layout []string, o Options) *disk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{T: t, dir: dir}
	for _, entry := range layout {
		d.put(entry)
	}
	for _, paths := range [][]string{o.Roots, o.Files, o.Globs} {
		for i := range paths {
			paths[i] = d.at(paths[i])
		}
	}
	if d.w, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range d.w.Changes() {
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *disk) at(path string) string { return filepath.Join(d.dir, path) }

func (d *disk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *disk) put(entry string) {
	d.Helper()
	name, link, isLink := strings.Cut(entry, " -> ")
	switch {
	case isLink:
		d.must(os.Symlink(link, d.at(name)))
	case strings.HasSuffix(entry, "/"):
		d.must(os.MkdirAll(d.at(entry), 0o700))
	default:
		d.must(os.WriteFile(d.at(entry), []byte("first"), 0o600))
	}
}

func (d *disk) mv(from, to string) { d.Helper(); d.must(os.Rename(d.at(from), d.at(to))) }
func (d *disk) rm(path string)     { d.Helper(); d.must(os.RemoveAll(d.at(path))) }

// until receives changes until one satisfies enough.
func (d *disk) until(what string, enough func(Change) bool) {
	d.Helper()
	deadline := time.After(patience)
	for {
		select {
		case c := <-d.w.Changes():
			if enough(c) {
				return
			}
		case <-deadline:
			d.Fatalf("%s was not reported", what)
		}
	}
}

func (d *disk) dirty(path string) {
	d.Helper()
	d.until(path, func(c Change) bool { return slices.Contains(c.Paths, d.at(path)) })
}

func (d *disk) rescan() {
	d.Helper()
	d.until("a rescan", func(c Change) bool { return c.Rescan })
}

// sees checks that a file is watched by writing to it.
func (d *disk) sees(path string) {
	d.Helper()
	d.must(os.WriteFile(d.at(path), []byte("again"), 0o600))
	d.dirty(path)
}

func TestWatcher_diskChanges(t *testing.T) {
	root := func() Options { return Options{Roots: []string{"t"}} }
	rows := []struct {
		name   string
		layout []string
		watch  Options
		run    func(d *disk)
	}{
		{"edit in place", []string{"t/", "t/a"}, root(), func(d *disk) {
			d.sees("t/a")
		}},
		{"new file", []string{"t/"}, root(), func(d *disk) {
			d.put("t/a")
			d.dirty("t/a")
		}},
		{"deleted file", []string{"t/", "t/a"}, root(), func(d *disk) {
			d.rm("t/a")
			d.dirty("t/a")
		}},
		{"renamed file", []string{"t/", "t/a"}, root(), func(d *disk) {
			d.mv("t/a", "t/b")
			d.until("a and b", func(c Change) bool {
				return slices.Contains(c.Paths, d.at("t/a")) && slices.Contains(c.Paths, d.at("t/b"))
			})
		}},
		{"save by rename", []string{"t/", "t/a"}, root(), func(d *disk) {
			for range 3 {
				d.put("t/.a.swp")
				d.mv("t/.a.swp", "t/a")
				d.dirty("t/a")
			}
		}},
		{"changed mode", []string{"t/", "t/a"}, root(), func(d *disk) {
			d.must(os.Chmod(d.at("t/a"), 0o644))
			d.dirty("t/a")
		}},
		{"nested new directories", []string{"t/"}, root(), func(d *disk) {
			d.put("t/a/b/c/")
			d.rescan()
			d.sees("t/a/b/c/x")
		}},
		{"moved-in directory", []string{"t/", "new/sub/", "new/sub/a"}, root(), func(d *disk) {
			d.mv("new", "t/new")
			d.rescan()
			d.sees("t/new/sub/a")
		}},
		{"renamed directory", []string{"t/a/sub/", "t/a/sub/x"}, root(), func(d *disk) {
			d.mv("t/a", "t/b")
			d.rescan()
			d.sees("t/b/sub/x")
		}},
		{"swapped directories", []string{"t/a/sub/", "t/a/sub/x", "t/c/sub/", "t/c/sub/y"}, root(), func(d *disk) {
			d.mv("t/a", "t/b")
			d.mv("t/c", "t/a")
			d.mv("t/b", "t/c")
			d.rescan()
			d.sees("t/a/sub/y")
			d.sees("t/c/sub/x")
		}},
		{"recreated directory", []string{"t/a/", "t/a/x"}, root(), func(d *disk) {
			for range 3 {
				d.rm("t/a")
				d.put("t/a/")
				d.put("t/a/x")
				d.rescan()
				d.sees("t/a/x")
			}
		}},
		{"fast moves and removals", []string{"t/"}, root(), func(d *disk) {
			for i := range 200 {
				d.put(fmt.Sprintf("t/%d/sub/", i))
				d.mv(fmt.Sprintf("t/%d", i), fmt.Sprintf("t/%d-moved", i))
				d.rm(fmt.Sprintf("t/%d-moved", i))
			}
			d.rescan()
			d.sees("t/x")
		}},
		{"recreated root", []string{"t/", "t/a"}, root(), func(d *disk) {
			for range 3 {
				d.rm("t")
				d.rescan()
				d.put("t/")
				d.rescan()
				d.sees("t/a")
			}
		}},
		{"replaced root", []string{"t/", "t/a", "next/", "next/a"}, root(), func(d *disk) {
			d.mv("t", "old")
			d.mv("next", "t")
			d.rescan()
			d.sees("t/a")
		}},
		{"missing root and parent", nil, Options{Roots: []string{"x/y/t"}}, func(d *disk) {
			d.put("x/y/t/sub/")
			d.rescan()
			d.sees("x/y/t/sub/a")
		}},
		{"parent renamed and restored", []string{"x/t/"}, Options{Roots: []string{"x/t"}}, func(d *disk) {
			d.mv("x", "y")
			d.rescan()
			d.mv("y", "x")
			d.rescan()
			d.sees("x/t/a")
		}},
		{"grandparent renamed", []string{"w/x/t/"}, Options{Roots: []string{"w/x/t"}}, func(d *disk) {
			d.mv("w", "v")
			d.put("w/x/t/")
			d.rescan()
			d.sees("w/x/t/a")
		}},
		{"root is a link", []string{"v1/", "v1/a", "t -> v1"}, root(), func(d *disk) {
			d.sees("t/a")
		}},
		{"root link changed", []string{"v1/", "v1/a", "v2/", "v2/a", "t -> v1"}, root(), func(d *disk) {
			d.put("t2 -> v2")
			d.mv("t2", "t")
			d.rescan()
			d.sees("t/a")
		}},
		{"link in a chain changed", []string{"r1/t/", "r2/t/", "current -> r1", "t -> current/t"}, root(), func(d *disk) {
			d.put("c2 -> r2")
			d.mv("c2", "current")
			d.rescan()
			d.sees("t/a")
		}},
		{"two roots to one directory", []string{"v1/", "t -> v1", "u -> v1"}, Options{Roots: []string{"t", "u"}}, func(d *disk) {
			d.put("v1/a")
			d.until("t/a and u/a", func(c Change) bool {
				return slices.Contains(c.Paths, d.at("t/a")) && slices.Contains(c.Paths, d.at("u/a"))
			})
		}},
		{"ConfigMap swap", []string{"t/..v1/", "t/..v1/a", "t/..data -> ..v1", "t/a -> ..data/a"}, root(), func(d *disk) {
			d.put("t/..v2/")
			d.put("t/..v2/a")
			d.put("t/..data_tmp -> ..v2")
			d.mv("t/..data_tmp", "t/..data")
			d.until("..data", func(c Change) bool { return c.Rescan && slices.Contains(c.Paths, d.at("t/..data")) })
			d.rm("t/..v1")
			d.rescan()
		}},
		{"ConfigMap swap back", []string{"t/..v1/", "t/..v2/", "t/..data -> ..v1"}, root(), func(d *disk) {
			d.put("t/..data_tmp -> ..v2")
			d.mv("t/..data_tmp", "t/..data")
			d.rescan()
		}},
		{"single file", []string{"c/", "c/f"}, Options{Files: []string{"c/f"}}, func(d *disk) {
			d.sees("c/f")
			d.put("c/f~")
			d.mv("c/f~", "c/f")
			d.dirty("c/f")
			d.sees("c/f")
			d.rm("c/f")
			d.dirty("c/f")
			d.sees("c/f")
		}},
		{"missing single file and parent", nil, Options{Files: []string{"c/f"}}, func(d *disk) {
			d.put("c/")
			d.dirty("c/f")
			d.sees("c/f")
		}},
		{"glob", []string{"c/", "c/old.v"}, Options{Globs: []string{"c/*.v"}}, func(d *disk) {
			d.sees("c/old.v")
			d.put("c/new.v")
			d.dirty("c/new.v")
			d.sees("c/new.v")
			d.mv("c/new.v", "c/newer.v")
			d.dirty("c/newer.v")
			d.rm("c/old.v")
			d.dirty("c/old.v")
		}},
		{"glob in missing directory", nil, Options{Globs: []string{"c/*.v"}}, func(d *disk) {
			d.put("c/")
			d.put("c/a.v")
			d.rescan()
			d.sees("c/a.v")
		}},
		{"glob link in swapped directory", []string{"c/..v1/", "c/..v2/", "c/..data -> ..v1"}, Options{Globs: []string{"c/*.v"}}, func(d *disk) {
			d.put("c/..v1/a.v")
			d.put("c/a.v -> ..data/a.v")
			d.rescan()
			d.sees("c/a.v")
			d.put("c/..v2/a.v")
			d.put("c/..data_tmp -> ..v2")
			d.mv("c/..data_tmp", "c/..data")
			d.rescan()
			d.sees("c/a.v")
		}},
		{"file link in swapped directory", []string{"c/..v1/", "c/..v1/f", "c/..v2/", "c/..v2/f", "c/..data -> ..v1", "c/f -> ..data/f"}, Options{Files: []string{"c/f"}}, func(d *disk) {
			d.put("c/..data_tmp -> ..v2")
			d.mv("c/..data_tmp", "c/..data")
			d.dirty("c/f")
			d.must(os.WriteFile(d.at("c/..v2/f"), []byte("again"), 0o600))
			d.dirty("c/f")
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(watchDisk(t, r.layout, r.watch))
		})
	}
}

func TestWatcher_largeCheckout(t *testing.T) {
	d := watchDisk(t, []string{"t/"}, Options{Roots: []string{"t"}})
	missing := map[string]bool{}
	for i := range 1000 {
		path := fmt.Sprintf("t/%d/%d.hcl", i%20, i)
		d.must(os.MkdirAll(filepath.Dir(d.at(path)), 0o700))
		d.put(path)
		missing[d.at(path)] = true
	}
	d.until("the last of the files", func(c Change) bool {
		for _, path := range c.Paths {
			delete(missing, path)
		}
		return c.Rescan || len(missing) == 0
	})
}

func TestWatcher_changeBeforeRun(t *testing.T) {
	dir := t.TempDir()
	w, err := New(Options{Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "x")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	select {
	case c := <-w.Changes():
		if !slices.Contains(c.Paths, filepath.Join(dir, "a")) {
			t.Errorf("change is %v", c)
		}
	case <-time.After(patience):
		t.Error("the change was not reported")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
