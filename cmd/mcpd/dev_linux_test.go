package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// devTerminal is mcpd dev on a pseudo-terminal.
type devTerminal struct {
	cmd    *exec.Cmd
	master *os.File
	slave  *os.File
	before syscall.Termios

	mu   sync.Mutex
	seen strings.Builder // all output
	next int             // of what await has not examined
	news chan struct{}
}

func startDevTerminal(t *testing.T, dir string, width, height int, variables ...string) *devTerminal {
	t.Helper()
	return startInTerminal(t, dir, width, height, []string{buildDaemon(t), "dev", "--listen", "127.0.0.1:0"}, variables...)
}

// startInTerminal starts a program on a pseudo-terminal, as the leader of its session.
func startInTerminal(t *testing.T, dir string, width, height int, argv []string, variables ...string) *devTerminal {
	t.Helper()
	master, name := openTerminal(t)
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &devTerminal{master: master, slave: slave, news: make(chan struct{}, 1)}
	t.Cleanup(func() { slave.Close() })
	d.resize(t, width, height)
	d.before = d.termios(t)
	d.cmd = exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	d.cmd.Dir = dir
	d.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "TERM=xterm", slackMark+"=1")
	d.cmd.Env = append(d.cmd.Env, variables...)
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = slave, slave, slave
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := master.Read(buffer)
			if err != nil {
				return
			}
			d.mu.Lock()
			d.seen.Write(buffer[:n])
			d.mu.Unlock()
			notify(d.news)
		}
	}()
	return d
}

func (d *devTerminal) ioctl(t *testing.T, request uintptr, value unsafe.Pointer) {
	t.Helper()
	if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, d.slave.Fd(), request, uintptr(value)); err != 0 {
		t.Fatal(err)
	}
}

func (d *devTerminal) resize(t *testing.T, width, height int) {
	t.Helper()
	size := [4]uint16{uint16(height), uint16(width)}
	d.ioctl(t, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func (d *devTerminal) termios(t *testing.T) (now syscall.Termios) {
	t.Helper()
	d.ioctl(t, syscall.TCGETS, unsafe.Pointer(&now))
	return now
}

// await waits until the terminal shows a match of a pattern after the last one, and returns it.
func (d *devTerminal) await(t *testing.T, pattern string) string {
	t.Helper()
	wanted, deadline := regexp.MustCompile(pattern), time.After(patience)
	for {
		d.mu.Lock()
		text := d.seen.String()
		at := wanted.FindStringIndex(text[d.next:])
		if at != nil {
			found := text[d.next+at[0] : d.next+at[1]]
			d.next += at[1]
			d.mu.Unlock()
			return found
		}
		d.mu.Unlock()
		select {
		case <-d.news:
		case <-deadline:
			t.Fatalf("the terminal does not show %s:\n%q", pattern, text)
		}
	}
}

func (d *devTerminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := d.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// ended requires that the process ends with exit code 0, and that the terminal is as before.
func (d *devTerminal) ended(t *testing.T) {
	t.Helper()
	d.await(t, regexp.QuoteMeta(closeScreen))
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("mcpd dev exited with %v", err)
	}
	d.mu.Lock()
	text := d.seen.String()
	d.mu.Unlock()
	if d.termios(t) != d.before {
		t.Error("the terminal is not as before")
	}
	if strings.LastIndex(text, closeScreen) < strings.LastIndex(text, openScreen) {
		t.Errorf("the view was not closed: %q", text)
	}
}

func TestDev_terminal(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "tests  1 passed, 0 failed")
	if d.termios(t) == d.before {
		t.Error("keys are echoed")
	}
	save("tools.d/a.hcl", devTool, "a", 2)
	d.await(t, "tests  0 passed, 1 failed")
	d.await(t, "failed tests")
	save("tools.d/a.hcl", "tool")
	d.await(t, "files  1 error; the last good files are live")
	d.await(t, "tools.d/a.hcl:1:")
	save("tools.d/a.hcl", devTool, "a", 1)
	d.await(t, "tests  1 passed, 0 failed")
	d.press(t, "\x1b[A?")
	d.await(t, "r   run all tests again")
	d.press(t, "?")
	d.resize(t, 30, 10)
	d.await(t, `\? help   r rerun tests   c ca…`)
	d.resize(t, 100, 30)
	d.await(t, "c call a tool   l full text   o console   q quit")
	save("tools.d/b.hcl", devTool, "b", 1)
	d.await(t, "tests  2 passed, 0 failed; 1 ran")
	d.press(t, "?")
	d.await(t, "r   run all tests again")
	d.press(t, "r") // closes the help
	d.await(t, "tests  2 passed, 0 failed; 2 ran.*\r\n\\S*\r\n\\S*calls")
	d.press(t, "q")
	d.ended(t)
}

// The key c lists the tools, asks again for a wrong name or file, calls the running server, and records
// a call only if the user wants that.
func TestDev_call(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "double", 1)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "tests  1 passed, 0 failed")
	d.press(t, "c")
	d.await(t, `\n  double\r\n`)
	d.await(t, "Tool:")
	d.press(t, "doubel\n")
	d.await(t, `no tool "doubel" is served; did you mean "double"\?`)
	d.await(t, "Tool:")
	d.press(t, "dou\t\n")
	d.await(t, `n \(number, required\)`)
	d.press(t, "41\n")
	d.await(t, `\n42\r\n`)
	d.await(t, `Record a test of this call\? \[y/n\]`)
	d.press(t, "y\ntools.d/typed.hcl\n") // the name is typed before the question, and dropped
	d.await(t, "Trying the test")
	for _, wrong := range []string{"recorded.txt", "tools.d/none/recorded.hcl"} {
		d.await(t, `File \[.*recorded.hcl\]:`)
		d.press(t, wrong+"\n")
		d.await(t, "name a .hcl file|directory tools.d/none not found")
	}
	d.await(t, `File \[.*recorded.hcl\]:`)
	d.press(t, "\n")
	d.await(t, "recorded test")
	d.await(t, "Press Enter")
	d.press(t, "\n")
	d.await(t, regexp.QuoteMeta(openScreen))
	d.await(t, `calls\S*\s+.*ok .* double by `)
	d.await(t, "tests  2 passed, 0 failed")
	file := filepath.Join(dir, "tools.d", "recorded.hcl")
	before, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(before), "n = 41") {
		t.Errorf("%v: %s", err, before)
	}
	d.press(t, "c")
	d.await(t, "Tool:")
	d.press(t, strings.Repeat("\x1b[A", 5)+"\n") // the name of the first dialog; empty lines are not kept
	d.await(t, `n \(number, required\)`)
	d.press(t, "many\n")
	d.await(t, `/n must be a number, not a string. Keep this answer\? \[y/n\]`)
	d.press(t, "y\n")
	d.await(t, "INVALID_INPUT: ")
	d.await(t, "Record a test that expects the error INVALID_INPUT")
	d.press(t, "n\n")
	d.await(t, "INVALID_INPUT .* double by ")
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("a failed call was recorded: %v: %s", err, after)
	}
	d.press(t, string(rune(ctrlC)))
	d.ended(t)
}

// A paste is one answer, however long it is and whatever lines it has. Keys that are typed before a
// question of consequence do not answer it. An answer is never cut.
func TestDev_paste(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", `tool "measure" {
  timeout = "30s"
  input "text" { type = string }
  input "n" { type = number }
  run = "return input.text.length + ' characters, ' + input.text.split('\\n').length + ' lines';"
}
test "of measure" {
  tool  = "measure"
  input = { text = "a", n = 1 }
  expect { output = "1 characters, 1 lines" }
}
`)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "tests  1 passed, 0 failed")
	paste := func(text string) { d.press(t, pasteStart+text+pasteEnd) }
	paste("q") // the view ignores it
	d.press(t, "c")
	d.await(t, regexp.QuoteMeta(pasteOn))
	d.await(t, "Tool:")
	paste("measure\r")
	d.await(t, "measure\u2424")
	d.press(t, "\r")
	d.await(t, `text \(string`)
	paste("a\x1b[2Jb\x03\x1a")
	d.await(t, "paste refused: it contains control characters")
	d.press(t, strings.Repeat("k", maxEdited+1)+"\r")
	d.await(t, "too long: the keyboard takes 4096 characters")
	paste(strings.Repeat("line\r", 4000))
	d.press(t, "end\r")
	d.await(t, `n \(number`)
	d.press(t, "many\ry\r")
	d.await(t, `Keep this answer\? \[y/n\]`)
	d.press(t, "n\r")
	d.await(t, ">")
	d.press(t, "1\ry\ry\r")
	d.await(t, "20003 characters, 4001 lines")
	d.await(t, `Record a test of this call\? \[y/n\]`)
	paste("y\r")
	d.await(t, "y\u2424")
	d.press(t, string(rune(ctrlC)))
	d.await(t, newLine+regexp.QuoteMeta(pasteOn+openScreen)) // the next prompt begins on its own line
	if entries, err := os.ReadDir(filepath.Join(dir, "tools.d")); err != nil || len(entries) != 1 {
		t.Errorf("%v, a paste recorded a test: %v", err, entries)
	}
	d.press(t, "q")
	d.await(t, regexp.QuoteMeta(pasteOff))
	d.ended(t)
}

// While tests run before the files are served, the view and the key c say so, and q quits.
func TestDev_testsBeforeServing(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("mcpd.hcl", "reload { require_tests = true }\n")
	save("tools.d/a.hcl", `tool "slow" {
  timeout = "10m"
  run     = "await new Promise(() => setTimeout(() => {}, 300000));"
}
test "of slow" {
  tool = "slow"
  expect { output = null }
}
`)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "not served yet")
	d.await(t, `tests  running before the files are served \(require_tests\)`)
	d.press(t, "c")
	d.await(t, "nothing is served yet: require_tests is set, and the tests are running")
	d.press(t, "\r")
	d.await(t, regexp.QuoteMeta(openScreen))
	d.press(t, "q")
	d.ended(t)
}

// A narrow terminal wraps the log. The key l prints all of it.
func TestDev_fullText(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	save("tools.d/log.hcl", "tool \"log\" {\n  timeout = \"30s\"\n  run = \"log.warn('the cause: ' + 'why '.repeat(200) + 'at last'); return 1;\"\n}\n")
	d := startDevTerminal(t, dir, 50, 30)
	url := strings.TrimSpace(d.await(t, `http://[^/]+/`))
	d.await(t, "tests  1 passed")
	if code, stdout, stderr := inProcess(t, dir, nil, "call", "log", "--url", url); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	d.await(t, "  why why .*…")
	d.press(t, "l")
	d.await(t, "the cause: (why ){200}at last")
	d.await(t, "Press Enter")
	d.press(t, "\n")
	d.await(t, regexp.QuoteMeta(openScreen))
	d.press(t, "q")
	d.ended(t)
}

// Ctrl-C at a prompt or during a call returns to the view. The server continues.
func TestDev_callInterrupted(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	save("tools.d/slow.hcl", `tool "slow" {
  timeout = "10m"
  run     = "progress(1); await new Promise(() => setTimeout(() => {}, 300000));"
}
`)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "tests  1 passed, 0 failed")
	for _, typed := range []string{"", "a\n", "slow\n"} {
		d.press(t, "c")
		d.await(t, "Tool:")
		d.press(t, typed)
		d.await(t, map[string]string{"a\n": `n \(number`, "slow\n": "progress: 1"}[typed])
		d.press(t, string(rune(ctrlC)))
		d.await(t, regexp.QuoteMeta(openScreen))
	}
	d.await(t, "cancelled .* slow by ")
	d.press(t, "r")
	d.await(t, "tests  1 passed, 0 failed; 1 ran")
	d.press(t, "l") // the log, too
	d.await(t, "calls\r\n(.*\r\n)+\r\nPress Enter")
	d.mu.Lock()
	if text := d.seen.String(); strings.Contains(text, "call failed") || strings.Contains(text, "EXECUTION_ERROR") {
		t.Errorf("a cancelled call failed: %q", text)
	}
	d.mu.Unlock()
	d.press(t, "\r")
	d.await(t, regexp.QuoteMeta(openScreen))
	d.press(t, "q")
	d.ended(t)
}

// The browser gets the path of a page with the address that the view shows.
func TestDev_console(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", "tool")
	desktop := t.TempDir()
	opened := filepath.Join(desktop, "opened")
	browser := "#!/bin/sh\ncat \"$1\" > " + opened + ".whole && mv " + opened + ".whole " + opened + "\n"
	if err := os.WriteFile(filepath.Join(desktop, "xdg-open"), []byte(browser), 0o755); err != nil {
		t.Fatal(err)
	}
	d := startDevTerminal(t, dir, 50, 30, "PATH="+desktop+":"+os.Getenv("PATH"))
	d.await(t, "nothing is served")
	d.press(t, "?")
	d.await(t, "r   run all tests again")
	d.press(t, "o") // closes the help
	d.await(t, "opens when the files are served")
	save("tools.d/a.hcl", devTool, "a", 1)
	var before string
	for range 2 {
		address := before
		for address == before { // the view may show it again
			address = d.await(t, `http://127.0.0.1:[0-9]+/[-_0-9A-Za-z]{26}/\?token=[-_0-9A-Za-z]{26}`)
		}
		before = address
		var page []byte
		for deadline := time.Now().Add(patience); len(page) == 0; time.Sleep(pollPause) {
			page, _ = os.ReadFile(opened)
			if time.Now().After(deadline) {
				t.Fatal("no browser was started")
			}
		}
		if !strings.Contains(string(page), `href="`+address+`"`) {
			t.Errorf("the browser opened %s", page)
		}
		b := newConsoleBrowser(t, address)
		if status, text := b.get("/"); status != http.StatusOK || !strings.Contains(text, "1 tool") {
			t.Errorf("the overview: %d %s", status, text)
		}
		if err := os.Remove(opened); err != nil {
			t.Fatal(err)
		}
		d.press(t, "o")
	}
	d.await(t, "Esc hides it")
	d.press(t, "\x1b")
	d.await(t, "tests  1 passed.*\r\n\\S*\r\n\\S*calls")
	d.press(t, "q")
	d.ended(t)
}

// A signal restores the terminal, also while the user is asked, and before the server has started. A
// hangup ends mcpd dev, which has no terminal then.
func TestDev_signals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal      syscall.Signal
		shown, keys string
	}{
		"view":         {syscall.SIGTERM, "tests  1 passed", ""},
		"dialog":       {syscall.SIGINT, "tests  1 passed", "c"},
		"hangup":       {syscall.SIGHUP, "tests  1 passed", ""},
		"start":        {syscall.SIGTERM, regexp.QuoteMeta(openScreen), ""},
		"start hangup": {syscall.SIGHUP, regexp.QuoteMeta(openScreen), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, save := devDir(t)
			save("tools.d/a.hcl", devTool, "a", 1)
			d := startDevTerminal(t, dir, 100, 30)
			d.await(t, c.shown)
			if c.keys != "" {
				d.press(t, c.keys)
				d.await(t, "Tool:")
			}
			if err := d.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			d.await(t, regexp.QuoteMeta(pasteOff))
			if c.keys != "" {
				d.next = 0 // the view was closed before
			}
			d.ended(t)
		})
	}
}

// SIGQUIT restores the terminal before the runtime prints the goroutines.
func TestDev_quitSignal(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "tests  1 passed")
	if err := d.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	d.await(t, regexp.QuoteMeta(closeScreen))
	d.await(t, "SIGQUIT: quit")
	if err := d.cmd.Wait(); err == nil {
		t.Error("mcpd dev exited with 0")
	}
	if d.termios(t) != d.before {
		t.Error("the terminal is not as before")
	}
}

// After Ctrl-Z, the shell has a usable terminal. The view returns with mcpd dev.
func TestDev_stoppedByShell(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	const shell = `set -m; "$0" dev --listen 127.0.0.1:0; echo has stopped; read line; echo "read $line"; fg; echo stopped again; read line; fg`
	d := startInTerminal(t, dir, 100, 30, []string{"sh", "-c", shell, buildDaemon(t)})
	d.await(t, "tests  1 passed")
	d.press(t, string(rune(ctrlZ)))
	d.await(t, regexp.QuoteMeta(closeScreen))
	d.await(t, "has stopped")
	if d.termios(t) != d.before {
		t.Error("the terminal is not as before")
	}
	d.press(t, "a line\n")
	d.await(t, "read a line")
	d.await(t, regexp.QuoteMeta(openScreen))
	d.await(t, "tests  1 passed")
	if d.termios(t) == d.before {
		t.Error("keys are echoed")
	}
	d.press(t, "c")
	d.await(t, "Tool:")
	d.press(t, "abc")
	d.await(t, "abc")
	d.press(t, string(rune(ctrlZ)))
	d.await(t, regexp.QuoteMeta(pasteOff))
	d.await(t, "stopped again")
	if d.termios(t) != d.before {
		t.Error("the terminal is not as before")
	}
	d.press(t, "\n")
	d.await(t, regexp.QuoteMeta(pasteOn))
	d.await(t, "Tool: abc")
	d.press(t, string(rune(ctrlC)))
	d.await(t, regexp.QuoteMeta(openScreen))
	d.press(t, "q")
	d.ended(t)
}

// A signal to continue takes the terminal again, and a signal to stop without a shell returns to the
// view.
func TestDev_continued(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	d := startDevTerminal(t, dir, 100, 30)
	d.await(t, "tests  1 passed")
	d.ioctl(t, syscall.TCSETS, unsafe.Pointer(&d.before)) // as a shell does
	for _, s := range []syscall.Signal{syscall.SIGCONT, syscall.SIGTSTP} {
		if err := d.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		d.await(t, regexp.QuoteMeta(openScreen))
		d.await(t, "tests  1 passed")
		if d.termios(t) == d.before {
			t.Errorf("keys are echoed after %v", s)
		}
	}
	d.press(t, "q")
	d.ended(t)
}

// A dumb terminal gets lines.
func TestDev_dumbTerminal(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	d := startDevTerminal(t, dir, 100, 30, "TERM=dumb")
	d.await(t, "tests   1 passed, 0 failed")
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("mcpd dev exited with %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if text := d.seen.String(); strings.Contains(text, "\x1b") {
		t.Errorf("the terminal got %q", text)
	}
}

// An error restores the terminal before it is printed.
func TestDev_errorRestoresTerminal(t *testing.T) {
	t.Parallel()
	dir, _ := devDir(t)
	if err := os.Remove(filepath.Join(dir, "tools.d")); err != nil {
		t.Fatal(err)
	}
	d := startDevTerminal(t, dir, 80, 24)
	d.await(t, regexp.QuoteMeta(closeScreen))
	d.await(t, "mcpd: directory ./tools.d not found")
	if err := d.cmd.Wait(); err == nil {
		t.Error("mcpd dev exited with 0")
	}
	if d.termios(t) != d.before {
		t.Error("the terminal is not as before")
	}
}

// Root writes no types into the directory of another user.
func TestDev_rootInDirectoryOfUser(t *testing.T) {
	t.Parallel()
	dir, save := devDir(t)
	save("tools.d/a.hcl", devTool, "a", 1)
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Skipf("SKIPPED: only root changes owners: %v", err)
	}
	w := startStdio(t, buildDaemon(t), dir, append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), "dev", "--listen", "127.0.0.1:0")
	w.hear(t, "types   not written: . belongs to another user, so root does not write there")
	w.hear(t, "tests   1 passed, 0 failed")
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t)
	if entries, err := os.ReadDir(filepath.Join(dir, ".mcpd")); err == nil {
		t.Errorf("mcpd wrote %v", entries)
	}
}

// A panic in a part of the view closes it before the runtime prints the panic.
func TestDevScreen_closedOnPanic(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out lockedBuffer
	restored := 0
	e.stdout, e.stdinIsTerminal = &out, true
	e.raw = func() (func() error, error) { return func() error { restored++; return nil }, nil }
	e.size = func() (int, int, error) { return 80, 24, nil }
	screen := &devScreen{env: e}
	if err := screen.open(); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		defer screen.close()
		_ = screen.draw(func(int, int) []row { panic("in the view") })
	}()
	screen.close()
	if err := screen.open(); err != nil || restored != 1 || !strings.HasSuffix(out.String(), closeScreen) {
		t.Errorf("%v, restored %d times: %q", err, restored, out.String())
	}
}
