package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// long returns n entries of about 250 KiB in a lock file.
func long(n int) (entries []json.RawMessage) {
	for i := range n {
		entries = append(entries, fmt.Appendf(nil, `{"name":"t%d","inputSchema":{"minimum":0.%s}}`, i, strings.Repeat("1", 250<<10)))
	}
	return entries
}

// logged returns a lock state that logs to a buffer, without times.
func logged(p federation.LockOptions) (*lockState, *bytes.Buffer) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	made := newLockState(p, logger)
	return &made, &log
}

func TestReadTools_upstreamQuota(t *testing.T) {
	entries := append(long(40), json.RawMessage(`{"name":"little"}`))
	l := readTools("lab", entries, noSecrets{})
	if len(l.tools) != 32 || len(l.entries) != 32 || len(l.rejected) != 9 {
		t.Fatalf("%d tools accepted, %d entries, %d rejected", len(l.tools), len(l.entries), len(l.rejected))
	}
	for _, why := range l.reasons {
		if want := "it cannot be accepted: the tools before it take 8 MiB of mcpd.lock, the limit of one upstream"; why.Error() != want {
			t.Errorf("one is not since %v", why)
		}
	}
}

// Only the tools that do not fit are kept in memory: a server with many tools does not displace
// those of others after a restart.
func TestLockState_fileFull(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	greedy := &offer{upstream: "greedy", firstUse: true}
	for _, entry := range long(263) {
		greedy.pinned = append(greedy.pinned, of(t, "greedy", string(entry)))
	}
	p, log := logged(federation.LockOptions{Path: path})
	var recorded []string
	p.Audit = func(_ string, attributes map[string]string) {
		recorded = append(recorded, fmt.Sprintf("%s %.1d", attributes["upstream"], len(attributes["lock"])))
	}
	p.commit([]*offer{greedy, first(t, "harmless")})
	// A later load logs nothing and parses nothing.
	before := p.effective
	if p.commit(nil); p.effective != before {
		t.Error("the lock is another with each load")
	}
	if want := "level=WARN msg=\"write lock file\" upstreams=[greedy] error=\"the lock file would be too long\"\n" +
		"level=INFO msg=\"pin upstream tools on first use\" upstream=greedy tools=263\n" +
		"level=INFO msg=\"pin upstream tools on first use\" upstream=harmless tools=1\n"; log.String() != want {
		t.Errorf("the log (-want +got)\n%s", cmp.Diff(want, log.String()))
	}
	if diff := cmp.Diff([]string{"greedy 0", "harmless 64"}, recorded); diff != "" {
		t.Errorf("the hashes of the lock in the records (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"greedy"}, p.unsaved.Upstreams()); diff != "" || p.saveErr == nil || !hasUpstream(p.effective, "greedy") {
		t.Errorf("%v (-want +got)\n%s", p.saveErr, diff)
	}
	// A change of the harmless upstream is not pinned after a restart.
	now, err := lockfile.Read(path)
	if err != nil || hasUpstream(now, "greedy") {
		t.Fatalf("the file knows %v, %v", now.Upstreams(), err)
	}
	verdict := now.Check("harmless", []lockfile.Tool{of(t, "harmless", `{"name":"a","title":"other"}`)}, lockfile.FirstUse)
	if len(verdict.Served) > 0 || len(verdict.Changes) != 1 {
		t.Errorf("it is judged %+v", verdict)
	}
}

// The program is not the server.
func TestLockState_readOnly(t *testing.T) {
	p, log := logged(federation.LockOptions{Path: filepath.Join(t.TempDir(), "mcpd.lock"), ReadOnly: true})
	p.commit([]*offer{first(t, "new")})
	if log.Len() > 0 || !hasUpstream(p.effective, "new") {
		t.Errorf("the log has %s", log)
	}
}

func TestLogQuarantined_limit(t *testing.T) {
	var offers []*offer
	for _, upstream := range []string{"many", "twenty", "one"} {
		o := &offer{upstream: upstream}
		for i := range map[string]int{"many": 2000, "twenty": 20, "one": 1}[upstream] {
			new := of(t, upstream, fmt.Sprintf(`{"name":"t%04d"}`, i))
			o.quarantined = append(o.quarantined, lockfile.Change{Kind: lockfile.Added, Upstream: upstream, Name: new.Name(), New: new})
		}
		offers = append(offers, o)
	}
	var recorded []map[string]string
	p, log := logged(federation.LockOptions{Audit: func(_ string, attributes map[string]string) { recorded = append(recorded, attributes) }})
	p.logQuarantined(offers)
	p.logQuarantined(offers) // already logged
	count := map[string]int{}
	for _, r := range recorded {
		count[r["upstream"]]++
	}
	if diff := cmp.Diff(map[string]int{"many": 21, "twenty": 20, "one": 1}, count); diff != "" {
		t.Errorf("records (-want +got)\n%s", diff)
	}
	rest := map[string]string{"upstream": "many", "tools": "1980"}
	if !slices.ContainsFunc(recorded, func(r map[string]string) bool { return cmp.Equal(r, rest) }) {
		t.Errorf("no record counts the rest, the last is %v", recorded[len(recorded)-1])
	}
	line := `level=WARN msg="quarantine more upstream tools, see mcpd lock diff" upstream=many tools=1980` + "\n"
	if n := strings.Count(log.String(), "\n"); n != 42 || !strings.Contains(log.String(), line) {
		t.Errorf("the log has %d lines:\n%s", n, log)
	}
}

// Each build of a catalog hashes once.
func TestLockState_hashAllocations(t *testing.T) {
	p, offers := twoOf(t, 1000)
	before := p.hash(offers)
	if n := testing.AllocsPerRun(10, func() { p.hash(offers) }); n > 100 {
		t.Errorf("it allocates %.0f times for 2,000 tools", n)
	}
	p.set(p.withFirstUse(offers), p.unsaved)
	if p.hash(nil) != before {
		t.Error("the hash changes once first use is in the lock")
	}
}

// twoOf returns a lock state with n tools of a known server, and the offer of a new one.
func twoOf(t testing.TB, n int) (*lockState, []*offer) {
	known, entries := labOf(n)
	p := newLockState(federation.LockOptions{Path: "mcpd.lock"}, slog.New(slog.DiscardHandler))
	p.set(known.lock, p.unsaved)
	pinned := readTools("new", entries, noSecrets{}).tools
	if len(pinned) != n {
		t.Fatalf("%d tools are pinned", len(pinned))
	}
	return &p, []*offer{{upstream: "new", firstUse: true, pinned: pinned}}
}

// BenchmarkHash hashes a new and a known server of 1,000 tools each.
func BenchmarkHash(b *testing.B) {
	b.ReportAllocs()
	p, offers := twoOf(b, 1000)
	for b.Loop() {
		p.hash(offers)
	}
}

// BenchmarkLongTools reads 144 tools that would take 1.7 MB of a lock file each.
func BenchmarkLongTools(b *testing.B) {
	b.ReportAllocs()
	schema := strings.Repeat("[", 55) + strings.Repeat("0,", 48_900) + "1" + strings.Repeat("]", 55)
	var entries []json.RawMessage
	for i := range 144 {
		entries = append(entries, fmt.Appendf(nil, `{"name":"t%d","inputSchema":{"enum":%s}}`, i, schema))
	}
	for b.Loop() {
		if l := readTools("lab", entries, noSecrets{}); len(l.rejected) != 144 {
			b.Fatal(len(l.tools), "are taken in")
		}
	}
}
