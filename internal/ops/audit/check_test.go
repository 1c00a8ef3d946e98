package audit

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPlaceWhereNoLogCanBeIsFoundWithoutMakingAnything(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the places are those of Linux, and this is " + runtime.GOOS)
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		path, want string
		user       bool // a place that only root is let into
	}{
		{"/proc/nope/a.jsonl", "no file can be made in /proc, which is of the kernel", false},
		{"/sys/a.jsonl", "no file can be made in /sys, which is of the kernel", false},
		{filepath.Join(closed, "a.jsonl"), "permission denied", true},
		{filepath.Join(closed, "b/c/a.jsonl"), "permission denied", true},
	} {
		if row.user && os.Getuid() == 0 {
			continue
		}
		if err := Check(row.path); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.path, err)
		}
	}
	free := t.TempDir()
	if err := Check(filepath.Join(free, "a/b/c.jsonl")); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(free)
	if diff := cmp.Diff(0, len(left)); err != nil || diff != "" {
		t.Errorf("%v, files that were made (-want +got)\n%s", err, diff)
	}
}
