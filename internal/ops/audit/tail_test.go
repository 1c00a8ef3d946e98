package audit

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
)

// Rotates with every record.
func TestFollow_rotations(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "audit.jsonl")
	l := opened(t, Options{Path: path, Mode: Strict, MaxSize: 1, Keep: Retention{Files: 1000}})
	const records = 100
	ended := make(chan error)
	var seen []uint64
	w := &tailFollower{path: path, visit: func(l *Line) error { seen = append(seen, l.Seq); return nil }}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if err := w.poll(); err != nil {
				ended <- err
				return
			}
		}
		ended <- w.poll()
	}()
	for range records {
		if err := l.Outcome(refund()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	for i, seq := range seen {
		if seq != uint64(i+1) {
			t.Fatalf("record %d is at position %d", seq, i+1)
		}
	}
	if len(seen) != records {
		t.Errorf("%d of %d records visited", len(seen), records)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Verifies a log repeatedly while files are rotated and removed.
func TestVerify_duringWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := opened(t, Options{Path: path, MaxSize: 3000, Keep: Retention{Files: 3}})
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := l.Outcome(refund()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20 {
		if r := verified(t, path); len(r.Findings) > 0 {
			t.Errorf("%v", r.Findings)
			break
		}
	}
	close(stop)
	writer.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
