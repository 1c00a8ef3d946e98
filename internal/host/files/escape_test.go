//go:build unix

package files

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// answered reports whether an answer is allowed for a hostile path: the root's own stat and
// list, and the stat of something that is not a file or directory. Any other answer is an
// escape.
func (l *lab) answered(method, path, answer string) bool {
	switch {
	case path == "." && method == "stat":
		return answerOf[statAnswer](l, answer).Type == typeFolder
	case path == "." && method == "list":
		for _, e := range answerOf[listAnswer](l, answer).Entries {
			if _, err := os.Lstat(filepath.Join(l.root, e.Name)); err != nil {
				return false
			}
		}
		return true
	case method == "stat" && slices.Contains([]string{
		"link-secret", "link-passwd", "link-evil", "sub/link-secret", "link-loop", "link-nowhere", "pipe", "socket",
	}, path):
		d := answerOf[statAnswer](l, answer)
		return d.Type == typeOther && d.Size == 0
	}
	return false
}

// written reports whether a hostile path was just an odd file name in the root, and removes the
// file.
func (l *lab) written(path string) bool {
	l.Helper()
	file := filepath.Join(l.root, path)
	info, err := os.Lstat(file)
	if strings.Contains(path, "/") || err != nil || !info.Mode().IsRegular() {
		return false
	}
	content, err := os.ReadFile(file)
	l.must(err)
	l.must(os.Remove(file))
	return string(content) == "gotcha"
}

func TestParsePath_outsideRoot(t *testing.T) {
	l := newLab(t)
	l.plant()
	paths := l.hostilePaths()
	if len(paths) < 400 {
		t.Fatalf("there are %d paths", len(paths))
	}
	before, refusals, odd := l.files(), 0, 0
	for _, path := range paths {
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			l.folder.used = 0
			answer := l.do(method, at(path, operations[method]))
			told := strings.ReplaceAll(answer, path, "")
			switch code, _, _ := strings.Cut(answer, ":"); {
			case strings.Contains(told, canary) || strings.Contains(told, "root:"):
				t.Errorf("%s %q: %.300s", method, path, answer)
			case slices.Contains([]string{scripting.Invalid, scripting.OutsideRoot, scripting.NotFound, scripting.Denied}, code):
				refusals++
			case strings.HasPrefix(method, "write") && answer == "{}" && l.written(path):
				odd++
			case !l.answered(method, path, answer):
				t.Errorf("%s %q is accepted: %.300s", method, path, answer)
			}
		}
		if l.files() != before {
			t.Fatalf("%q changed files outside", path)
		}
	}
	t.Logf("%d paths, %d operations each, %d refusals, %d files written by odd names", len(paths), len(operations), refusals, odd)
}

// Creating a device needs privileges; opening one does not.
func TestRead_device(t *testing.T) {
	l := newLab(t)
	opened, err := openRoot(l.folder.Grant)
	l.must(err)
	defer opened.Close()
	q, err := l.folder.Parse("readText", []byte(at("zero")))
	l.must(err)
	for _, device := range []string{"/dev/zero", "/dev/null", "/dev/tty"} {
		info, err := os.Lstat(device)
		if err != nil {
			t.Logf("NOT TRIED: %v", err)
			continue
		}
		opened.device = deviceOf(info) // as if it were in the root
		if got, want := l.outcome(nil, opened.checkRegular(q, info)), "DENIED: zero: it is not a regular file"; got != want {
			t.Errorf("%s: got %s, want %s", device, got, want)
		}
		if got, want := l.outcome(nil, opened.checkDir(q, info)), "NOT_FOUND: zero: the directory does not exist"; got != want {
			t.Errorf("%s as a folder: got %s, want %s", device, got, want)
		}
		if got := typeOf(info.Mode()); got != typeOther {
			t.Errorf("%s is of the type %s", device, got)
		}
	}
}
