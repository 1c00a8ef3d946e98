package audit

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// together starts callers that write a record each, and returns when all are waiting or
// done.
func together(l *Log, callers int) (answers chan error) {
	answers = make(chan error, callers)
	for range callers {
		go func() { answers <- l.Outcome(refund()) }()
	}
	synctest.Wait()
	return answers
}

// all returns the errors of all callers.
func all(answers chan error) (err error) {
	for range cap(answers) {
		err = errors.Join(err, <-answers)
	}
	return err
}

func TestLog_groupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{}
		l := opened(t, Options{Path: filepath.Join(t.TempDir(), "a.jsonl"), Mode: Strict, disk: d})
		before := l.stats().Syncs
		release := d.holding()
		first := together(l, 1)
		rest := together(l, 50)
		release()
		if err := errors.Join(all(first), all(rest)); err != nil {
			t.Fatal(err)
		}
		if s := l.stats(); s.Syncs-before != 2 || s.Records != 51 {
			t.Errorf("%+v", s)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLog_queueBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		d := &faultyDisk{}
		l := opened(t, Options{Path: path, Queue: 2, disk: d})
		release := d.holding()
		if err := all(together(l, 1)); err != nil {
			t.Fatal(err)
		}
		answers := together(l, 5)
		if s := l.stats(); len(answers) != 2 || s.Waited != 3 {
			t.Errorf("%d callers returned, %+v", len(answers), s)
		}
		release()
		if err := errors.Join(all(answers), l.Close()); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, path); r.Records != 6 || len(r.Findings) > 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestRelaxed_recordsLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		d := &faultyDisk{}
		l := opened(t, Options{Path: path, Queue: 100, disk: d})
		d.set("write", 1, math.MaxInt/2)
		const records = 5000
		for range records {
			if err := l.Outcome(refund()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		lost := l.stats().Lost
		if lost == 0 {
			t.Fatal("no record was dropped")
		}
		d.set("", 0, 0)
		time.Sleep(time.Minute)
		if err := errors.Join(l.Outcome(refund()), l.Close()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{fmt.Sprintf(`audit.lost {"records":"%d"}`, lost)}, told(t, path)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if r := verified(t, path); r.Records != records+2-lost || len(r.Findings) > 0 {
			t.Errorf("%d lost, %+v", lost, r)
		}
	})
}

func TestStrict_refusesOnDiskFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		d := &faultyDisk{}
		l := opened(t, Options{Path: path, Mode: Strict, disk: d})
		d.set("sync", 1, math.MaxInt/2)
		for range 3 {
			if err := l.Intent(refund()); !errors.Is(err, errInjected) {
				t.Fatal(err)
			}
		}
		d.set("", 0, 0)
		if err := errors.Join(l.Intent(refund()), l.Close()); err != nil {
			t.Fatal(err)
		}
		if r := verified(t, path); r.Records != 2 || len(r.Findings) > 0 {
			t.Errorf("%+v", r)
		}
		if diff := cmp.Diff([]string{`audit.refused {"records":"3"}`}, told(t, path)); diff != "" {
			t.Errorf("events (-want +got)\n%s", diff)
		}
	})
}
