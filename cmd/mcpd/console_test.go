package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestConsole opens the console of a real server, calls a tool in it, and ends it.
func TestConsole(t *testing.T) {
	t.Parallel()
	a := newAttachable(t)
	cmd := exec.Command(a.program, "console", "--no-open")
	cmd.Dir, cmd.Env = a.dir, a.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	address, printed := strings.CutPrefix(strings.TrimSpace(line), "console: ")
	if err != nil || !printed {
		t.Fatalf("console printed %q: %v\n%s", line, err, stderr.String())
	}
	at, err := url.Parse(address)
	if err != nil || len(at.Path) < len("/0123456789012345678901/") {
		t.Fatalf("the path of %s is no secret: %v", address, err)
	}
	origin := "http://" + at.Host
	base := origin + strings.TrimSuffix(at.Path, "/")
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: patience}
	defer client.CloseIdleConnections()
	read := func(response *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d: %v\n%s", response.Request.URL.Path, response.StatusCode, err, body)
		}
		return string(body)
	}
	get := func(path string) string {
		t.Helper()
		return read(client.Get(base + path))
	}
	read(client.Get(address))
	for path, want := range map[string]string{"/": "2 tools", "/items": "probe", "/policies": "probe", "/upstreams": "no upstream servers", "/access": "API keys", "/calls": "Live calls"} {
		if page := get(path); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, page)
		}
	}
	page := get("/item?kind=tool&address=probe")
	token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)
	if token == nil || !strings.Contains(page, "tools.hcl:1") {
		t.Fatalf("the page of the tool:\n%s", page)
	}
	form := url.Values{"csrf": {token[1]}, "mode": {"json"}, "json": {"{}"}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/item/try?kind=tool&address=probe", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", origin)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(r)
	read(response, err)
	events := read(client.Get(origin + response.Request.URL.Path + "/events"))
	if !strings.Contains(events, "version 1") || !strings.Contains(events, "event: done") {
		t.Errorf("events of the call:\n%s", events)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("console ended with %v\n%s", err, stderr.String())
	}
}

func TestConsole_errors(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), []string{"XDG_STATE_HOME=" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"console"}, exitFindings, "tools.d not found; run this in the folder of the files of the server"},
		{[]string{"console", "--tools", "."}, exitFindings, "start one with mcpd serve"},
		{[]string{"console", "--port", "70000"}, exitUsage, "--port takes a port"},
		{[]string{"console", "x"}, exitUsage, "takes no operand"},
		{[]string{"console", "--control", "off"}, exitUsage, "--control"},
	} {
		var out, errs bytes.Buffer
		e.stdout, e.stderr = &out, &errs
		if code := run(e, row.args); code != row.code || !strings.Contains(errs.String(), row.want) || out.Len() > 0 {
			t.Errorf("%v: code %d, output %q, %q", row.args, code, out.String(), errs.String())
		}
	}
}

// A desktop client starts the command of the copied configuration, with another PATH than a shell.
func TestOwnCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "mcpd-1.2")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(program, link); err != nil {
		t.Skip(err)
	}
	for _, row := range []struct {
		name, executable string
		inPath           bool
		want             string
	}{
		{"in PATH", program, true, "mcpd"},
		{"not in PATH", program, false, program},
		{"linked", link, false, program},
		{"removed", filepath.Join(dir, "gone"), false, "mcpd"},
		{"unknown", "", false, "mcpd"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := env{process: process{executable: row.executable}}
			e.executables.find = func(name string) error {
				if name != "mcpd" {
					t.Errorf("looked for %q", name)
				}
				if row.inPath {
					return nil
				}
				return os.ErrNotExist
			}
			if got := e.ownCommand(); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// The arguments of the browser, which other users see, have neither the secret path nor the token.
func TestOpenAddress(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(e.process.dir, "s.sock.4321.html")
	var opened string
	e.executables.open = func(path string) error {
		opened = path
		return nil
	}
	if err := openAddress(e, page, "http://127.0.0.1:4321/s3cret/?token=abc"); err != nil || opened != page {
		t.Fatalf("opened %q: %v", opened, err)
	}
	content, err := os.ReadFile(page)
	info, statErr := os.Stat(page)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || !bytes.Contains(content, []byte(`href="http://127.0.0.1:4321/s3cret/?token=abc"`)) {
		t.Errorf("mode %v, %q, %v", info.Mode(), content, err)
	}
}
