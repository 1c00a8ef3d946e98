package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/ops/systemd"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// env is the outside world: everything that a verb reads from or changes in the
// operating system goes through it. Tests replace the parts they need.
type env struct {
	streams
	vars        variables
	process     process
	service     service
	disk        fileSystem
	executables executables
	// now is the clock.
	now func() time.Time
	// libraryLog sets the destination of package log, which libraries write to.
	libraryLog func(io.Writer)
}

// resolve returns the path to open for a path that a user typed. A relative path starts
// at the working directory of the verb.
func (e env) resolve(name string) string {
	if e.process.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.process.dir, name)
}

// streams are the standard streams of the process.
type streams struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	stdinIsTerminal, stdoutIsTerminal bool
	// color reports whether stderr is a terminal that may show colors: NO_COLOR is
	// unset and TERM is not "dumb".
	color bool
	// raw makes the terminal of stdin pass on each key at once, without showing it, until
	// restore is called. size returns the width and the height of the terminal of stdout.
	raw  func() (restore func() error, err error)
	size func() (width, height int, err error)
}

// variables is the environment of the process.
type variables struct {
	lookup func(name string) (string, bool)
	list   []string // entries of the form NAME=value
}

// process identifies the running process.
type process struct {
	// dir is the working directory of the verb. Empty means the directory of the process.
	dir string
	// executable is the path of this program, empty if unknown. arg0 is the name that
	// the program was started with.
	executable, arg0 string
	pid              int
	host             string // name of the machine; "" if unknown
	// uid and username identify the user who runs the process.
	uid, username string
	// restartWithTimerSlack executes the program again with a larger timer slack, which
	// its threads inherit. It returns if that is not possible or already done. Call it
	// before the process does anything else.
	restartWithTimerSlack func()
}

// service is the control of a running server from outside.
type service struct {
	// manager holds the variables of the service manager. Child processes do not inherit
	// them.
	manager systemd.Env
	// signals returns a context that ends with the first signal to stop, and a
	// channel of the signals to reload. A second signal to stop exits the process
	// at once, with exit code 1.
	signals func() (ctx context.Context, reload <-chan os.Signal, stop func())
	// terminal calls handlers on the signals that concern the terminal of a view, until release is
	// called. A second signal to stop exits the process at once.
	terminal func(terminalHandlers) (release func())
	// stopJob stops the processes that share the terminal, until a shell continues them.
	stopJob func()
}

// terminalHandlers are called on the signals that concern the terminal of a view, one after the other.
type terminalHandlers struct {
	// end gives the terminal back for good. The process is about to end.
	end func()
	// pause gives the terminal back, calls stop, and takes the terminal again. stop returns when the
	// process continues.
	pause func(stop func())
	// resume takes the terminal again: the process was stopped, and a shell may have used the terminal.
	resume func()
}

// executables finds and starts other programs.
type executables struct {
	// find returns an error unless name is an executable: a path or, without a slash,
	// a name in PATH.
	find func(name string) error
	// startWorkers starts the processes that run scripts and reports their sandbox.
	startWorkers func(o worker.Options, path string, argv ...string) (scripting.Executor, worker.Report, error)
	// open opens a file with the program that the desktop of the user has for it, and does not wait
	// for that program.
	open func(path string) error
}

// fileSystem is the part of the file system that verbs read and write.
type fileSystem struct {
	readFile  func(name string) ([]byte, error)
	writeFile func(name string, content []byte, mode os.FileMode) error
	// replaceFile writes a file atomically: a reader sees the old content or the new. An existing file
	// keeps its mode, and a new one follows the umask. writePrivate does so for a file with mode 0600.
	replaceFile  func(name string, content []byte) error
	writePrivate func(name string, content []byte) error
	walk         func(folder string, visit fs.WalkDirFunc) error
	mkdirAll     func(name string, mode os.FileMode) error
	stat         func(name string) (os.FileInfo, error)
	remove       func(name string) error
}

// slackMark is the variable that marks a program that has executed itself again (see
// [osproc.Reexec]).
const slackMark = "MCPD_TIMERSLACK"

// processEnv returns the environment of this process. It removes the variables of the
// service manager from the environment of the process.
func processEnv() env {
	started := os.Environ()
	_ = takeEnv(slackMark)
	manager := systemd.Env{Socket: takeEnv("NOTIFY_SOCKET"), Interval: takeEnv("WATCHDOG_USEC"), Process: takeEnv("WATCHDOG_PID")}
	return env{
		streams: processStreams(),
		vars:    variables{lookup: os.LookupEnv, list: os.Environ()},
		process: currentProcess(started),
		service: service{manager: manager, signals: processSignals, terminal: watchTerminal, stopJob: stopJob},
		disk: fileSystem{
			readFile: os.ReadFile, writeFile: os.WriteFile, replaceFile: replaceFile, writePrivate: writePrivate,
			mkdirAll: os.MkdirAll, stat: os.Stat, walk: filepath.WalkDir, remove: os.Remove,
		},
		executables: executables{
			find: func(name string) error {
				_, err := exec.LookPath(name)
				return err
			},
			startWorkers: startWorkers,
			open:         openFile,
		},
		now: time.Now,
		libraryLog: func(w io.Writer) {
			log.SetFlags(0)
			log.SetOutput(w)
		},
	}
}

// openFile opens a file on the desktop of the user.
func openFile(path string) error {
	argv := []string{"xdg-open", path}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", path}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", path}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the program tells the user of its own errors
	return nil
}

func processStreams() streams {
	_, noColor := os.LookupEnv("NO_COLOR")
	return streams{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		stdinIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		stdoutIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		color:            !noColor && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stderr.Fd())),
		raw: func() (restore func() error, err error) {
			before, err := term.MakeRaw(int(os.Stdin.Fd()))
			return func() error { return term.Restore(int(os.Stdin.Fd()), before) }, err
		},
		size: func() (width, height int, err error) { return term.GetSize(int(os.Stdout.Fd())) },
	}
}

// currentProcess describes the process. A restart of it gets the environment started.
func currentProcess(started []string) process {
	p := process{
		executable: self(), arg0: os.Args[0], pid: os.Getpid(),
		restartWithTimerSlack: func() { osproc.Reexec(os.Args, started, slackMark) },
	}
	p.host, _ = os.Hostname()
	if u, err := user.Current(); err == nil {
		p.uid, p.username = u.Uid, u.Username
	}
	return p
}

// takeEnv returns a variable and removes it from the environment of the process.
func takeEnv(name string) string {
	value := os.Getenv(name)
	_ = os.Unsetenv(name) // fails only for invalid names
	return value
}

// self returns the path of this program. On Linux the path stays valid when the file is
// replaced or removed.
func self() string {
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		return running
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

// ownCommand returns the name with which another program starts this one: mcpd, or the path of this
// program if mcpd is not in PATH.
func (e env) ownCommand() string {
	if e.executables.find("mcpd") == nil {
		return "mcpd"
	}
	path, err := filepath.EvalSymlinks(e.process.executable)
	if err != nil || !filepath.IsAbs(path) {
		return "mcpd"
	}
	return path
}

// replaceFile replaces a file atomically, so that a server that watches the directory
// loads the old content or the new. If name is a symbolic link, it replaces the target.
func replaceFile(name string, content []byte) error {
	target, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = name, nil
	}
	if err != nil {
		return err
	}
	return atomicfile.Replace(target, content)
}

func writePrivate(name string, content []byte) error {
	return atomicfile.Write(name, content, 0o600, nil)
}

// processSignals receives the signals that stop and reload the process. A second
// signal to stop exits without waiting for running calls. Until stop is called,
// writing to a closed pipe returns an error and does not end the process.
func processSignals() (context.Context, <-chan os.Signal, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan os.Signal, 2)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	// Notify is enough to ignore SIGPIPE; child processes keep the default.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-ended:
			case <-done:
				return
			}
			if ctx.Err() != nil {
				os.Exit(exitFindings)
			}
			cancel()
		}
	}()
	return ctx, reload, func() {
		signal.Stop(reload)
		signal.Stop(ended)
		signal.Stop(gone)
		close(done)
		cancel()
	}
}
