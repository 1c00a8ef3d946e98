package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// before returns a copy of testdata/before: a log in three files with its head and its
// key, as the version before the packages were regrouped wrote it. The fixture is never
// regenerated.
func before(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/before")); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "audit.jsonl")
	if err := os.Chmod(keyPath(path), 0o600); err != nil { // git does not store the mode
		t.Fatal(err)
	}
	return path
}

func TestVerify_logOfTheVersionBefore(t *testing.T) {
	path := before(t)
	want := &Report{Files: 3, Records: 10, First: 1, Last: 10, MAC: "f9b9730eba4b894b6df120f7b5cd32df52cd7ec63ed61d41d49b923d611fb10d", Findings: []Finding{}}
	if diff := cmp.Diff(want, verified(t, path)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	calls := 0
	strange, err := Calls(path, 0, func(c *Call) error {
		if calls++; c.Caller.Principal.ID != "alice" {
			t.Errorf("record %d has the principal %q", c.Seq, c.Caller.Principal.ID)
		}
		return nil
	})
	if calls != 5 || strange > 0 || err != nil {
		t.Errorf("%d calls, %d invalid lines, %v", calls, strange, err)
	}
}

func TestOpen_logOfTheVersionBefore(t *testing.T) {
	path := before(t)
	l := opened(t, Options{Path: path, Mode: Strict, Now: clock})
	r := refund()
	r.Call = "0"
	if err := l.Outcome(r); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, path); len(r.Findings) > 0 || r.Records != 11 || r.Last != 11 {
		t.Errorf("%+v", r)
	}
	// The same record has the same members and digests as in the previous version.
	lines, err := os.ReadFile(filepath.Join(filepath.Dir(path), "audit-00000000000000000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	e := newEncoder(l.keys.digest, nil)
	if e.outcome(r, clock()); !bytes.Contains(lines, e.body) {
		t.Errorf("the log of the previous version does not contain\n%s", e.body)
	}
}
