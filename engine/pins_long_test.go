package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
)

// A deep schema with many items is short in a list, but long in the lock file.
func TestPins_manyTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: much text, and no more goroutines than a small list has")
	}
	schema := strings.Repeat("[", 55) + strings.Repeat("0,", 48_900) + "1" + strings.Repeat("]", 55)
	var tools []string
	for i := range 3 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object","properties":{"a":{"enum":%s}}}}`, i, schema))
	}
	up, lock := newChangingUpstream(t, "read"), newLock(t)
	greedy := upstreamNamed("greedy", newRawUpstream(t, strings.Join(tools, ",")))
	config := upstreamAt(up.url) + greedy
	s := pinnedServer(t, lock, config)
	if diff := cmp.Diff([]string{"lab read cfff"}, accepted(t, lock)); diff != "" {
		t.Errorf("the lock file (-want +got)\n%s", diff)
	}
	// The load waits 5 s for upstream servers, which a list of this length can exceed with
	// the race detector.
	waitForSnapshot(t, s, func() bool { return s.Status().Upstreams[1].NotServed > 0 })
	status := s.Status().Upstreams[1]
	if want := "tool greedy_t0: it cannot be accepted: read definition: it would take more than 256 KiB of mcpd.lock"; status.NotServed != 3 || status.LeftOut[0] != want || status.LockErr != nil {
		t.Errorf("%d are left out, %q, %v", status.NotServed, status.LeftOut, status.LockErr)
	}
	up.add("read", other)
	if got := names(pinnedServer(t, lock, config)); len(got) > 0 {
		t.Errorf("after a restart %q are served", got)
	}
}

// A read-only program does not audit pins.
func TestPins_readOnlyNotAudited(t *testing.T) {
	var said logBuffer
	server(t, engine.Options{Files: engine.Files{Config: files("mcpd.hcl", upstreamAt(newChangingUpstream(t, "read").url)), LockPath: newLock(t)}, Mode: engine.ReadOnly, Logger: said.logger()})
	if log := said.String(); strings.Contains(log, "pin upstream tools") || strings.Contains(log, "write lock file") {
		t.Errorf("the log has\n%s", said.String())
	}
}
