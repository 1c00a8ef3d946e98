package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reopened opens and closes a log.
func reopened(t *testing.T, o Options) {
	t.Helper()
	if err := opened(t, o).Close(); err != nil {
		t.Fatal(err)
	}
}

// told returns the events of a log.
func told(t *testing.T, path string) (events []string) {
	t.Helper()
	if err := Tail(path, MaxTail, func(l *Line) error {
		if name := l.text("event.name"); name != "" {
			events = append(events, name+" "+cell(l.member("attributes")))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return events
}

func TestOpen_tornLine(t *testing.T) {
	path := written(t, 3, 0)
	edit(t, path, func(l [][]byte) [][]byte { return append(l, []byte(`{"seq":4,"pr`)) })
	if r := verified(t, path); len(r.Findings) > 0 || r.Unfinished != 12 {
		t.Errorf("%+v", r)
	}
	reopened(t, Options{Path: path})
	if r := verified(t, path); len(r.Findings) > 0 || r.Unfinished != 0 || r.Last != 4 {
		t.Errorf("%+v", r)
	}
	want := []string{fmt.Sprintf(`audit.torn {"bytes":"12","sha256":"%x"}`, sha256.Sum256([]byte(`{"seq":4,"pr`)))}
	if diff := cmp.Diff(want, told(t, path)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestVerify_truncationBeforeReopen(t *testing.T) {
	path := written(t, 5, 0)
	edit(t, path, func(l [][]byte) [][]byte { return l[:3] })
	reopened(t, Options{Path: path})
	want := []string{
		"audit.jsonl:4: records 4 to 5 are missing before this line",
		"audit.jsonl:4: lines or the head were missing when the log was opened here",
	}
	if diff := cmp.Diff(want, found(verified(t, path))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOpen_foreignLastLine(t *testing.T) {
	path := written(t, 3, 0)
	edit(t, path, func(l [][]byte) [][]byte { return append(l, []byte("a foreign line\n")) })
	reopened(t, Options{Path: path})
	want := []string{"audit.jsonl:4: the line was changed, or was not written with this key"}
	if diff := cmp.Diff(want, found(verified(t, path))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOpen_errors(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		options Options
		want    string
	}{
		{"twice", func(t *testing.T, path string) {
			l := opened(t, Options{Path: path})
			t.Cleanup(func() { _ = l.Close() })
		}, Options{}, "it is in use by another process"},
		{"another key", func(t *testing.T, path string) { writeKey(t, path, 'x', keySize) }, Options{}, "was written with this key"},
		{"short key", func(t *testing.T, path string) { writeKey(t, path, 'x', 1) }, Options{}, "does not hold a key"},
		{"missing key", func(t *testing.T, path string) {
			if err := os.Remove(keyPath(path)); err != nil {
				t.Fatal(err)
			}
		}, Options{}, "the key of the log is missing"},
		{"unknown mode", func(*testing.T, string) {}, Options{Mode: "lax"}, `unknown mode "lax"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := written(t, 2, 0)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			row.prepare(t, path)
			row.options.Path = path
			if _, err := Open(row.options); err == nil || !strings.Contains(err.Error(), row.want) || errors.Is(err, ErrInUse) != (row.name == "twice") {
				t.Errorf("%v", err)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the log was changed; %v", err)
			}
		})
	}
}

func TestRetention(t *testing.T) {
	for _, row := range []struct {
		name string
		keep Retention
		want int
	}{
		{"all", Retention{Files: 100}, 9},
		{"three", Retention{Files: 3}, 3},
		{"one hour", Retention{Files: 100, Age: time.Hour}, 0},
		{"one day", Retention{Files: 100, Age: 24 * time.Hour}, 9},
		{"by size", Retention{Files: 100, Bytes: 5000}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := written(t, 10, 1)
			reopened(t, Options{Path: path, Keep: row.keep, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }, MaxSize: 1 << 20})
			old, err := listSegments(path)
			if err != nil {
				t.Fatal(err)
			}
			if r := verified(t, path); len(r.Findings) > 0 || len(old) != row.want {
				t.Errorf("%d files remain, want %d; %v", len(old), row.want, r.Findings)
			}
		})
	}
}

func TestLog_closed(t *testing.T) {
	l := opened(t, Options{Path: filepath.Join(t.TempDir(), "a.jsonl")})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Outcome(refund()); err != ErrClosed {
		t.Errorf("%v", err)
	}
}

func TestCheck_createsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the paths need Linux, not " + runtime.GOOS)
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path, want string
		user       bool // a directory that only root can enter
	}{
		{"/proc/nope/a.jsonl", "cannot create files in /proc, a kernel file system", false},
		{"/sys/a.jsonl", "cannot create files in /sys, a kernel file system", false},
		{filepath.Join(closed, "a.jsonl"), "permission denied", true},
		{filepath.Join(closed, "b/c/a.jsonl"), "permission denied", true},
	} {
		if row.user && os.Getuid() == 0 {
			continue
		}
		if err := Check(row.path); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.path, err)
		}
	}
	free := t.TempDir()
	if err := Check(filepath.Join(free, "a/b/c.jsonl")); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(free)
	if diff := cmp.Diff(0, len(left)); err != nil || diff != "" {
		t.Errorf("%v, created files (-want +got)\n%s", err, diff)
	}
}

// Sync rejects a file that cannot be durable.
func TestSync_calls(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := (osFile{w}).sync(); err == nil {
		t.Error("a pipe counts as synced")
	}
}

// panickingDisk panics when a file is opened.
type panickingDisk struct{ disk }

func (panickingDisk) open(string, int) (file, error) { panic("a bug") }

func TestOpen_panicReleasesLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Open did not panic")
			}
		}()
		_, _ = Open(Options{Path: path, disk: panickingDisk{}})
	}()
	l, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
