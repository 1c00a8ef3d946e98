package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/ops/history"
)

// historyScene is a real server of a directory, and its user.
type historyScene struct {
	dir    string
	env    []string
	daemon *daemon
}

func newHistoryScene(t *testing.T, flags ...string) *historyScene {
	t.Helper()
	s := &historyScene{dir: t.TempDir()}
	s.env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	s.write(t, "mcpd.hcl", "reload { watch = false }\n")
	s.tool(t, 1)
	d, err := startDaemon(buildDaemon(t), s.dir, s.env, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	s.daemon = d
	return s
}

func (s *historyScene) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *historyScene) tool(t *testing.T, n int) {
	s.write(t, "tools.d/n.hcl", fmt.Sprintf("tool \"n\" {\n  run = <<JS\n    return %d;\n  JS\n}\n", n))
}

// run runs a verb, which must exit with code and print want.
func (s *historyScene) run(t *testing.T, code int, want string, args ...string) string {
	t.Helper()
	got, stdout, stderr := inProcess(t, s.dir, s.env, args...)
	if got != code || !regexp.MustCompile(want).MatchString(stdout+stderr) {
		t.Fatalf("mcpd %s: exit code %d, want %d and %q\n%s%s", strings.Join(args, " "), got, code, want, stdout, stderr)
	}
	return stdout
}

func (s *historyScene) serves(t *testing.T, n int) {
	t.Helper()
	_, body, err := s.daemon.exchange(http.MethodPost, "/mcp/execute", []byte(`{"tool":"n","arguments":{}}`), nil)
	if err != nil || !strings.Contains(string(body), fmt.Sprintf(`"result":%d`, n)) {
		t.Fatalf("call returned %s, error %v, want %d", body, err, n)
	}
}

func TestRollback_directory(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t)
	s.run(t, 1, "no revision before", "rollback", "--yes")
	s.tool(t, 2)
	s.write(t, "tools.d/more/m.hcl", "tool \"m\" {\n  run = \"return 0;\"\n}\n")
	s.run(t, 0, "ok", "reload")
	s.serves(t, 2)
	if lines := strings.Count(s.run(t, 0, `1 added, 1 changed, 0 removed +\+tools.d/more/m.hcl ~tools.d/n.hcl`, "history"), "\n"); lines != 2 {
		t.Errorf("%d revisions, want 2", lines)
	}
	s.run(t, 2, "--yes", "rollback")
	s.run(t, 0, "(?s)- tools.d/more/m.hcl\n~ tools.d/n.hcl\nok", "rollback", "--yes")
	s.serves(t, 1)
	s.run(t, 0, "ok", "rollback", "--yes") // undoes the first one
	s.serves(t, 2)
	s.run(t, 0, "2 files", "history", "export", "previous", "out")
	if content, err := os.ReadFile(filepath.Join(s.dir, "out/tools.d/n.hcl")); err != nil || !strings.Contains(string(content), "return 1") {
		t.Errorf("exported %q, error %v", content, err)
	}
}

func TestRollback_refusesChangedFiles(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t)
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload")
	s.tool(t, 3)
	s.run(t, 1, "is not what the server serves", "rollback", "--yes")
	s.tool(t, 2)
	outside := filepath.Join(t.TempDir(), "x.hcl")
	tool := filepath.Join(s.dir, "tools.d/n.hcl")
	if err := os.Rename(tool, outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, tool); err != nil {
		t.Fatal(err)
	}
	s.run(t, 1, "not a regular file", "rollback", "--yes")
	s.serves(t, 2)
	if content, err := os.ReadFile(outside); err != nil || !strings.Contains(string(content), "return 2") {
		t.Errorf("the target of the link has %q, error %v", content, err)
	}
}

func TestRollback_elsewhere(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t, "--control", "control.sock")
	socket, elsewhere := filepath.Join(s.dir, "control.sock"), t.TempDir()
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload", "--control", socket)
	rollback := func() string {
		code, _, stderr := inProcess(t, elsewhere, s.env, "rollback", "--yes", "--control", socket)
		if code != exitFindings {
			t.Errorf("exit code %d", code)
		}
		return stderr
	}
	const advice = "run mcpd rollback in the folder of the files of the server, or name them with --tools and --config"
	if text := rollback(); !strings.Contains(text, "tools.d: no such file or directory; "+advice) {
		t.Errorf("without a tools directory: %s", text)
	}
	if err := os.Mkdir(filepath.Join(elsewhere, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if text := rollback(); !strings.Contains(text, "mcpd.hcl is missing; ") || !strings.Contains(text, advice) {
		t.Errorf("in another folder: %s", text)
	}
	code, _, stderr := inProcess(t, elsewhere, s.env, "history")
	if code != exitFindings || !strings.Contains(stderr, filepath.Join(elsewhere, "tools.d")) || !strings.Contains(stderr, "run this in the folder of its files") {
		t.Errorf("history elsewhere: %d, %s", code, stderr)
	}
	s.serves(t, 2)
}

func TestRollback_readOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes to every folder")
	}
	t.Parallel()
	s := newHistoryScene(t)
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload")
	folder := filepath.Join(s.dir, "tools.d")
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o755) })
	s.run(t, 1, "(?m)^mcpd: roll back: write tools.d/n.hcl: permission denied; nothing was changed$", "rollback", "--yes")
}

func TestRollback_changesNothingOnError(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t)
	s.write(t, "tools.d/sub/m.hcl", "tool \"m\" {\n  run = \"return 0;\"\n}\n")
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload")
	if err := os.RemoveAll(filepath.Join(s.dir, "tools.d/sub")); err != nil {
		t.Fatal(err)
	}
	s.tool(t, 3)
	s.run(t, 0, "ok", "reload")
	s.write(t, "tools.d/sub", "a file in the place of a directory")
	s.run(t, 1, "sub", "rollback", "--yes")
	content, err := os.ReadFile(filepath.Join(s.dir, "tools.d/n.hcl"))
	if err != nil || !strings.Contains(string(content), "return 3") {
		t.Errorf("the tool file has %q, error %v", content, err)
	}
	if found, _ := filepath.Glob(filepath.Join(s.dir, "tools.d/.*")); len(found) != 0 {
		t.Errorf("left behind: %v", found)
	}
}

func TestHistory_bundle(t *testing.T) {
	t.Parallel()
	r, dir := newRelease(t), t.TempDir()
	for name, content := range map[string][]byte{"release.pub": r.public, "shop.bundle": r.bundle(t, 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := startDaemon(buildDaemon(t), dir, os.Environ(), []string{"--bundle", "shop.bundle", "--trust", "release.pub", "--bundle-dir", "kept", "--bundle-poll", "100ms"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	if err := replaceFile(filepath.Join(dir, "shop.bundle"), r.bundle(t, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.waitFor(regexp.MustCompile(`bundle activated.* serial=(2)`)); err != nil {
		t.Fatal(err)
	}
	s := &historyScene{dir: dir, env: os.Environ(), daemon: d}
	s.run(t, 0, `~tools.d/serial.hcl\n(?s:.*)serial 1`, "history", "--bundle-dir", "kept")
	s.run(t, 0, `serial 2`, "history", "--bundle-dir", "kept")
	s.run(t, 1, "serial numbers of bundles only grow", "rollback", "--yes", "--bundle-dir", "kept")
	s.run(t, 0, "files", "history", "export", "previous", "out", "--bundle-dir", "kept")
	if content, err := os.ReadFile(filepath.Join(dir, "out/tools.d/serial.hcl")); err != nil || !strings.Contains(string(content), "return 1") {
		t.Errorf("exported %q, error %v", content, err)
	}
}

func TestRollback_survivesRestart(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t, "--state", "kept.db")
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload")
	s.run(t, 0, "1 changed", "history")
	s.daemon.kill()
	d, err := startDaemon(buildDaemon(t), s.dir, s.env, []string{"--state", "kept.db"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	s.daemon = d
	s.run(t, 0, "ok", "rollback", "--yes")
	s.serves(t, 1)
}

func TestProjectDirs_staysInside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "tools.d/../../x", "/etc/x", "link/x", "a\x00b"} {
		p := projectDirs{export: true, mode: 0o600}
		if err := p.open(dir, dir); err != nil {
			t.Fatal(err)
		}
		if err := p.change(nil, map[string][]byte{name: []byte("x")}); err == nil {
			t.Errorf("%q was written", name)
		}
		p.close()
	}
	for _, name := range []string{"cron.d/x", "passwd", "a/b.mcpdvars", "tools.d/.git/hooks/x", "tools.d/../x"} {
		p := projectDirs{mode: 0o600, name: "mcpd.hcl"}
		if err := p.open(dir, dir); err != nil {
			t.Fatal(err)
		}
		if err := p.change(nil, map[string][]byte{name: []byte("x")}); err == nil {
			t.Errorf("%q was written", name)
		}
		p.close()
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) != 0 {
		t.Errorf("files outside: %v, error %v", found, err)
	}
}

// Root must not follow a link of another user to a directory of root.
func TestProjectDirs_linkOfOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	t.Parallel()
	home, system := t.TempDir(), t.TempDir()
	for _, dir := range []string{home, filepath.Join(home, "own")} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, 4242, 4242)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(system, filepath.Join(home, "link")), os.Lchown(filepath.Join(home, "link"), 4242, 4242)); err != nil {
		t.Fatal(err)
	}
	for dir, ok := range map[string]bool{
		filepath.Join(home, "own"): true, filepath.Join(home, "link"): false, system: true,
	} {
		for _, dirs := range [][2]string{{dir, system}, {system, dir}} {
			p := projectDirs{mode: 0o600, name: "mcpd.hcl"}
			err := p.open(dirs[0], dirs[1])
			if (err == nil) != ok {
				t.Errorf("open %s: %v, want success %t", dirs, err, ok)
			}
			if err == nil {
				p.close()
			}
		}
	}
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	p := projectDirs{mode: 0o600, name: "mcpd.hcl"}
	if err := p.open(filepath.Join(home, "own"), filepath.Join(home, "own")); err == nil {
		t.Error("a directory that every user may replace was opened")
	}
}

func TestSanitizeColored_hostile(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[1;31merror\x1b[0m: a\n\tb\n": "\x1b[1;31merror\x1b[0m: a\n\tb\n",
		"\x1b[8mhidden\x1b[0m":             sanitize("\x1b[8mhidden") + "\x1b[0m",
		"\x1b[2K\rok":                      sanitize("\x1b[2K\rok"),
		"":                                 "",
	} {
		if got := sanitizeColored(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestHistory_storesNoSecretFiles(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t, "--state", "kept.db")
	s.write(t, "tools.d/token", "s3cret-token")
	s.write(t, "tools.d/.env", "s3cret-token")
	s.write(t, "token", "s3cret-token")
	s.write(t, "prices.mcpdvars", "")
	s.write(t, "mcpd.hcl", fmt.Sprintf("reload { watch = false }\nsecret \"a\" { file = %q }\nsecret \"b\" { file = %q }\n", filepath.Join(s.dir, "token"), filepath.Join(s.dir, "tools.d/token")))
	s.run(t, 0, "ok", "reload")
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload")
	s.run(t, 0, "3 files", "history", "export", "previous", "out")
	var names []string
	out := filepath.Join(s.dir, "out")
	err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, _ := d.Info()
			names = append(names, strings.TrimPrefix(path, out)+" "+info.Mode().String())
		}
		return err
	})
	if want := "/mcpd.hcl -rw------- /prices.mcpdvars -rw------- /tools.d/n.hcl -rw-------"; err != nil || strings.Join(names, " ") != want {
		t.Errorf("exported %q, error %v", names, err)
	}
}

// TestRollback_resumes rolls back after a rollback that was killed between two renames.
func TestRollback_resumes(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t)
	tool := filepath.Join(s.dir, "tools.d/n.hcl")
	first, err := os.ReadFile(tool)
	if err != nil {
		t.Fatal(err)
	}
	s.tool(t, 2)
	if err := os.Chmod(tool, 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, "tools.d/added.hcl", "")
	s.write(t, "mcpd.hcl", "reload { watch = false }\n# 2\n")
	s.run(t, 0, "ok", "reload")
	s.write(t, "tools.d/n.hcl", string(first))
	if err := os.Remove(filepath.Join(s.dir, "tools.d/added.hcl")); err != nil {
		t.Fatal(err)
	}
	s.run(t, 0, "ok", "rollback", "--yes")
	s.serves(t, 1)
	if content, err := os.ReadFile(filepath.Join(s.dir, "mcpd.hcl")); err != nil || strings.Contains(string(content), "# 2") {
		t.Errorf("mcpd.hcl has %q, error %v", content, err)
	}
	s.run(t, 0, "ok", "rollback", "--yes")
	s.serves(t, 2)
	if info, err := os.Stat(tool); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

func TestHistory_brokenFiles(t *testing.T) {
	t.Parallel()
	s := newHistoryScene(t)
	s.tool(t, 2)
	s.run(t, 0, "ok", "reload")
	s.write(t, "tools.d/n.hcl", "tool {")
	s.run(t, 1, "", "reload")
	s.run(t, 1, "do not serve", "rollback", "--yes")
	s.run(t, 0, "2 files", "history", "export", "previous", "out")
	if content, err := os.ReadFile(filepath.Join(s.dir, "out/tools.d/n.hcl")); err != nil || !strings.Contains(string(content), "return 2") {
		t.Errorf("exported %q, error %v", content, err)
	}
}

// TestRewrite_restoresOnError fails at each step of a change.
// A folder that cannot be written is named, and not a temporary file.
func TestProjectDirs_unwritable(t *testing.T) {
	t.Parallel()
	s := historyScene{dir: t.TempDir()}
	s.write(t, "tools.d/sub", "a file in the place of a directory")
	p := projectDirs{export: true, mode: 0o644}
	if err := p.open(s.dir, s.dir); err != nil {
		t.Fatal(err)
	}
	defer p.close()
	_, err := p.prepare(nil, map[string][]byte{"mcpd.hcl": nil, "tools.d/sub/added.hcl": []byte("new")})
	if err == nil || !strings.HasPrefix(err.Error(), "write tools.d/sub/added.hcl: ") || strings.Contains(err.Error(), ".rollback-") {
		t.Errorf("error %v", err)
	}
	if found := treeOf(t, s.dir); len(found) != 1 {
		t.Errorf("left behind: %v", found)
	}
}

func TestRewrite_restoresOnError(t *testing.T) {
	t.Parallel()
	old := map[string][]byte{"mcpd.hcl": []byte("old"), "tools.d/changed.hcl": []byte("old"), "tools.d/removed.hcl": []byte("old"), "tools.d/removed too.hcl": nil}
	after := map[string][]byte{"mcpd.hcl": []byte("new"), "tools.d/changed.hcl": []byte("new"), "tools.d/sub/added.hcl": []byte("new")}
	for broken := range 5 {
		dir := t.TempDir()
		s := historyScene{dir: dir}
		for name, content := range old {
			s.write(t, name, string(content))
		}
		p := projectDirs{export: true, mode: 0o644}
		if err := p.open(dir, dir); err != nil {
			t.Fatal(err)
		}
		found, err := p.read(history.SumsOf(old), after)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.prepare(found, after)
		if err != nil || len(r.steps) != 5 {
			t.Fatalf("steps %+v, error %v", r.steps, err)
		}
		lost := r.steps[broken].full
		gone := cmp.Or(r.steps[broken].temporary, lost)
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
		if err := r.commit(); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("step %d: error %v", broken, err)
		}
		want := maps.Clone(old)
		if gone == lost {
			delete(want, lost)
		}
		if got := history.SumsOf(treeOf(t, dir)); len(history.Changes(history.SumsOf(want), got)) > 0 {
			t.Errorf("step %d: changes %q", broken, history.Changes(history.SumsOf(want), got))
		}
		p.close()
	}
}

// treeOf returns all files of a directory.
func treeOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[path], err = os.ReadFile(filepath.Join(dir, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRecorder_queue(t *testing.T) {
	t.Parallel()
	h := recorder{wake: make(chan struct{}, 1)}
	for i := range history.MaxRevisions + 2 {
		r := &history.Revision{Name: fmt.Sprint(i), Files: map[string][]byte{"mcpd.hcl": fmt.Append(nil, i/4)}}
		if dropped := h.queue(r); (dropped != nil) != (i >= history.MaxRevisions) || dropped != nil && dropped.Name != fmt.Sprint(i-history.MaxRevisions) {
			t.Errorf("revision %d: dropped %+v", i, dropped)
		}
	}
	if needed := h.merge(); !needed || len(h.pending) != 3 {
		t.Errorf("%d revisions wait, store needed %v", len(h.pending), needed)
	}
	h.pending = h.pending[:1]
	if h.merge() {
		t.Error("one revision needs the store")
	}
}
