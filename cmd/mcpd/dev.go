package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/recent"
	"github.com/mcpd/mcpd/serve"
)

// devGrace is the time that running calls have at the end of dev.
const devGrace = 2 * time.Second

func newDev(e env) *cobra.Command {
	f := serveFlags{grace: devGrace}
	f.bundle.trial.most = -1 // no bundle
	var plain, console bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve the tools while you write them: check, test and types on each save",
		Long: `Dev serves the tools over HTTP on a loopback address, as serve does. Each time a file is
saved, it checks the files, serves them if they have no errors, runs the tests of what
changed, and writes the types of scripts to .mcpd, as mcpd types does. A change of
mcpd.hcl runs all tests.

On a terminal it shows one view: what is served, the errors in the files, the results of
the tests, and the last calls. ? lists the keys; o opens the web console, as mcpd console
does. Otherwise, and with --plain, it prints a line for each event; the first word of a line
says what happened:

  live    the files are served
  broken  the files have errors; the last good files stay live
  warning the files have warnings
  test    a failed test, and tests the number of tests that passed and failed
  types   the types were written
  call    a call has ended
  console the address of the web console, with --console; it works once, within five minutes`,
		Example: `  mcpd dev
  mcpd dev --listen 127.0.0.1:9000
  mcpd dev --plain | grep ^call`,
		Args: noOperand,
		RunE: func(*cobra.Command, []string) error { return runDev(e, &f, plain, console) },
	}
	f.files.add(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", serve.DefaultAddress, "listen on the loopback address `HOST:PORT`")
	f.files.upstreams.add(cmd)
	cmd.Flags().StringVar(&f.state, "state", "", "store tasks and paused calls in `FILE`, in the database postgres://…, or in \"memory\" (default a file in the user's state directory)")
	f.control.add(cmd, "answer mcpd status, console and other verbs on the socket `PATH`, or \"off\" (default a socket in the user's state directory)")
	cmd.Flags().StringVar(&f.executor, "executor", executorWorker, "run scripts with the executor `KIND`: worker (in separate processes) or inline (in the server)")
	_ = cmd.RegisterFlagCompletionFunc("executor", cobra.FixedCompletions([]string{executorWorker, executorInline}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines instead of a view, also on a terminal")
	cmd.Flags().BoolVar(&console, "console", false, "open the web console at the start; without a view, print its address")
	return cmd
}

func runDev(e env, f *serveFlags, plain, console bool) error {
	if err := f.check(); err != nil {
		return err
	}
	if !isLoopback(f.listen) {
		return usageError("--listen takes a loopback address, such as %s; mcpd serve listens on others", serve.DefaultAddress)
	}
	e.process.restartWithTimerSlack()
	d := newDevSession(e, f)
	f.dev = d
	if console {
		notify(d.opens)
	}
	if terminal, _ := e.vars.lookup("TERM"); !plain && e.stdoutIsTerminal && terminal != "dumb" {
		return d.runView()
	}
	d.print = e.text()
	return d.serve(e)
}

// isLoopback reports whether an address is one that only programs of this machine reach.
func isLoopback(address string) bool {
	return serve.Checks{}.CheckListen(engine.Listen{Address: address}, nil) == nil
}

// devSession is a running mcpd dev: the state that its view shows. It hears from the server when
// files were loaded, and runs tests and writes types after that.
type devSession struct {
	// fixed at creation
	env   env // the outside world of the view; the server has another one
	flags *serveFlags
	wake  chan struct{} // receives a value when there are tests to run
	news  chan struct{} // receives a value when the state has changed
	opens chan struct{} // receives a value when the user wants the console

	// print prints the lines of events; nil if there is a view. It is fixed before the server starts.
	print io.Writer
	// screen is the view; nil if there is none.
	screen *devScreen

	// quit ends stopped, and so the server.
	stopped context.Context
	quit    context.CancelFunc

	// only for the goroutine of work
	tested *engine.Snapshot // with the tests that ran last
	types  string           // the last problem of writing the types

	// last is the last load. Loads are not concurrent.
	last devLoad

	// typedLines are the lines that the user has typed at prompts. Only one prompt uses it.
	typedLines term.History

	// guarded by mu; parts that run after the first load read server without it
	mu      sync.Mutex
	server  *engine.Server // nil before the first load
	running *runningServer // nil before the files are served
	state   devState
	results []engine.TestResult // of all tests, as they ran last
	runAll  bool                // run all tests next
}

// devState is what the view of dev shows.
type devState struct {
	URL    string // empty before the server listens
	Status engine.Status
	// Problems are the diagnostics of the files with excerpts, as lines, and Errors counts the errors.
	// Broken means that the files are not served. Loading means that no load has ended, and Testing that
	// a load runs tests before it serves the files.
	Problems []string
	Errors   int
	Broken   bool
	Loading  bool
	Testing  bool
	// Running means that tests run. Ran is the number of tests in the last run, and Took its duration.
	Running bool
	Ran     int
	Took    time.Duration
	// Tests and Failed count all tests, and Failures are lines about those that failed.
	Tests, Failed int
	Failures      []string
	Types         string // the problem of writing the types
	// Console has the address of the console, or lines that say why there is none. It is empty
	// before the user wants the console.
	Console []string
	Calls   []recent.Call
	Log     []string
}

func newDevSession(e env, f *serveFlags) *devSession {
	d := &devSession{env: e, flags: f, wake: make(chan struct{}, 1), news: make(chan struct{}, 1), opens: make(chan struct{}, 1)}
	d.state.Loading = true
	d.stopped, d.quit = context.WithCancel(context.Background())
	return d
}

// serve runs the server until it is stopped, with the log on stderr of e.
func (d *devSession) serve(e env) error {
	signals := e.service.signals
	e.service.signals = func() (context.Context, <-chan os.Signal, func()) {
		ctx, hup, stop := signals()
		ctx, cancel := context.WithCancel(ctx)
		stops := []func() bool{
			context.AfterFunc(d.stopped, cancel),
			context.AfterFunc(ctx, d.screen.close), // a second signal ends the process at once
		}
		go func() {
			select {
			case <-hup: // the terminal has gone
				d.quit()
			case <-ctx.Done():
			}
		}()
		return ctx, nil, func() {
			for _, remove := range stops {
				remove()
			}
			cancel()
			stop()
		}
	}
	return d.flags.serve(e, d.logger(e))
}

// update changes the state and lets the view draw it.
func (d *devSession) update(change func(*devState)) {
	d.mu.Lock()
	change(&d.state)
	d.mu.Unlock()
	notify(d.news)
}

// notify sends a value unless one waits already.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// line prints an event as a line, and further lines below it, unless there is a view.
func (d *devSession) line(event, format string, args ...any) {
	if d.print != nil {
		const indent = "        "
		text := diag.PrintableLines(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), indent)
		if _, err := fmt.Fprintf(d.print, "%-*s%s\n", len(indent), event, text); err != nil {
			d.quit() // the reader of the lines has gone
		}
	}
}

// load loads the files for the first time. While they have errors, it waits for a change.
func (d *devSession) load(ctx context.Context, e env, s *engine.Server) error {
	d.mu.Lock()
	d.server = s
	d.mu.Unlock()
	s.Inside().Recent().Start()
	err := d.flags.files.onChanges(ctx, e, nil, d.flags.files.watched(e, nil), func(change engine.Change) (done bool, err error) {
		report, err := s.Load(ctx)
		var problems diag.List
		if err != nil && !errors.As(err, &problems) {
			if ctx.Err() != nil {
				return true, nil // the tests of the files were stopped
			}
			return true, startExitError(err)
		}
		d.loaded(change, report, err)
		return err == nil, nil
	})
	if err == nil && ctx.Err() != nil {
		return &exitError{code: exitOK} // stopped before anything was served
	}
	return err
}

// devLoad is the result of a load.
type devLoad struct {
	broken   bool
	revision string            // of the files that are served
	text     string            // of the problems
	sources  map[string][]byte // files with problems
}

func (l devLoad) equal(other devLoad) bool {
	return l.broken == other.broken && l.revision == other.revision && l.text == other.text && maps.EqualFunc(l.sources, other.sources, bytes.Equal)
}

// loaded shows the result of a load. If the files are served, their tests run next. A load that changes
// nothing is not an event: a reload reads the same files as the watcher.
func (d *devSession) loaded(change engine.Change, report engine.Report, err error) {
	var printed bytes.Buffer
	_ = diag.Printer{Sources: report.Shown()}.Print(&printed, report.Problems) // a buffer accepts everything
	text := strings.TrimRight(printed.String(), "\n")
	status := d.server.Status()
	d.mu.Lock()
	d.runAll = d.runAll || change.Config
	url, untyped := d.state.URL, d.state.Types != ""
	d.record(report.Tests)
	d.mu.Unlock()
	d.update(func(s *devState) {
		s.Status, s.Broken, s.Problems, s.Errors, s.Loading = status, err != nil, nil, 0, false
		if text != "" {
			s.Problems = strings.Split(text, "\n")
		}
		for _, p := range report.Problems {
			if p.Severity == diag.Error {
				s.Errors++
			}
		}
	})
	load := devLoad{err != nil, status.Revision, text, report.Shown()}
	if err != nil && text == "" {
		load.text = err.Error()
	}
	before := d.last
	d.last = load
	if load.equal(before) {
		if err == nil && (change.Config || untyped) {
			notify(d.wake)
		}
		return
	}
	switch {
	case err != nil && text == "":
		d.line("broken", "%v", err)
	case err != nil:
		d.line("broken", "%s", text)
	default:
		if text != "" {
			d.line("warning", "%s", text)
		}
		if url != "" { // otherwise listening prints it
			d.live(url, status)
		}
		notify(d.wake)
	}
}

func (d *devSession) live(url string, status engine.Status) {
	d.line("live", "%s on %s, revision %s", offered(status), url, status.Revision[:12])
}

// listening shows the address of the server, and starts to run tests and to report calls.
func (d *devSession) listening(url string) {
	status := d.server.Status()
	d.update(func(s *devState) { s.URL, s.Status = url, status })
	d.live(url, status)
}

// run writes types, runs tests, shows calls and serves the console until ctx is done.
func (d *devSession) run(ctx context.Context, o *runningServer) {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.running = o
	d.mu.Unlock()
	var busy sync.WaitGroup
	console := func(ctx context.Context) { d.serveConsole(ctx, o) }
	for _, part := range []func(context.Context){d.work, d.followCalls, console} {
		busy.Go(func() {
			defer d.screen.close() // before a panic is printed
			part(ctx)
		})
	}
	busy.Wait()
}

// followCalls shows each call that ends, until ctx is done.
func (d *devSession) followCalls(ctx context.Context) {
	for c := range d.server.Inside().Recent().Watch(ctx, recent.Size) {
		d.update(func(s *devState) {
			s.Calls = append(s.Calls, c)
			s.Calls = s.Calls[max(0, len(s.Calls)-maxShownCalls):]
		})
		d.line("call", "%s", callText(c))
	}
}

// maxShownCalls bounds the calls that the view keeps, and maxShownLog the lines of the log.
const (
	maxShownCalls = 200
	maxShownLog   = 200
)

// callText describes a call in a line: its item, outcome, duration and caller.
func callText(c recent.Call) string {
	text := fmt.Sprintf("%s %s %s by %s", cmp.Or(c.Name, c.Kind), outcomeText(c), shortDuration(c.Duration), c.Principal)
	if c.DeniedBy != "" {
		text += ", denied by " + c.DeniedBy
	}
	return diag.Printable(text)
}

// outcomeText returns the outcome of a call; "cancelled" if it failed because someone cancelled it.
func outcomeText(c recent.Call) string {
	if c.CancelledBy != "" {
		return "cancelled"
	}
	return c.Outcome
}

// shortDuration returns a duration in milliseconds, or in seconds if it is long.
func shortDuration(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// logger returns the log of the server. It has warnings, and what scripts log, but not what the
// view shows anyway.
func (d *devSession) logger(e env) *slog.Logger {
	handler := slog.NewTextHandler(e.stderr, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && slices.Contains([]string{slog.TimeKey, "call_id", "request_id", "problems"}, a.Key) {
			return slog.Attr{}
		}
		return a
	}})
	logger := d.flags.log.redactor.Logger(slog.New(devLog{handler}))
	e.libraryLog(stdlogWriter{logger})
	return logger
}

// devLog drops the records that the view of dev replaces.
type devLog struct{ slog.Handler }

// Handle passes on warnings, and records of scripts. A cancelled call is no warning.
func (h devLog) Handle(ctx context.Context, r slog.Record) error {
	ofCall, ended, cancelled, ofFiles := false, false, false, false
	r.Attrs(func(a slog.Attr) bool {
		ofCall, ended, cancelled, ofFiles = ofCall || a.Key == "call_id", ended || a.Key == "code", cancelled || a.Key == "cancelled_by", ofFiles || a.Key == "problems"
		return true
	})
	if ofFiles || ended && cancelled || r.Level < slog.LevelWarn && (!ofCall || ended) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h devLog) WithAttrs(attrs []slog.Attr) slog.Handler { return devLog{h.Handler.WithAttrs(attrs)} }
func (h devLog) WithGroup(name string) slog.Handler       { return devLog{h.Handler.WithGroup(name)} }
