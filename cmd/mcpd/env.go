package main

import (
	"context"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/ops/systemd"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// env is the outside world as the verbs see it.
type env struct {
	// dir is the working directory, empty for that of the process.
	dir            string
	stdin          io.Reader
	stdout, stderr io.Writer
	// lookup and environ read the environment.
	lookup  func(name string) (string, bool)
	environ []string
	// colour says that stderr is a terminal whose user has not asked for plain text.
	colour bool
	// screen says that stdout is a terminal, and typed that stdin is one.
	screen, typed bool
	// self is the path of this program and name the name that it was started by;
	// self is empty where it cannot be found.
	self, name string
	// uid and user name who runs the process, which has the id pid.
	uid, user string
	pid       int
	// manager is how the service manager talks to the process. What the process
	// starts does not have these variables.
	manager systemd.Variables
	// beginLate begins the process anew with threads that may wake late, before it has
	// done anything, or returns where that is of no use.
	beginLate func()
	// signals returns a context that ends with the first signal to stop, and a
	// channel of the signals to reload. A second signal to stop ends the process
	// at once, with exit code 1.
	signals func() (ctx context.Context, reload <-chan os.Signal, stop func())
	// now is the clock.
	now func() time.Time
	// disk is the file system, for verbs that edit files.
	disk disk
	// program finds a program by its path or, where that has no slash, in PATH.
	program func(name string) error
	// workers starts processes that run bodies, and says what confines them.
	workers func(o worker.Options, path string, argv ...string) (scripting.Executor, worker.Report, error)
	// libraryLog sets where package log, to which libraries write, sends its lines.
	libraryLog func(io.Writer)
}

// at returns a path that a user typed as a path that this process can open: a
// relative one begins in the working directory of the verb.
func (e env) at(name string) string {
	if e.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.dir, name)
}

// disk is what fmt, init and compose need of the file system.
type disk struct {
	readFile  func(name string) ([]byte, error)
	writeFile func(name string, content []byte, mode os.FileMode) error
	// replaceFile writes a file so that nobody ever reads a part of it.
	replaceFile func(name string, content []byte, mode os.FileMode) error
	walk        func(folder string, visit fs.WalkDirFunc) error
	mkdirAll    func(name string, mode os.FileMode) error
	stat        func(name string) (os.FileInfo, error)
	remove      func(name string) error
}

// slackMark is the variable of a program that has executed itself again (see [osproc.Again]).
const slackMark = "MCPD_TIMERSLACK"

func processEnv() env {
	started := os.Environ()
	_ = taken(slackMark)
	manager := systemd.Variables{Socket: taken("NOTIFY_SOCKET"), Interval: taken("WATCHDOG_USEC"), Process: taken("WATCHDOG_PID")}
	_, plain := os.LookupEnv("NO_COLOR")
	e := env{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		lookup: os.LookupEnv, environ: os.Environ(),
		colour:  !plain && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stderr.Fd())),
		screen:  term.IsTerminal(int(os.Stdout.Fd())),
		typed:   term.IsTerminal(int(os.Stdin.Fd())),
		signals: processSignals, manager: manager, pid: os.Getpid(),
		now: time.Now, workers: startWorkers,
		disk: disk{
			readFile: os.ReadFile, writeFile: os.WriteFile, replaceFile: replaceFile,
			mkdirAll: os.MkdirAll, stat: os.Stat, walk: filepath.WalkDir, remove: os.Remove,
		},
	}
	e.program = func(name string) error {
		_, err := exec.LookPath(name)
		return err
	}
	e.libraryLog = func(w io.Writer) {
		log.SetFlags(0)
		log.SetOutput(w)
	}
	e.self, e.name = self(), os.Args[0]
	e.beginLate = func() { osproc.Reexec(os.Args, started, slackMark) }
	if who, err := user.Current(); err == nil {
		e.uid, e.user = who.Uid, who.Username
	}
	return e
}

// taken returns a variable of the environment, and takes it out of that.
func taken(name string) string {
	value := os.Getenv(name)
	_ = os.Unsetenv(name) // fails for names that are none
	return value
}

// self returns the path of this program. On Linux it leads to the same program
// also when another has taken its name since.
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

// replaceFile replaces a file as a whole, so that a daemon that watches the folder
// loads the old content or the new. A link is followed: the file that it leads to is
// replaced.
func replaceFile(name string, content []byte, mode os.FileMode) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	return atomicfile.Write(name, content, mode, nil)
}

// processSignals listens for the signals that stop and reload the process. Who
// signals twice to stop does not want to wait for what is under way. Writing to
// a client that is gone is an error meanwhile, and does not end the process.
func processSignals() (context.Context, <-chan os.Signal, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan os.Signal, 2)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	// Asking for it is enough: what is run keeps the default.
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
