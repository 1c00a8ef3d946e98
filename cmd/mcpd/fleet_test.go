//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

func TestFleetRow_summary(t *testing.T) {
	alive := func(revision string) fleetReplica {
		return fleetReplica{State: replicaAlive, ReplicaInfo: state.ReplicaInfo{Version: "1", Revision: revision, Status: "healthy"}}
	}
	old, dead, draining, broken := fleetReplica{State: replicaAlive}, alive("r1"), alive("r1"), alive("r1")
	dead.State, draining.State, broken.Status = replicaDead, replicaDraining, "serving last good, 1 file broken"
	for _, row := range []struct {
		name     string
		replicas []fleetReplica
		summary  string
		healthy  bool
	}{
		{"one", []fleetReplica{alive("0123456789abcdef")}, "1 replica: all serve revision 0123456789ab", true},
		{"different", []fleetReplica{alive("r2"), alive("r1"), alive("r1")}, "3 replicas: 2 of 3 serve revision r1, 1 of 3 serve revision r2", false},
		{"dead", []fleetReplica{alive("r1"), dead, alive("r1")}, "3 replicas: all serve revision r1, 1 presumed dead", false},
		{"draining", []fleetReplica{alive("r1"), draining}, "2 replicas: all serve revision r1", false},
		{"unhealthy", []fleetReplica{alive("r1"), broken}, "2 replicas: all serve revision r1", false},
		{"older version", []fleetReplica{alive("r1"), old}, "2 replicas: 1 of 2 serve revision r1, 1 of 2 do not say what they serve", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := fleetState{Replicas: row.replicas}
			if r.summarize(); r.Summary != row.summary || r.Healthy != row.healthy {
				t.Errorf("got %q, healthy %v", r.Summary, r.Healthy)
			}
		})
	}
}

// verb runs a verb of mcpd in the directory of a replica.
func (r *replica) verb(args ...string) (stdout string, code int) {
	r.fleet.Helper()
	code, stdout, stderr := inProcess(r.fleet.T, r.dir, r.env, args...)
	if stderr != "" {
		r.fleet.Logf("mcpd %s: %s", strings.Join(args, " "), stderr)
	}
	return stdout, code
}

// fleetUntil asks a replica for the state of all until that is as wanted, and statusUntil for its own.
func (r *replica) fleetUntil(what string, wanted func(fleetState) bool) (fleetState, int) {
	return statusOf(r, what, wanted, "--fleet")
}

func (r *replica) statusUntil(what string, wanted func(statusResult) bool) (statusResult, int) {
	return statusOf(r, what, wanted)
}

func statusOf[T any](r *replica, what string, wanted func(T) bool, flags ...string) (row T, code int) {
	r.fleet.Helper()
	for until := time.Now().Add(patience); ; {
		var out string
		out, code = r.verb(append([]string{"status", "--json"}, flags...)...)
		row = *new(T)
		if err := json.Unmarshal([]byte(out), &row); err != nil {
			r.fleet.Fatalf("%v: %q", err, out)
		}
		if wanted(row) {
			return row, code
		}
		if time.Now().After(until) {
			r.fleet.Fatalf("%s: the state is %s", what, out)
		}
		time.Sleep(100 * time.Millisecond) // the interval of the poll
	}
}

// Three servers with a database: one serves other files, and one is killed. Their audit logs are merged.
func TestStatusFleet_threeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: a killed server is presumed dead after 10 s")
	}
	t.Parallel()
	const tool = "tool \"now\" {\n  timeout = \"30s\"\n  run     = \"return '%s'\"\n}\n" // the audit log writes to a busy disk
	f := newStoppedFleet(t, fmt.Sprintf(tool, "a"))
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range f.replicas {
		r.dir = t.TempDir()
		if err := os.Mkdir(filepath.Join(r.dir, "tools.d"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(r.dir, "mcpd.hcl"), fleetConfig+"audit {\n  path = \"audit/mcpd.jsonl\"\n  mode = \"strict\"\n}\n")
		write(filepath.Join(r.dir, "tools.d", "fleet.hcl"), fmt.Sprintf(tool, []string{"a", "a", "b"}[i]))
		r.start()
	}
	first := f.replicas[0]
	knows := func(n int) func(fleetState) bool {
		return func(row fleetState) bool {
			return len(row.Replicas) == n && !slices.ContainsFunc(row.Replicas, func(r fleetReplica) bool { return r.Revision == "" })
		}
	}
	row, code := first.fleetUntil("after the start", knows(3))
	if row.Healthy || code != exitFindings || !strings.HasPrefix(row.Summary, "3 replicas: 2 of 3 serve revision ") {
		t.Errorf("different files: exit code %d, %+v", code, row)
	}
	for _, one := range row.Replicas {
		if one.Version == "" || one.Status != "healthy" || one.State != replicaAlive || one.Started.IsZero() || one.Since.IsZero() || one.Host == "" {
			t.Errorf("%+v", one)
		}
	}
	if out, code := first.verb("status", "--fleet"); code != exitFindings || strings.Count(out, "\n") != 5 || !strings.Contains(out, "REVISION") || !strings.Contains(out, "2 of 3 serve revision") {
		t.Errorf("exit code %d, %s", code, out)
	}
	self := row.Replicas[slices.IndexFunc(row.Replicas, func(r fleetReplica) bool { return r.Self })]
	_, metrics, err := first.daemon.exchange("GET", "/metrics", nil, nil)
	if want := fmt.Sprintf("mcpd_replica_info{replica=%q} 1\n", self.ID); err != nil || !strings.Contains(string(metrics), want) || !strings.Contains(string(metrics), "\nmcpd_replica_heartbeat_age_seconds ") {
		t.Errorf("%v: the metrics lack %s", err, want)
	}

	// The third server gets the files of the others.
	write(filepath.Join(f.replicas[2].dir, "tools.d", "fleet.hcl"), fmt.Sprintf(tool, "a"))
	row, code = first.fleetUntil("after the copy", func(row fleetState) bool { return row.Healthy })
	if code != 0 || !strings.HasPrefix(row.Summary, "3 replicas: all serve revision ") {
		t.Errorf("equal files: exit code %d, %s", code, row.Summary)
	}
	for _, r := range f.replicas {
		for range 3 {
			if status, body, err := r.daemon.exchange("POST", "/mcp/execute", []byte(`{"tool":"now","arguments":{}}`), nil); err != nil || status != 200 {
				t.Fatalf("call: %v, %d %s", err, status, body)
			}
		}
	}

	f.replicas[1].stop(syscall.SIGKILL)
	late := false
	row, code = first.fleetUntil("after the kill", func(row fleetState) bool {
		for _, one := range row.Replicas {
			late = late || one.HeartbeatAge > 5
			if one.HeartbeatAge > 10.5 && one.State != replicaDead {
				t.Errorf("a replica without a heartbeat for %v s is %s", one.HeartbeatAge, one.State)
			}
		}
		return len(row.Replicas) == 2
	})
	if code != 0 || !late || !strings.HasPrefix(row.Summary, "2 replicas: all serve revision ") {
		t.Errorf("after the kill: exit code %d, late %v, %s", code, late, row.Summary)
	}
	for expect, want := range map[string]int{"1": 0, "2": 0, "3": exitFindings, "0": exitUsage} {
		if out, code := first.verb("status", "--fleet", "--expect", expect); code != want || code == exitFindings && !strings.Contains(out, "2 replicas: ") {
			t.Errorf("--expect %s: exit code %d, %s", expect, code, out)
		}
	}
	if out, code := first.verb("status", "--fleet", "--json", "--expect", "3"); code != exitFindings || !json.Valid([]byte(out)) {
		t.Errorf("--json --expect 3: exit code %d, %s", code, out)
	}
	if _, code := first.verb("status", "--expect", "2"); code != exitUsage {
		t.Errorf("--expect without --fleet: exit code %d", code)
	}
	f.replicas[1].start()
	f.stopAll()

	args := []string{"audit", "merge", "-o", filepath.Join(t.TempDir(), "fleet.jsonl")}
	for _, r := range f.replicas {
		args = append(args, filepath.Join(r.dir, "audit"))
	}
	if _, code := first.verb(args...); code != 0 {
		t.Fatalf("merge ended with exit code %d", code)
	}
	text, err := os.ReadFile(args[3])
	if err != nil {
		t.Fatal(err)
	}
	outcomes, last := map[string]int{}, time.Time{}
	for line := range strings.Lines(string(text)) {
		var record struct {
			Log, Kind string
			Time      time.Time
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record.Time.Before(last) {
			t.Errorf("%s after %v", line, last)
		}
		if last = record.Time; record.Kind == "outcome" {
			outcomes[record.Log]++
		}
	}
	for _, r := range f.replicas {
		if n := outcomes[filepath.Join(r.dir, "audit", "mcpd.jsonl")]; n != 3 {
			t.Errorf("%s has %d outcomes, want 3", r.name, n)
		}
	}
}

// A server that lost its database says so, and stays ready: calls that need no state continue.
func TestStatus_databaseAway(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it starts three servers and a database")
	}
	t.Parallel()
	f := newFleet(t, `tool "now" { run = "return 'now'" }`)
	cut, other := f.replicas[0], f.replicas[1]
	ready := func(status string) {
		t.Helper()
		code, body, err := cut.daemon.exchange("GET", "/readyz", nil, nil)
		var row struct {
			Ready  bool
			Status string
		}
		if err == nil {
			err = json.Unmarshal(body, &row)
		}
		if err != nil || code != 200 || !row.Ready || row.Status != status {
			t.Errorf("%v, /readyz: %d %s", err, code, body)
		}
	}
	row, code := cut.statusUntil("at the start", func(row statusResult) bool { return row.State != nil && !row.State.Away })
	if code != 0 || row.State.Error != "" || row.State.Heartbeat.IsZero() || row.State.Database != cut.link.listener.Addr().String()+"/postgres" {
		t.Errorf("exit code %d, %+v", code, row.State)
	}
	cut.link.cut()
	row, code = cut.statusUntil("without the database", func(row statusResult) bool { return row.State.Away })
	if code != exitFindings || row.Status != "the state database is away" || !row.Ready || row.State.Error == "" || row.State.Heartbeat.After(time.Now()) {
		t.Errorf("exit code %d, %q, %+v", code, row.Status, row.State)
	}
	out, code := cut.verb("status")
	for _, part := range []string{"status       the state database is away", "is away for ", "since " + row.State.Heartbeat.Local().Format("2006-01-02"), "all others continue"} {
		if code != exitFindings || !strings.Contains(out, part) {
			t.Errorf("exit code %d, no %q in %s", code, part, out)
		}
	}
	ready("the state database is away")
	if status, body, err := cut.daemon.exchange("POST", "/mcp/execute", []byte(`{"tool":"now","arguments":{}}`), nil); err != nil || status != 200 {
		t.Errorf("a call without state: %v, %d %s", err, status, body)
	}
	if row, code := other.statusUntil("at another replica", func(statusResult) bool { return true }); code != 0 || row.State.Away {
		t.Errorf("exit code %d, %+v", code, row.State)
	}
	cut.link.restore()
	if _, code := cut.statusUntil("after the return", func(row statusResult) bool { return !row.State.Away }); code != 0 {
		t.Errorf("exit code %d", code)
	}
	ready("healthy")
	f.stopAll()
}

// Two servers with files of their own: an upstream server changes a tool, and each needs a lock file that accepts it.
func TestStatusFleet_differentLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: starts processes for three servers and an upstream")
	}
	t.Parallel()
	f := newFleet(t, `tool "now" { run = "return 1" }`)
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const find = "tool \"find\" {\n  description = \"Finds a customer%s.\"\n  run = \"return 'Ada'\"\n}\n"
	upstream := fmt.Sprintf(`
upstream "crm" {
  command = [%q, "serve", "--stdio", "--tools", "crm/tools.d", "--config", "crm/mcpd.hcl", "--state", "memory", "--control", "off"]
}
`, f.program)
	f.replicas[2].stop(syscall.SIGTERM)
	both := f.replicas[:2]
	for _, r := range both {
		r.stop(syscall.SIGTERM)
		r.dir = t.TempDir()
		write(filepath.Join(r.dir, "mcpd.hcl"), fleetConfig+upstream)
		write(filepath.Join(r.dir, "tools.d", "fleet.hcl"), `tool "now" { run = "return 1" }`)
		write(filepath.Join(r.dir, "crm", "mcpd.hcl"), `server { name = "crm" }`)
		write(filepath.Join(r.dir, "crm", "tools.d", "crm.hcl"), fmt.Sprintf(find, ""))
		r.start()
	}
	a, b := both[0], both[1]
	row, _ := a.fleetUntil("after the start", func(row fleetState) bool { return row.Healthy && len(row.Replicas) == 2 })
	if !strings.HasPrefix(row.Summary, "2 replicas: all serve revision ") {
		t.Errorf("equal locks: %s", row.Summary)
	}

	for _, r := range both {
		write(filepath.Join(r.dir, "crm", "tools.d", "crm.hcl"), fmt.Sprintf(find, " by name"))
	}
	row, code := a.fleetUntil("after the change", func(row fleetState) bool {
		return len(row.Replicas) == 2 && !slices.ContainsFunc(row.Replicas, func(r fleetReplica) bool { return !strings.Contains(r.Status, "quarantine") })
	})
	if code != exitFindings || !strings.HasPrefix(row.Summary, "2 replicas: all serve revision ") {
		t.Errorf("a changed tool: exit code %d, %s", code, row.Summary)
	}

	accept := exec.CommandContext(t.Context(), f.program, "lock", "accept", "crm", "find") // a process, as it starts crm in its directory
	accept.Dir, accept.Env = a.dir, a.env
	if out, err := accept.CombinedOutput(); err != nil {
		t.Fatalf("lock accept: %v: %s", err, out)
	}
	row, code = b.fleetUntil("after it was accepted at one", func(row fleetState) bool { return strings.Contains(row.Summary, "1 of 2 serve revision") })
	healthy := slices.IndexFunc(row.Replicas, func(r fleetReplica) bool { return r.Status == "healthy" })
	if code != exitFindings || healthy < 0 || row.Replicas[healthy].Self || !strings.Contains(row.Replicas[1-healthy].Status, "quarantine") {
		t.Errorf("different locks: exit code %d, %+v", code, row)
	}

	accepted, err := os.ReadFile(filepath.Join(a.dir, "mcpd.lock"))
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(b.dir, "mcpd.lock"), string(accepted))
	row, code = a.fleetUntil("after the copy", func(row fleetState) bool { return row.Healthy })
	if code != 0 || !strings.HasPrefix(row.Summary, "2 replicas: all serve revision ") {
		t.Errorf("equal locks again: exit code %d, %s", code, row.Summary)
	}
	f.replicas[2].start() // stopAll stops all three
	f.stopAll()
}

func TestStatusFleet_noDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	program := buildDaemon(t)
	d, err := startDaemon(program, dir, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.kill()
	cmd := exec.Command(program, "status", "--fleet")
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--state postgres://") {
		t.Errorf("%v: %s", err, out)
	}
}
