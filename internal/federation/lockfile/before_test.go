package lockfile_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// testdata/before/mcpd.lock is a lock file as the version before the packages were regrouped
// wrote it. It is never written anew.
func TestParse_lockOfTheVersionBefore(t *testing.T) {
	file, err := os.ReadFile("testdata/before/mcpd.lock")
	if err != nil {
		t.Fatal(err)
	}
	read, err := lockfile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	want := shown(t).Pin("raw", of(t, "raw", `{"name":"h","description":"hidden \u200b"}`).AsRaw())
	if diff := cmp.Diff(contents(want), contents(read)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if again := read.Encode(); !bytes.Equal(again, file) {
		t.Errorf("it is written as\n%s", cmp.Diff(string(file), string(again)))
	}
	if got, want := fmt.Sprintf("%x", read.Sum()), "964553ecb9588d69d08e4b2229617690c4eff6c62b91339fd9816953db7b3be3"; got != want {
		t.Errorf("its sum is %s, and was %s", got, want)
	}
}
