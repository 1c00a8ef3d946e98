//go:build unix

package files

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// A directory and a link alternate under one name while files below it are read, written and
// removed.
func TestRace_directoryToLink(t *testing.T) {
	const tries, turns = 3000, 1000
	l := newLab(t)
	l.put("logs/d/app.log", "inside")
	before := l.outside()
	name, aside := filepath.Join(l.root, "d"), filepath.Join(l.root, "aside")
	var tried, turned atomic.Int64
	var broken atomic.Bool
	over := func() bool { return broken.Load() || tried.Load() >= tries && turned.Load() >= turns }
	var all sync.WaitGroup
	all.Go(func() {
		for !over() {
			err := errors.Join(os.Rename(name, aside), os.Symlink("../logs-evil", name), os.Remove(name), os.Rename(aside, name))
			if err != nil {
				broken.Store(true)
				t.Error(err)
			}
			turned.Add(1)
		}
	})
	for range 2 {
		all.Go(func() {
			folder := Open(l.folder.Grant)
			for !over() {
				folder.used = 0
				for method, rest := range operations {
					paths := []string{"d/app.log", "d/new.txt", "d/secret.txt"}
					if method == "list" || method == "stat" {
						paths = append(paths, "d") // a writer would take the name while it is free
					}
					for _, path := range paths {
						answer, _ := l.broker.Do(t.Context(), folder, method, []byte(at(path, rest)))
						if strings.Contains(string(answer), canary) {
							t.Errorf("%s %s: %s", method, path, answer)
						}
						tried.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	if l.outside() != before {
		t.Error("files outside have changed")
	}
}

// swap calls change between the check of a file and its opening.
func swap(root *openedRoot, change func()) func(*Operation, fs.FileInfo) error {
	looked := false
	return func(q *Operation, info fs.FileInfo) error {
		err := root.checkRegular(q, info)
		if !looked {
			looked = true
			change()
		}
		return err
	}
}

func TestRace_fileReplaced(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(l *lab, file string)
		want string
	}{
		{"a link that leads out", func(l *lab, file string) { l.must(os.Symlink("../secret.txt", file)) }, "UNAVAILABLE: app.log: the file cannot be used now"},
		{"a link within", func(l *lab, file string) { l.must(os.Symlink("sub/deep.txt", file)) }, "UNAVAILABLE: app.log: another file now has its name; try again"},
		{"another file", func(l *lab, _ string) { l.put("logs/app.log", "other") }, "UNAVAILABLE: app.log: another file now has its name; try again"},
		{"a hard link", func(l *lab, file string) { l.must(os.Link(filepath.Join(l.top, "secret.txt"), file)) }, "DENIED: app.log: the file has a second hard link"},
		{"a pipe", func(l *lab, file string) { l.must(syscall.Mkfifo(file, 0o600)) }, "DENIED: app.log: it is not a regular file"},
		{"a folder", func(l *lab, file string) { l.must(os.Mkdir(file, 0o700)) }, "DENIED: app.log: it is a folder"},
		{"nothing", func(*lab, string) {}, "NOT_FOUND: app.log: the file or directory does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			root, err := openRoot(l.folder.Grant)
			l.must(err)
			defer root.Close()
			q, err := l.folder.Parse("readText", []byte(at("app.log")))
			l.must(err)
			file := filepath.Join(l.root, "app.log")
			// The file is kept, so that its inode number is not reused.
			_, _, err = root.open(q, openNonBlocking, swap(root, func() { l.must(os.Rename(file, filepath.Join(l.top, "kept"))); c.put(l, file) }))
			if got := l.outcome(nil, explain(t.Context(), q.given, err)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The open file has no name then.
func TestRead_replacedFile(t *testing.T) {
	l := newLab(t)
	root, err := openRoot(l.folder.Grant)
	l.must(err)
	defer root.Close()
	q, err := l.folder.Parse("readText", []byte(at("app.log")))
	l.must(err)
	file, err := os.Open(filepath.Join(l.root, "app.log"))
	l.must(err)
	defer file.Close()
	l.must(os.Rename(filepath.Join(l.root, "sub", "deep.txt"), file.Name()))
	info, err := file.Stat()
	l.must(err)
	if err := root.checkRegular(q, info); err != nil {
		t.Error(err)
	}
}

func TestRead_pipe(t *testing.T) {
	l := newLab(t)
	l.must(syscall.Mkfifo(filepath.Join(l.root, "pipe"), 0o600))
	short := filepath.Join(l.root, "s")
	if socket, err := net.Listen("unix", short); err == nil {
		defer socket.Close()
	} else {
		t.Logf("no socket could be made: %v", err)
		l.must(syscall.Mkfifo(short, 0o600))
	}
	for _, name := range []string{"pipe", "s"} {
		t.Run(name, func(*testing.T) { refusedAtOnce(l, name) })
	}
	t.Run("a device", func(t *testing.T) {
		if err := syscall.Mknod(filepath.Join(l.root, "zero"), syscall.S_IFCHR|0o600, 1<<8|5); err != nil {
			t.Skip("SKIPPED WITHOUT A DEVICE: only root can make one, and not everywhere: ", err)
		}
		refusedAtOnce(l, "zero")
	})
}

// refusedAtOnce tries all operations on something that is neither file nor directory.
func refusedAtOnce(l *lab, name string) {
	l.Helper()
	for method, rest := range operations {
		want := "DENIED: " + name + ": it is not a regular file"
		switch method {
		case "list":
			want = "NOT_FOUND: " + name + ": the directory does not exist"
		case "stat":
			if d := answerOf[statAnswer](l, l.do(method, at(name))); d.Type != typeOther || d.Size != 0 {
				l.Errorf("stat %s: %+v", name, d)
			}
			continue
		}
		if got := l.do(method, at(name, rest)); got != want {
			l.Errorf("%s: got %s, want %s", method, got, want)
		}
	}
}

func TestRead_otherFileSystem(t *testing.T) {
	l := newLab(t)
	root, err := openRoot(l.folder.Grant)
	l.must(err)
	defer root.Close()
	root.device++
	for _, path := range []string{"app.log", "sub/deep.txt"} {
		q, err := l.folder.Parse("readText", []byte(at(path)))
		l.must(err)
		_, _, err = root.open(q, openNonBlocking, root.checkRegular)
		if got, want := l.outcome(nil, err), "DENIED: "+path+": it is on another file system than the root"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOpenRoot_moved(t *testing.T) {
	for name, c := range map[string]struct {
		move func(l *lab)
		want string
	}{
		"it is gone":                {func(l *lab) { l.must(os.RemoveAll(l.root)) }, "NOT_FOUND: the root of the grant does not exist"},
		"it is a link":              {func(l *lab) { l.must(os.RemoveAll(l.root)); l.must(os.Symlink("logs-evil", l.root)) }, "DENIED: the root of the grant is not a directory, or is a link"},
		"it is a file":              {func(l *lab) { l.must(os.RemoveAll(l.root)); l.put("logs", "x") }, "DENIED: the root of the grant is not a directory, or is a link"},
		"it is a pipe":              {func(l *lab) { l.must(os.RemoveAll(l.root)); l.must(syscall.Mkfifo(l.root, 0o600)) }, "DENIED: the root of the grant is not a directory, or is a link"},
		"a link leads there":        {func(l *lab) { l.must(os.Rename(l.top, l.top+"-2")); l.must(os.Symlink(l.top+"-2", l.top)) }, "DENIED: the root of the grant has moved since the tools were loaded"},
		"it was never on this disk": {func(l *lab) { l.folder.Grant.ResolvedPath = "" }, "NOT_FOUND: the root of the grant does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.top = filepath.Join(l.top, "deeper")
			l.root = filepath.Join(l.top, "logs")
			l.put("logs/app.log", "inside")
			l.put("logs-evil/app.log", canary)
			l.folder.Grant.Root, l.folder.Grant.ResolvedPath = l.root, l.root
			c.move(l)
			if got := l.do("readText", at("app.log")); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
