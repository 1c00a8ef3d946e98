package audit

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

// Exports one line of each kind.
func TestExport_formats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	writeKey(t, path, 'k', keySize)
	l := opened(t, Options{Path: path, Mode: Strict, Now: clock})
	r := refund()
	r.Values = []byte(`{"note":"=1+1\u202e","password":"hunter2"}`)
	r.Approval = &Approval{State: ApprovalUnavailable, Why: "client", Policies: []string{"large", "odd"}, Asked: []byte("A refund of 70")}
	ok := &Record{Call: "c-3", Kind: "resource", Name: "docs", URI: "file:///x", Outcome: OutcomeOK, Cached: true}
	events := Event{Name: "reload", Attributes: map[string]string{"before": "a", "after": "b", "api_token": "hunter2"}}
	for _, err := range []error{l.Intent(r), l.Outcome(r), l.Outcome(ok), l.Event(events), l.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range Formats() {
		var out bytes.Buffer
		if strange, err := Export(&out, path, format, TimeRange{}); err != nil || strange > 0 {
			t.Fatal(strange, err)
		}
		if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), "\u202e") || strings.Contains(out.String(), "A refund of 70") {
			t.Errorf("%s contains a secret", format)
		}
		golden(t, "export."+string(format), out.Bytes())
	}
}

func TestExport_timeRange(t *testing.T) {
	path := written(t, 3, 0)
	for _, row := range []struct {
		name string
		span TimeRange
		want int
	}{
		{"since its time", TimeRange{Since: clock()}, 3},
		{"until its time", TimeRange{Until: clock()}, 0},
		{"after it", TimeRange{Since: clock().Add(1)}, 0},
		{"around its time", TimeRange{Since: clock().Add(-1), Until: clock().Add(1)}, 3},
	} {
		var out bytes.Buffer
		if _, err := Export(&out, path, JSONL, row.span); err != nil || strings.Count(out.String(), "\n") != row.want {
			t.Errorf("%s: %d lines, want %d; %v", row.name, strings.Count(out.String(), "\n"), row.want, err)
		}
	}
}

func TestTail_acrossFiles(t *testing.T) {
	path := written(t, 10, 2000)
	for _, n := range []int{0, 1, 3, 10, 20} {
		var got []uint64
		if err := Tail(path, n, func(l *Line) error { got = append(got, l.Seq); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(got) != min(n, 10) || len(got) > 0 && (got[0] != uint64(11-len(got)) || got[len(got)-1] != 10) {
			t.Errorf("tail of %d: %v", n, got)
		}
	}
}

func TestFollow_everyLineOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := opened(t, Options{Path: path, Mode: Strict, MaxSize: 2000})
		ctx, cancel := context.WithCancel(t.Context())
		var seen []uint64
		ended := make(chan error)
		go func() {
			ended <- Follow(ctx, path, 2, func(l *Line) error { seen = append(seen, l.Seq); return nil })
		}()
		for range 12 {
			if err := l.Outcome(refund()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(followEvery / 4)
		}
		time.Sleep(2 * followEvery)
		cancel()
		if err := errors.Join(<-ended, l.Close()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]uint64{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, seen); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
