package audit

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Removes the last line from a copy of the log, as it is after a kill behind each call.
func TestHead_coversAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := opened(t, Options{Path: path, Mode: Strict, MaxSize: 4000})
	for range 5 {
		if err := l.Outcome(refund()); err != nil {
			t.Fatal(err)
		}
		left := filepath.Join(t.TempDir(), "left")
		if err := os.CopyFS(left, os.DirFS(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		killed := filepath.Join(left, filepath.Base(path))
		if err := os.Chmod(keyPath(killed), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, killed); len(r.Findings) > 0 {
			t.Fatal(r.Findings)
		}
		edit(t, killed, func(lines [][]byte) [][]byte { return lines[:len(lines)-2] })
		if r := verified(t, killed); len(r.Findings) == 0 {
			t.Errorf("missing record %d not found", r.Last+1)
		}
		reopened(t, Options{Path: killed, Mode: Strict})
		if r := verified(t, killed); len(r.Findings) == 0 {
			t.Errorf("after a start, the missing record is not found: %+v", r)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Records come faster than the interval.
func TestHead_intervalUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := opened(t, Options{Path: path, disk: &faultyDisk{}})
		for range 9 {
			if err := l.Outcome(refund()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		h, err := readHead(osDisk{}, path, newChain(l.keys.chain))
		if diff := cmp.Diff(uint64(8), h.last.seq); err != nil || diff != "" {
			t.Errorf("%v, last in the head (-want +got)\n%s", err, diff)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Records come faster than the retry interval.
func TestLog_retriesDiskUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{}
		l := opened(t, Options{Path: filepath.Join(t.TempDir(), "audit.jsonl"), disk: d})
		d.set("write", 1, 1)
		for range 5 {
			if err := l.Outcome(refund()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(firstRetry / 2)
		}
		synctest.Wait()
		if w := &l.writer; w.retry > 0 || len(w.spool.unsynced) > w.spool.written {
			t.Errorf("no retry")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// The log recovers, with a record of the refused calls, whether or not there is
// anything to write.
func TestStrict_recovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		d := &faultyDisk{}
		l := opened(t, Options{Path: path, Mode: Strict, disk: d})
		d.set("write", 1, 1<<30)
		for range 3 {
			if err := l.Outcome(refund()); err == nil || !l.Failing() {
				t.Fatalf("on a failing disk: %v, failing: %v", err, l.Failing())
			}
		}
		time.Sleep(time.Minute)
		if !l.Failing() {
			t.Error("the disk fails, but log: not failing")
		}
		d.set("", 0, 0)
		time.Sleep(lastRetry)
		synctest.Wait()
		if l.Failing() {
			t.Error("the disk works, but log: failing")
		}
		if err := l.Outcome(refund()); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{`audit.refused {"records":"3"}`}, told(t, path)); diff != "" {
			t.Errorf("events (-want +got)\n%s", diff)
		}
		if r := verified(t, path); len(r.Findings) > 0 {
			t.Error(r.Findings)
		}
	})
}
