package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sandbox is a directory with an mcpd.hcl and a tools.d.
type sandbox struct{ dir string }

// newSandbox returns a sandbox with one tool.
func newSandbox(t *testing.T) sandbox {
	t.Helper()
	// Sockets need a short path.
	dir, err := os.MkdirTemp("", "mcpd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := sandbox{dir}
	s.write(t, "tools.d/a.hcl", "tool \"a\" {\n  run = \"return 1;\"\n}\n")
	return s
}

func (s sandbox) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// env returns the environment of an mcpd in the sandbox.
func (s sandbox) env(more ...string) []string {
	return append(append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(s.dir, "state")), more...)
}

// run runs mcpd in the sandbox: verbs in this process, a server in its own process.
func (s sandbox) run(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if args[0] == "serve" {
		cmd := exec.Command("mcpd", args...)
		var out, errs bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env(env...), &out, &errs
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	return inProcess(t, s.dir, s.env(env...), args...)
}

// holds lists the files of the sandbox.
func (s sandbox) holds(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(s.dir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(name, s.dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// badStarts are starts of mcpd serve that fail: the setup, the flags, the exit code and
// the error line.
var badStarts = map[string]struct {
	file, text string
	args, env  []string
	code       int
	// first is a line with the position, if any; line is the last line.
	first, line string
}{
	"an unknown flag":                                 {args: []string{"--lisen", "x"}, code: 2, line: `unknown flag: --lisen; see mcpd serve --help`},
	"an operand":                                      {args: []string{"tools.d"}, code: 2, line: `mcpd serve takes no operand "tools.d"; see mcpd serve --help`},
	"a port that is none":                             {args: []string{"--listen", "127.0.0.1:99999"}, code: 2, line: `--listen takes a port from 0 to 65535, not 99999`},
	"an address that is none":                         {args: []string{"--listen", "8080"}, code: 2, line: `--listen takes HOST:PORT, such as 127.0.0.1:8080, or unix:PATH`},
	"a grace that is negative":                        {args: []string{"--grace", "-1s"}, code: 2, line: `--grace must not be negative`},
	"an executor that is none":                        {args: []string{"--executor", "x"}, code: 2, line: `--executor takes worker or inline`},
	"a level that is none":                            {args: []string{"--log-level", "loud"}, code: 2, line: `--log-level takes debug, info, warn or error`},
	"a variable without a value":                      {args: []string{"--var", "x"}, code: 2, line: `--var takes NAME=VALUE`},
	"a folder that is not there":                      {args: []string{"--tools", "gone"}, code: 2, line: `directory gone not found`},
	"a folder that is a file":                         {args: []string{"--tools", "tools.d/a.hcl"}, code: 2, line: `tools.d/a.hcl is a file; name its directory`},
	"a config that is not there":                      {args: []string{"--config", "gone.hcl"}, code: 2, line: `read configuration file: stat gone.hcl: no such file or directory`},
	"a config that is broken":                         {file: "mcpd.hcl", text: "servr {}\n", code: 2, line: `1 error in the files`},
	"a config without an end":                         {file: "mcpd.hcl", text: "server {\n", code: 2, line: `1 error in the files`},
	"a config of other bytes":                         {file: "mcpd.hcl", text: "\x00\xff\n", code: 2, line: `\d+ errors? in the files`},
	"a config that is a folder":                       {file: "mcpd.hcl/x", code: 2, line: `1 error in the files`},
	"a variable that has no value":                    {file: "mcpd.hcl", text: "variable \"v\" { type = string }\n", code: 2, line: `1 error in the files`},
	"a variable of another type":                      {file: "mcpd.hcl", text: "variable \"v\" { type = number }\n", env: []string{"MCPD_VAR_v=x"}, code: 2, line: `1 error in the files`},
	"an address of no host":                           {file: "mcpd.hcl", text: "listen { address = \"x\" }\n", code: 2, line: `1 error in the files`},
	"an open address in a config":                     {file: "mcpd.hcl", text: "listen { address = \"0.0.0.0:0\" }\n", code: 2, first: `mcpd.hcl:1:20: error: "0.0.0.0:0" is not a loopback address`, line: `1 error in the files`},
	"an open address that lets in who proves nothing": {file: "mcpd.hcl", text: "listen {\n  address = \"[::]:0\"\n}\nauth \"anonymous\" \"all\" {}\n", code: 2, first: `mcpd.hcl:2:13: error: "\[::\]:0" is not a loopback address`, line: `1 error in the files`},
	"a tls block without its files":                   {file: "mcpd.hcl", text: "listen {\n  tls {\n    cert_file = \"c\"\n    key_file  = \"k\"\n  }\n}\n", code: 2, first: `mcpd.hcl:2:3: error: the tls block cannot be applied: .*c: no such file`, line: `1 error in the files`},
	"an auth block without its keys":                  {file: "mcpd.hcl", text: "auth \"api_key\" \"x\" {}\n", code: 2, first: `mcpd.hcl:1:1: error: auth "api_key" "x" cannot be applied`, line: `1 error in the files`},
	"an auth block of no provider":                    {file: "mcpd.hcl", text: "auth \"oidc\" \"x\" {\n  issuer   = \"login\"\n  audience = \"https://a.example\"\n}\n", code: 2, first: `mcpd.hcl:2:14: error: `, line: `1 error in the files`},
	"an auth block of no kind":                        {file: "mcpd.hcl", text: "auth \"magic\" \"x\" {}\n", code: 2, first: `mcpd.hcl:1:\d+: error: `, line: `1 error in the files`},
	"an audit block without a path":                   {file: "mcpd.hcl", text: "audit {}\n", code: 2, first: `mcpd.hcl:1:\d+: error: `, line: `1 error in the files`},
	"an audit block of no mode":                       {file: "mcpd.hcl", text: "audit {\n  path = \"a.jsonl\"\n  mode = \"loud\"\n}\n", code: 2, first: `mcpd.hcl:3:10: error: `, line: `1 error in the files`},
	"an audit log that is a folder":                   {file: "mcpd.hcl", text: "audit { path = \"tools.d\" }\n", code: 2, first: `mcpd.hcl:1:1: error: calls cannot be audited: .*tools.d: not a regular file with one name`, line: `1 error in the files`},
	"an audit log among the tools":                    {file: "mcpd.hcl", text: "audit { path = \"tools.d/a.jsonl\" }\n", code: 2, first: `mcpd.hcl:1:1: error: calls cannot be audited: the log is in the tools directory`, line: `1 error in the files`},
	"an audit log below a file":                       {file: "mcpd.hcl", text: "audit { path = \"tools.d/a.hcl/x/a.jsonl\" }\n", code: 2, first: `mcpd.hcl:1:1: error: calls cannot be audited: .*a.hcl is not a directory`, line: `1 error in the files`},
	"traces that go nowhere":                          {env: []string{"OTEL_TRACES_EXPORTER=loud"}, code: 2, line: `new server: environment variable OTEL_TRACES_EXPORTER: write otlp, console or none`},
	"traces that are sent at no time":                 {env: []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_BSP_SCHEDULE_DELAY=soon"}, code: 2, line: `new server: environment variable OTEL_BSP_SCHEDULE_DELAY: write a whole number from 1 to 3600000`},
	"a broken tool":                                   {file: "tools.d/b.hcl", text: "tool \"b\" {\n  run = \"return (;\"\n}\n", code: 1, line: `1 error in the files`},
	"a tool that is there twice":                      {file: "tools.d/b.hcl", text: "tool \"a\" {\n  run = \"return 2;\"\n}\n", code: 1, line: `1 error in the files`},
	"an open address":                                 {args: []string{"--listen", "0.0.0.0:0"}, code: 2, line: `listen on "0.0.0.0:0": it is not a loopback address.*--insecure-listen`},
	"an address that is taken":                        {args: []string{"--listen", "$TAKEN"}, code: 1, line: `listen tcp .*: bind: address already in use; choose another address with --listen`},
	"a socket that is a file":                         {args: []string{"--listen", "unix:tools.d/a.hcl"}, code: 2, line: `listen on "unix:tools.d/a.hcl": there is a file that is not a socket`},
	"a state that is no database":                     {args: []string{"--state", "tools.d/a.hcl"}, code: 2, line: `--state tools.d/a.hcl: open the state store: .*`},
	"a control socket in a file":                      {args: []string{"--control", "tools.d/a.hcl/s"}, code: 2, line: `listen for requests on tools.d/a.hcl/s: .*not a directory`},
	"a control socket on a file":                      {args: []string{"--control", "tools.d/a.hcl"}, code: 2, line: `listen for requests on tools.d/a.hcl: there is a file that is not a socket`},
	"a manager of no address":                         {env: []string{"NOTIFY_SOCKET=relative"}, code: 2, line: `NOTIFY_SOCKET is "relative", .*; unset it, or run mcpd under systemd`},
	"an interval that is none":                        {env: []string{"WATCHDOG_USEC=soon"}, code: 2, line: `WATCHDOG_USEC is "soon", .*; unset it, or run mcpd under systemd`},
}

// Each failed start prints one error and leaves no files.
func TestServe_startErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for name, start := range badStarts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			if start.file != "" {
				s.write(t, start.file, start.text)
			}
			args := []string{"serve"}
			for _, arg := range start.args {
				args = append(args, strings.ReplaceAll(arg, "$TAKEN", taken.Addr().String()))
			}
			if !slices.Contains(start.args, "--listen") && !strings.Contains(start.text, "listen") {
				args = append(args, "--listen", "127.0.0.1:0") // another server may use the default port
			}
			before := s.holds(t)
			code, stdout, stderr := s.run(t, start.env, args...)
			lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
			last := lines[len(lines)-1]
			if code != start.code || !regexp.MustCompile(`\Amcpd: `+start.line+`\z`).MatchString(last) || stdout != "" {
				t.Errorf("exit code %d, want %d; last line\n%s\nwant\nmcpd: %s\n%s%s", code, start.code, last, start.line, stdout, stderr)
			}
			if !regexp.MustCompile(`(?m)^` + start.first).MatchString(stderr) {
				t.Errorf("missing line\n%s\n%s", start.first, stderr)
			}
			if said := strings.Count("\n"+stderr, "\nmcpd: "); said != 1 {
				t.Errorf("the error is printed %d times:\n%s", said, stderr)
			}
			if diff := cmp.Diff(before, s.holds(t)); diff != "" {
				t.Errorf("files remain (-before +after)\n%s", diff)
			}
		})
	}
}

// badEdits are edits that cannot be loaded, and the resulting status.
var badEdits = []struct{ file, text, health string }{
	{"tools.d/b.hcl", "tool \"b\" {\n  run = \"return (;\"\n}\n", "serving last good, 1 file broken"},
	{"tools.d/b.hcl", "tool \"b\" {\n", "serving last good, 1 file broken"},
	{"tools.d/b.hcl", "\x00\xff\n", "serving last good, 1 file broken"},
	{"tools.d/b.hcl", "tool \"a\" {\n  run = \"return 2;\"\n}\n", "serving last good, 1 file broken"},
	{"tools.d/b.hcl", "policy \"p\" {\n  deny = \"args.x == 1\"\n  reason = \"x\"\n}\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "servr {}\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "variable \"v\" { type = string }\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "listen { address = \"x\" }\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "listen {\n  tls { cert_file = \"c\" }\n}\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "auth \"api_key\" \"x\" { file = \"gone\" }\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "auth \"magic\" \"x\" {}\n", "serving last good, 1 file broken"},
	{"mcpd.hcl", "audit { mode = \"loud\" }\n", "serving last good, 1 file broken"},
	{"tools.d/c/b.hcl.json", "{\"tool\": ", "serving last good, 1 file broken"},
}

// All edits are made to one server. After each edit a reload fails, a call succeeds and
// status reports the error.
func TestReload_keepsStateOnError(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write(t, "mcpd.hcl", "reload { watch = false }\n")
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	d, err := startDaemon(program, s.dir, s.env(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	for _, edit := range badEdits {
		before, _ := os.ReadFile(filepath.Join(s.dir, edit.file))
		s.write(t, edit.file, edit.text)
		if code, _, stderr := s.run(t, nil, "reload"); code != 1 || !strings.HasSuffix(stderr, "nothing was changed; "+edit.health+"\n") {
			t.Errorf("%s %q: reload exits with %d\n%s", edit.file, edit.text, code, stderr)
		}
		if code, stdout, stderr := s.run(t, nil, "call", "a", "--url", d.url); code != 0 || stdout != "1\n" {
			t.Errorf("%s %q: call exits with %d\n%s%s", edit.file, edit.text, code, stdout, stderr)
		}
		if code, stdout, stderr := s.run(t, nil, "status"); code != 1 || !strings.Contains(stdout, edit.health) {
			t.Errorf("%s %q: status exits with %d\n%s%s", edit.file, edit.text, code, stdout, stderr)
		}
		if before == nil {
			err = os.Remove(filepath.Join(s.dir, edit.file))
		} else {
			err = os.WriteFile(filepath.Join(s.dir, edit.file), before, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := s.run(t, nil, "reload"); code != 0 {
			t.Fatalf("%s: fixed, reload exits with %d\n%s", edit.file, code, stderr)
		}
	}
	if code, _, stderr := s.run(t, nil, "status"); code != 0 {
		t.Errorf("finally, status exits with %d\n%s", code, stderr)
	}
}
