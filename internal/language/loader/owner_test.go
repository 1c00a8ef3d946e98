//go:build unix

package loader_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/internal/language/loader"
)

// Files, directories and referenced files of other users are reported. Those of root and this
// user, and files not on disk, are not.
func TestCheckOwner_otherUsers(t *testing.T) {
	of := func(uid int, data string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(data), Mode: 0o644, Sys: &syscall.Stat_t{Uid: uint32(uid)}}
	}
	other := os.Geteuid() + 1
	folder := of(other, "")
	folder.Mode = os.ModeDir | 0o755
	files := fstest.MapFS{
		"own.hcl": of(os.Geteuid(), toolText("own")), "root.hcl": of(0, toolText("root")), "built.hcl": {Data: []byte(toolText("built")), Mode: 0o644},
		"other.hcl": of(other, toolText("other")), "sub": folder, "sub/a.hcl": of(0, toolText("a")), "named.txt": of(other, "x"), "unread.txt": of(other, "x"),
		".hidden.hcl": of(other, toolText("hidden")),
	}
	tree := loader.New(files, "tools.d")
	foreign := func(paths []string, all bool, want ...string) {
		t.Helper()
		tree.Update(paths, all)
		if _, _, err := tree.Open("named.txt"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range tree.CheckOwner() {
			got = append(got, p.Range.File)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	foreign(nil, true, "tools.d/named.txt", "tools.d/other.hcl", "tools.d/sub")
	foreign([]string{"own.hcl"}, false, "tools.d/named.txt", "tools.d/other.hcl", "tools.d/sub")
	files["other.hcl"], files["sub"] = of(0, toolText("other")), of(0, "")
	files["sub"].Mode = os.ModeDir | 0o755
	files["own.hcl"] = of(other, toolText("own"))
	foreign(nil, true, "tools.d/named.txt", "tools.d/own.hcl")

	config := fstest.MapFS{"mcpd.hcl": of(other, ""), "a.mcpdvars": of(other, ""), "b.mcpdvars": of(0, "")}
	wantForeign(t, config, "etc/a.mcpdvars production-owner", "etc/mcpd.hcl production-owner")
}

func wantForeign(t *testing.T, config fstest.MapFS, want ...string) {
	t.Helper()
	var got []string
	for _, p := range loader.ReadConfig(config, "etc/mcpd.hcl", nil).CheckOwner() {
		got = append(got, p.Range.File+" "+p.Code)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A directory of another user, or writable by every user, is reported, unless it is sticky or a
// mounted volume.
func TestConfigCheckOwner_directory(t *testing.T) {
	folder := func(uid int, mode os.FileMode) fstest.MapFS {
		return fstest.MapFS{".": {Mode: os.ModeDir | mode, Sys: &syscall.Stat_t{Uid: uint32(uid)}}, "mcpd.hcl": {Mode: 0o644}}
	}
	wantForeign(t, folder(os.Geteuid(), 0o755))
	wantForeign(t, folder(os.Geteuid()+1, 0o755), "etc production-owner")
	wantForeign(t, folder(0, 0o777), "etc writable-by-others")
	wantForeign(t, folder(0, os.ModeSticky|0o777))
	ours, theirs := &syscall.Stat_t{Uid: uint32(os.Geteuid())}, &syscall.Stat_t{Uid: uint32(os.Geteuid()) + 1}
	link := func(to string, owner any) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: os.ModeSymlink | 0o777, Sys: owner}
	}
	for name, v := range map[string]struct {
		data, file *fstest.MapFile
		safe       bool
	}{
		"as it is mounted":              {link("..2026", ours), link("..data/mcpd.hcl", ours), true},
		"another user's link":           {link("..2026", theirs), link("..data/mcpd.hcl", ours), false},
		"another user's file":           {link("..2026", ours), link("..data/mcpd.hcl", theirs), false},
		"what was renamed to ..data":    {&fstest.MapFile{Mode: os.ModeDir | 0o755, Sys: ours}, link("..data/mcpd.hcl", ours), false},
		"a link that goes another way":  {link("..2026", ours), link("..2026/mcpd.hcl", ours), false},
		"a file beside a link of ours":  {link("..2026", ours), &fstest.MapFile{Mode: 0o644, Sys: ours}, false},
		"a link through nothing of its": {nil, link("..2026/mcpd.hcl", ours), false},
	} {
		volume := folder(0, 0o777)
		volume["..2026/mcpd.hcl"] = &fstest.MapFile{Mode: 0o644, Sys: ours}
		if volume["mcpd.hcl"] = v.file; v.data != nil {
			volume["..data"] = v.data
		}
		t.Run(name, func(t *testing.T) {
			if v.safe {
				wantForeign(t, volume)
			} else {
				wantForeign(t, volume, "etc writable-by-others")
			}
		})
	}
}

// The owner of the target decides, not the owner of the link.
func TestCheckOwner_links(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "..2026_07_28", "a.hcl"), toolText("a"))
	for name, target := range map[string]string{"..data": "..2026_07_28", "a.hcl": "..data/a.hcl"} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	told := func() int {
		tree.Update(nil, true)
		if tools, codes := names(t, tree); !slices.Equal(tools, []string{"a"}) {
			t.Fatalf("tools %v, %v", tools, codes)
		}
		return len(tree.CheckOwner())
	}
	if n := told(); n > 0 {
		t.Errorf("own files: %d problems", n)
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can change owners")
	}
	if err := os.Lchown(filepath.Join(folder, "a.hcl"), 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if n := told(); n > 0 {
		t.Errorf("link of another user: %d problems", n)
	}
	if err := os.Chown(filepath.Join(folder, "..data", "a.hcl"), 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if n := told(); n != 1 {
		t.Errorf("target of another user: %d problems", n)
	}
}

// Real files, directories and referenced files with these modes are checked.
func TestTreeCheckGroup(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(toolText("a")), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	tree := loader.New(os.DirFS(folder), "tools.d")
	warned := func(want ...string) {
		t.Helper()
		tree.Update(nil, true)
		if _, _, err := tree.Open("named.txt"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range tree.CheckGroup() {
			got = append(got, p.Severity.String()+" "+p.Code+" "+p.Range.File+": "+p.Summary)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	write("a.hcl", 0o644)
	write("sub/b.hcl", 0o600)
	write("named.txt", 0o640)
	warned()
	write("a.hcl", 0o664)
	warned("warning writable-by-group tools.d/a.hcl: this is writable by its group")
	write("named.txt", 0o664)
	if err := os.Chmod(filepath.Join(folder, "sub"), 0o775); err != nil {
		t.Fatal(err)
	}
	warned("warning writable-by-group tools.d/a.hcl: this and 2 other loaded files or directories are writable by their group")
	write("a.hcl", 0o644)
	write("named.txt", 0o644)
	warned("warning writable-by-group tools.d/sub: this is writable by its group")
}
