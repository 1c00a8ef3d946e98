package engine_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
)

// TestWithoutItsLockFileAServerGoesOnWithWhatWasAccepted: of what a server changes meanwhile
// the same is told as ever, and a lazy one is left alone.
func TestWithoutItsLockFileAServerGoesOnWithWhatWasAccepted(t *testing.T) {
	up, shy, lock := newShifting(t, "read", "write"), newShifting(t, "read"), newLock(t)
	lazy := upstreamNamed("shy", shy.url, "lazy = true")
	pin(t, lock, upstreamAt(up.url)+lazy)
	var said logBuffer
	s := server(t, engine.Options{Config: files("mcpd.hcl", upstreamAt(up.url)+lazy), LockPath: lock, Logger: said.logger()})
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Fatal("a lock file that is gone is no mistake")
	}
	up.add("read", other)
	until(t, s, func() bool { return slices.Equal(names(s), []string{"lab_write", "shy_read"}) })
	if diff := cmp.Diff([]string{"lab_read"}, s.Status().Upstreams[0].Quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got)\n%s", diff)
	}
	if n := strings.Count(said.String(), "in quarantine until it is accepted"); n != 1 {
		t.Errorf("the log tells of it %d times:\n%s", n, said.String())
	}
	if !s.Status().Upstreams[1].Idle {
		t.Error("the lazy server is reached")
	}
	if got := called(t, s, tool("shy_read", `{}`)); got.Err != nil {
		t.Errorf("a call of it ends with %s", ended(got))
	}
}
