package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	if err := replaceFile(filepath.Join(dir, "shop.bundle"), r.bundle(t, 2), 0o600); err != nil {
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
		p := projectDirs{}
		if err := p.open(dir, dir, false); err != nil {
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
