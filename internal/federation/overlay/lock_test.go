package overlay

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// of returns the tool of an entry of an upstream.
func of(t *testing.T, upstream, entry string) lockfile.Tool {
	t.Helper()
	tool, err := lockfile.ParseTool(upstream, []byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// first returns the first offer of an upstream.
func first(t *testing.T, upstream string) *offer {
	return &offer{upstream: upstream, firstUse: true, pinned: []lockfile.Tool{of(t, upstream, `{"name":"a"}`)}}
}

// write writes a lock file and returns it as loaded.
func write(t *testing.T, path string, l *lockfile.Lock) catalog.LockFile {
	t.Helper()
	if err := lockfile.Write(path, l); err != nil {
		t.Fatal(err)
	}
	return catalog.LockFile{Name: path, Text: l.Encode()}
}

// upstreamsOf returns the upstreams in a lock file.
func upstreamsOf(t *testing.T, path string) []string {
	t.Helper()
	l, err := lockfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return l.Upstreams()
}

func TestLockState_fileChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	p := newLockState(federation.LockOptions{Path: path}, slog.New(slog.DiscardHandler))
	if problems := p.load(write(t, path, new(lockfile.Lock).WithTools("lab"))); problems != nil {
		t.Fatal(problems)
	}
	now := write(t, path, new(lockfile.Lock).WithTools("lab").WithTools("other"))
	p.commit([]*offer{first(t, "new")})
	if diff := cmp.Diff([]string{"lab", "other"}, upstreamsOf(t, path)); diff != "" || p.saveErr == nil {
		t.Errorf("%v (-want +got)\n%s", p.saveErr, diff)
	}
	// It is written after the file has been loaded again.
	if problems := p.load(now); problems != nil {
		t.Fatal(problems)
	}
	p.commit(nil)
	if diff := cmp.Diff([]string{"lab", "new", "other"}, upstreamsOf(t, path)); diff != "" || p.saveErr != nil {
		t.Errorf("%v (-want +got)\n%s", p.saveErr, diff)
	}
}

func TestLockState_fileRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	p := newLockState(federation.LockOptions{Path: path}, slog.New(slog.DiscardHandler))
	if problems := p.load(write(t, path, new(lockfile.Lock).WithTools("lab"))); problems != nil {
		t.Fatal(problems)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.commit([]*offer{first(t, "new")})
	if _, err := os.Stat(path); err == nil || p.saveErr == nil {
		t.Errorf("it is back: %v, %v", err, p.saveErr)
	}
}

func TestLockState_filePrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.lock")
	p := newLockState(federation.LockOptions{Path: path, ReadOnly: true}, slog.New(slog.DiscardHandler))
	p.commit([]*offer{first(t, "lab"), first(t, "new")})
	said := of(t, "lab", `{"name":"b"}`)
	if problems := p.load(write(t, path, new(lockfile.Lock).WithTools("lab", said))); problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff([]lockfile.Tool{said}, p.effective.Tools("lab")); diff != "" {
		t.Errorf("the lock (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"new"}, p.unsaved.Upstreams()); diff != "" {
		t.Errorf("kept (-want +got)\n%s", diff)
	}
}

// noSecrets is a redactor that replaces nothing.
type noSecrets struct{}

func (noSecrets) Redact(text string) string                        { return text }
func (noSecrets) RedactJSON(value json.RawMessage) json.RawMessage { return value }

// BenchmarkAccepted checks the 100 tools of a server.
func BenchmarkAccepted(b *testing.B) {
	b.ReportAllocs()
	m, entries := labOf(100)
	for b.Loop() {
		m.quarantined, m.excluded = nil, nil
		if served := m.acceptedTools(entries); len(served) != len(entries) {
			b.Fatal("not all are served")
		}
	}
}

// labOf returns a builder for a server with n accepted tools, and their entries.
func labOf(n int) (*itemBuilder, []json.RawMessage) {
	var entries []json.RawMessage
	lock := new(lockfile.Lock).WithTools("lab")
	for i := range n {
		entry := fmt.Appendf(nil, `{"name":"tool_%d","description":"Does one thing. And another.","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["a"]}}`, i)
		t, err := lockfile.ParseTool("lab", entry)
		if err != nil {
			panic(err) // our own entry is valid
		}
		entries, lock = append(entries, entry), lock.WithTools("lab", t)
	}
	block, err := definition.NewUpstream("lab", "https://example.com/mcp", "a test")
	if err != nil {
		panic(err)
	}
	return &itemBuilder{redactor: noSecrets{}, upstream: &block, lock: lock}, entries
}
