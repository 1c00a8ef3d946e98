package audit

import (
	"path/filepath"
	"sync"
	"testing"
)

// TestALogIsGoodWhileItIsWritten verifies a log over and over while files are
// put aside and removed under its hands.
func TestALogIsGoodWhileItIsWritten(t *testing.T) {
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
