package loader_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/loader"
)

// listed returns the paths below docs.
func listed(t *testing.T, tree *loader.Tree) []string {
	t.Helper()
	files, err := tree.List("docs")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, fmt.Sprintf("%s %d", f.Name, f.Size))
	}
	return names
}

func TestTreeList_regularFilesInOrder(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"docs/b.md", "docs/a/z.md", "docs/a.md", "docs/.hidden.md", "docs/.git/x.md", "docs/c.md~", "other/x.md"} {
		write(t, filepath.Join(folder, name), name)
	}
	if err := os.Symlink("a.md", filepath.Join(folder, "docs", "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone.md", filepath.Join(folder, "docs", "nowhere.md")); err != nil {
		t.Fatal(err)
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	want := []string{"a.md 9", "a/z.md 11", "b.md 9", "link.md 9"}
	if diff := cmp.Diff(want, listed(t, tree)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := tree.List("gone"); err == nil || err.Error() != "the directory does not exist" {
		t.Errorf("missing directory: %v", err)
	}
}

// Kubernetes mounts a ConfigMap with slashes in its keys like this.
func TestTreeList_linkedDirectories(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "docs", "..1", "de", "a.md"), "a")
	for link, to := range map[string]string{"..data": "..1", "de": "..data/de"} {
		if err := os.Symlink(to, filepath.Join(folder, "docs", link)); err != nil {
			t.Skipf("SKIPPED: this system has no links: %v", err)
		}
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	if diff := cmp.Diff([]string{"de/a.md 1"}, listed(t, tree)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := os.Symlink("..", filepath.Join(folder, "docs", "..1", "de", "up")); err != nil {
		t.Fatal(err)
	}
	tree.Update(nil, true)
	if files, err := tree.List("docs"); err == nil {
		t.Errorf("cyclic links list %v", files)
	}
}

func TestTreeList_afterUpdate(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "docs", "a.md"), "1")
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	if diff := cmp.Diff([]string{"a.md 1"}, listed(t, tree)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	write(t, filepath.Join(folder, "docs", "new", "b.md"), "22")
	tree.Update([]string{"docs/new/b.md"}, false)
	if diff := cmp.Diff([]string{"a.md 1", "new/b.md 2"}, listed(t, tree)); diff != "" {
		t.Errorf("after a new file: (-want +got)\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(folder, "docs", "new")); err != nil {
		t.Fatal(err)
	}
	tree.Update([]string{"docs/new"}, false)
	if diff := cmp.Diff([]string{"a.md 1"}, listed(t, tree)); diff != "" {
		t.Errorf("after the directory was removed: (-want +got)\n%s", diff)
	}
}

func TestTreeList_tooManyFiles(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 20_001 {
		files[fmt.Sprintf("docs/%d.md", i)] = &fstest.MapFile{Mode: 0o644}
	}
	tree := loader.New(files, "tools.d")
	if _, err := tree.List("docs"); err == nil {
		t.Error("20,001 files were listed")
	}
	delete(files, "docs/7.md")
	tree.Update([]string{"docs/7.md"}, false)
	if got, err := tree.List("docs"); err != nil || len(got) != 20_000 {
		t.Errorf("listed %d files, %v", len(got), err)
	}
}

func TestTreeOpen_totalSize(t *testing.T) {
	files := fstest.MapFS{}
	content := make([]byte, 4<<20)
	for i := range 65 {
		files[fmt.Sprintf("%d.bin", i)] = &fstest.MapFile{Data: content, Mode: 0o644}
	}
	tree := loader.New(files, "tools.d")
	for i := range 64 {
		if _, _, err := tree.Open(fmt.Sprintf("%d.bin", i)); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	if content, _, err := tree.Open("64.bin"); err == nil || len(content) > 0 {
		t.Error("no error after more than 256 MiB")
	}
	tree.Update(nil, false) // the last load used all files
	tree.Update(nil, false) // this load used none
	if _, _, err := tree.Open("64.bin"); err != nil {
		t.Errorf("with an empty cache: %v", err)
	}
}

// wide is a directory tree with many entries in every directory, but no files.
type wide struct{ fstest.MapFS }

func (w wide) ReadDir(name string) ([]fs.DirEntry, error) {
	some, err := w.MapFS.ReadDir(name)
	return slices.Repeat(some, 100), err
}

// The directories of wide contain a million entries, but no file to count.
func TestTreeList_tooManyEntries(t *testing.T) {
	pipe := &fstest.MapFile{Mode: fs.ModeNamedPipe}
	tree := loader.New(wide{fstest.MapFS{"docs/a/b/pipe": pipe}}, "tools.d")
	tree.Update(nil, true)
	if _, codes := names(t, tree); !slices.Equal(codes, []string{"error too-many-files tools.d"}) {
		t.Errorf("tools directory: %v", codes)
	}
	if _, err := tree.List("docs"); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("directory: %v", err)
	}
}
