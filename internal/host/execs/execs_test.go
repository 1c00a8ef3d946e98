package execs

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func mustJSON(t *testing.T, params map[string]string) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"params": params})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func TestDo_parameters(t *testing.T) {
	g := grant.Exec{Name: "git", Argv: []string{"log", "{branch}"}, Params: []grant.Param{{Name: "branch", Pattern: "[a-z]+", MaxLength: 8}}}
	for payload, want := range map[string]string{
		`{"params":{"branch":"main"}}`: "",
		`{"params":{}}`:                "INVALID: exec.git: branch is missing",
		`{}`:                           "INVALID: exec.git: branch is missing",
		`{"params":{"branch":"main","brunch":""}}`: `NOT_GRANTED: exec.git has no parameter "brunch"; it has branch`,
		`{"params":{"branch":"Main"}}`:             "NOT_GRANTED: exec.git: branch does not match its pattern",
		`{"params":{"branch":"mainmainmain"}}`:     "TOO_LARGE: exec.git: branch has at most 8 bytes",
		`{"params":{"branch":1}}`:                  "INVALID: exec.git takes an object of strings",
		`{"params":["main"]}`:                      "INVALID: exec.git takes an object of strings",
		"{\"params\":{\"branch\":\"\xff\"}}":       "INVALID: exec.git takes an object of strings",
		`nonsense`:                                 "INVALID: exec.git takes an object of strings",
	} {
		_, err := Compile(g).Parse([]byte(payload))
		if got := errorText(err); got != want {
			t.Errorf("%s: %q, want %q", payload, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDo_environment(t *testing.T) {
	t.Setenv("OF_THE_SERVER", "x")
	g := grantOf(t, "env")
	g.Env = []grant.Variable{
		{Name: "LANG", Value: grant.Value{Parts: []grant.Part{{Literal: "C"}}}},
		{Name: "TOKEN", Value: grant.Value{Parts: []grant.Part{{Literal: "Bearer "}, {Secret: "token"}}}},
		{Name: "ENCODED", Value: grant.Value{Parts: []grant.Part{{Base64: &grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}}},
	}
	got, refusal := run(t, broker(), g, nil)
	want := "LANG=C\nTOKEN=Bearer [secret]\nENCODED=" + base64.StdEncoding.EncodeToString([]byte("hunter2"))
	if refusal != "" || got.Stdout != want {
		t.Errorf("got %q, %s, want %q", got.Stdout, refusal, want)
	}
	g.Env[1].Value.Parts[1].Secret = "unknown"
	var log strings.Builder
	b := broker()
	b.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if _, refusal := run(t, b, g, nil); refusal != scripting.Unavailable {
		t.Errorf("without the secret: %q", refusal)
	}
	if !strings.Contains(log.String(), `level=WARN msg="read secret of grant" grant=p secret=unknown error="no such secret"`) {
		t.Errorf("log: %s", log.String())
	}
}

func TestDo_workingDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got, refusal := run(t, broker(), grantOf(t, "write"), nil)
	folder, entries, _ := strings.Cut(got.Stdout, " ")
	if refusal != "" || entries != "0" {
		t.Fatalf("got %+v, %s", got, refusal)
	}
	if left, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDo_binaryOutput(t *testing.T) {
	got, refusal := run(t, broker(), grantOf(t, "bytes"), nil)
	if want := (told{Code: 3, Stdout64: base64.StdEncoding.EncodeToString([]byte("a\xff")), Stderr: "é"}); got != want || refusal != "" {
		t.Errorf("got %+v, %s, want %+v", got, refusal, want)
	}
}

func TestDo_maxOutput(t *testing.T) {
	g := grantOf(t, "flood")
	g.MaxOutput = 1000
	if _, refusal := run(t, broker(), g, nil); refusal != scripting.TooLarge {
		t.Errorf("got %q", refusal)
	}
}

func TestVerifyExecutable(t *testing.T) {
	folder := t.TempDir()
	first, second, link := filepath.Join(folder, "first"), filepath.Join(folder, "second"), filepath.Join(folder, "link")
	for _, path := range []string{first, second} {
		if err := os.WriteFile(path, []byte("#!/does/not/exist\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(second, link); err != nil {
		t.Skip("this system cannot create links: ", err)
	}
	for _, c := range []struct{ path, real, want string }{
		{link, first, scripting.Denied}, {first, "", scripting.Denied}, {filepath.Join(folder, "none"), filepath.Join(folder, "none"), scripting.NotFound},
		{folder, folder, scripting.Denied}, {first, first, scripting.Unavailable},
	} {
		g := grantOf(t)
		g.Path, g.ResolvedPath = c.path, c.real
		if _, refusal := run(t, broker(), g, nil); refusal != c.want {
			t.Errorf("%s: %q, want %q", filepath.Base(c.path), refusal, c.want)
		}
	}
	if err := os.Chmod(first, 0o777); err != nil {
		t.Fatal(err)
	}
	g := grantOf(t)
	g.Path, g.ResolvedPath = first, first
	if _, refusal := run(t, broker(), g, nil); refusal != scripting.Denied {
		t.Errorf("a program that everyone may write: %q", refusal)
	}
}

func TestDo_concurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all limiter
		g := grant.Exec{Name: "p", Concurrency: 2}
		var free []func()
		for range 2 {
			f, err := all.acquire(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			free = append(free, f)
		}
		third := make(chan func(), 1)
		go func() {
			f, err := all.acquire(t.Context(), g)
			if err != nil {
				t.Error(err)
			}
			third <- f
		}()
		synctest.Wait()
		if len(third) > 0 {
			t.Error("three run")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := all.acquire(ctx, g); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone gets %v", err)
		}
		other := g
		other.Argv = []string{"x"}
		f, err := all.acquire(t.Context(), other)
		if err != nil {
			t.Error(err)
		}
		f()
		free[0]()
		(<-third)()
		free[1]()
		if len(all.grants) > 0 {
			t.Errorf("%d grants are kept", len(all.grants))
		}
	})
}

func TestDo_cancel(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	makePipe(t, pipe)
	makePipe(t, pipe+".gate")
	g := grantOf(t, "meet", "{pipe}")
	g.Params = []grant.Param{{Name: "pipe", Pattern: "/.*", MaxLength: 4096}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := broker().Do(ctx, Compile(g), mustJSON(t, map[string]string{"pipe": pipe}))
		done <- err
	}()
	alive, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	lines := bufio.NewScanner(alive)
	if !lines.Scan() {
		t.Fatal("the program did not start")
	}
	cancel()
	if got := errorText(<-done); got != "UNAVAILABLE: exec.p: the call was cancelled" {
		t.Errorf("got %q", got)
	}
	// Only its exit closes the pipe.
	if lines.Scan() {
		t.Errorf("got %q", lines.Text())
	}
}

func TestParse_allocations(t *testing.T) {
	p := Compile(grant.Exec{Name: "git", Argv: []string{"log", "{branch}"}, Params: []grant.Param{{Name: "branch", Pattern: "[a-z]+(/[a-z0-9]{1,8}){0,3}", MaxLength: 80}}})
	payload := []byte(`{"params":{"branch":"main/a1"}}`)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := p.Parse(payload); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 25 {
		t.Errorf("%v allocations, more than to read one text takes", allocs)
	}
}

func TestCompile_invalidPattern(t *testing.T) {
	p := Compile(grant.Exec{Name: "git", Argv: []string{"{branch}"}, Params: []grant.Param{{Name: "branch", Pattern: ".*)(", MaxLength: 8}}})
	_, err := p.Parse([]byte(`{"params":{"branch":"x"}}`))
	if got := errorText(err); got != "NOT_GRANTED: exec.git: branch does not match its pattern" {
		t.Errorf("got %q", got)
	}
}

func makePipe(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: this system has no such pipes")
	}
	if out, err := exec.Command("mkfifo", "-m", "600", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
