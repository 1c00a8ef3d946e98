package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// mcpd is the program under test: $MCPD, or a build of this repository.
var mcpd = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("MCPD"); path != "" {
		return filepath.Abs(path)
	}
	folder, err := os.MkdirTemp("", "mcpd")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "mcpd")
	build := exec.Command("go", "build", "-C", "../../../..", "-o", path, "./cmd/mcpd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// shop is a project with a server that runs: the files of testdata/shop, and testdata/crm as an
// upstream server.
type shop struct {
	t         *testing.T
	dir       string
	program   string
	url       string             // of the server
	key       string             // of the principal robot
	warehouse chan chan<- string // requests of the tool report, which wait for their answer
}

// newShop starts the server. Changes edit the files before.
func newShop(t *testing.T, changes ...func(*shop)) *shop {
	t.Helper()
	program, err := mcpd()
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, dir: t.TempDir(), program: program, warehouse: make(chan chan<- string, 8)}
	warehouse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := make(chan string, 1)
		s.warehouse <- answer
		select {
		case text := <-answer:
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { warehouse.CloseClientConnections(); warehouse.Close() })
	for name, folder := range map[string]string{"testdata/shop": "", "testdata/crm": "crm"} {
		if err := os.CopyFS(filepath.Join(s.dir, folder), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.edit("tools.d/report.hcl", "127.0.0.1:8000", strings.TrimPrefix(warehouse.URL, "http://"))
	s.edit("mcpd.hcl", `"mcpd"`, fmt.Sprintf("%q", program))
	s.key = strings.TrimSpace(s.run("key", "new", "robot", "--file", "keys.json", "--scopes", "orders"))
	for _, change := range changes {
		change(s)
	}
	line := s.start(`on (http://[0-9.:]+)/mcp`, "serve", "--listen", "127.0.0.1:0", "--grace", "1s")
	s.url = line
	return s
}

// command returns a command of mcpd in the folder of the project.
func (s *shop) command(args ...string) *exec.Cmd {
	c := exec.Command(s.program, args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(s.dir, "state"))
	return c
}

// run runs a command and returns its standard output.
func (s *shop) run(args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("mcpd %s: %v: %s", strings.Join(args, " "), err, problems.String())
	}
	return string(out)
}

// start starts a command that runs until the test ends, and returns the group of pattern in its
// output.
func (s *shop) start(pattern string, args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	found, log := make(chan string, 1), new(strings.Builder)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		match := regexp.MustCompile(pattern)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			if m := match.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[1]:
				default:
				}
			}
		}
	}()
	s.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
		<-ended
		_ = c.Wait()
		if !kill.Stop() {
			s.t.Errorf("mcpd %s does not end", args[0])
		}
		if s.t.Failed() {
			s.t.Logf("mcpd %s:\n%s", args[0], log)
		}
	})
	select {
	case text := <-found:
		return text
	case <-ended:
		s.t.Fatalf("mcpd %s ended: %s", args[0], log)
	case <-time.After(patience):
		s.t.Fatalf("mcpd %s is not ready", args[0])
	}
	return ""
}

// console opens the console in a new tab.
func (s *shop) console() *page {
	s.t.Helper()
	url := s.start(`(http://\S+)`, "console", "--no-open")
	p := newPage(s.t)
	p.open(url)
	p.wait("the first page", "/^\\/[^/]+\\/$/.test(location.pathname) && document.readyState === 'complete'")
	p.evaluate("location.href.slice(0, -1)", &p.base) // it ends in a slash
	return p
}

// edit replaces a text in a file.
func (s *shop) edit(file, old, with string) {
	s.t.Helper()
	path := filepath.Join(s.dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		s.t.Fatalf("%s does not contain %q", file, old)
	}
	s.write(file, strings.ReplaceAll(string(text), old, with))
}

func (s *shop) write(file, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// post calls a tool over HTTP, and returns the status and the body of the response.
func (s *shop) post(body, key string) (int, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp/execute", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
