package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/ops/recent"
	"github.com/mcpd/mcpd/serve"
)

// devGrace is the time that running calls have at the end of dev.
const devGrace = 2 * time.Second

func newDev(e env) *cobra.Command {
	f := serveFlags{grace: devGrace}
	f.bundle.trial.most = -1 // no bundle
	var plain bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve the tools while you write them: check, test and types on each save",
		Long: `Dev serves the tools over HTTP on a loopback address, as serve does. Each time a file is
saved, it checks the files, serves them if they have no errors, runs the tests of what
changed, and writes the types of scripts to .mcpd, as mcpd types does. A change of
mcpd.hcl runs all tests.

On a terminal it shows one view: what is served, the errors in the files, the results of
the tests, and the last calls. ? lists the keys. Otherwise, and with --plain, it prints a
line for each event; the first word of a line says what happened:

  live    the files are served
  broken  the files have errors; the last good files stay live
  warning the files have warnings
  test    a failed test, and tests the number of tests that passed and failed
  types   the types were written
  call    a call has ended`,
		Example: `  mcpd dev
  mcpd dev --listen 127.0.0.1:9000
  mcpd dev --plain | grep ^call`,
		Args: noOperand,
		RunE: func(*cobra.Command, []string) error { return runDev(e, &f, plain) },
	}
	f.files.add(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", serve.DefaultAddress, "listen on the loopback address `HOST:PORT`")
	f.files.upstreams.add(cmd)
	cmd.Flags().StringVar(&f.state, "state", "", "store tasks and paused calls in `FILE`, in the database postgres://…, or in \"memory\" (default a file in the user's state directory)")
	f.control.add(cmd, "answer mcpd status, attach, reload and token on the socket `PATH`, or \"off\" (default a socket in the user's state directory)")
	cmd.Flags().StringVar(&f.executor, "executor", executorWorker, "run scripts with the executor `KIND`: worker (in separate processes) or inline (in the server)")
	_ = cmd.RegisterFlagCompletionFunc("executor", cobra.FixedCompletions([]string{executorWorker, executorInline}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&plain, "plain", false, "print lines instead of a view, also on a terminal")
	return cmd
}

func runDev(e env, f *serveFlags, plain bool) error {
	if err := f.check(); err != nil {
		return err
	}
	if !isLoopback(f.listen) {
		return usageError("--listen takes a loopback address, such as %s; mcpd serve listens on others", serve.DefaultAddress)
	}
	e.process.restartWithTimerSlack()
	d := newDevSession(e, f)
	f.dev = d
	if !plain && e.stdoutIsTerminal {
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

	// guarded by mu; parts that run after the first load read server without it
	mu      sync.Mutex
	server  *engine.Server // nil before the first load
	state   devState
	results []engine.TestResult // of all tests, as they ran last
	runAll  bool                // run all tests next
}

// devState is what the view of dev shows.
type devState struct {
	URL    string // empty before the server listens
	Status engine.Status
	// Problems are the diagnostics of the files with excerpts, as lines, and Errors counts the errors.
	// Broken means that the files are not served.
	Problems []string
	Errors   int
	Broken   bool
	// Running means that tests run. Ran, RanFailed and Took describe the last run.
	Running        bool
	Ran, RanFailed int
	Took           time.Duration
	// Tests and Failed count all tests, and Failures are lines about those that failed.
	Tests, Failed int
	Failures      []string
	Types         string // the problem of writing the types
	Calls         []recent.Call
	Log           []string
}

func newDevSession(e env, f *serveFlags) *devSession {
	d := &devSession{env: e, flags: f, wake: make(chan struct{}, 1), news: make(chan struct{}, 1)}
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

// loaded shows the result of a load. If the files are served, their tests run next.
func (d *devSession) loaded(change engine.Change, report engine.Report, err error) {
	var printed bytes.Buffer
	_ = diag.Printer{Sources: report.Shown()}.Print(&printed, report.Problems) // a buffer accepts everything
	text := strings.TrimRight(printed.String(), "\n")
	status := d.server.Status()
	d.mu.Lock()
	d.runAll = d.runAll || change.Config
	url := d.state.URL
	d.record(report.Tests)
	d.mu.Unlock()
	d.update(func(s *devState) {
		s.Status, s.Broken, s.Problems, s.Errors = status, err != nil, nil, 0
		if text != "" {
			s.Problems = strings.Split(text, "\n")
		}
		for _, p := range report.Problems {
			if p.Severity == diag.Error {
				s.Errors++
			}
		}
	})
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

// run writes types, runs tests and shows calls until ctx is done.
func (d *devSession) run(ctx context.Context) {
	if d == nil {
		return
	}
	var busy sync.WaitGroup
	for _, part := range []func(context.Context){d.work, d.followCalls} {
		busy.Go(func() {
			defer d.screen.close() // before a panic is printed
			part(ctx)
		})
	}
	busy.Wait()
}

// work writes the types and runs tests after each load, until ctx is done.
func (d *devSession) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		}
		d.writeTypes()
		d.runTests(ctx)
	}
}

// rerun runs all tests again.
func (d *devSession) rerun() {
	d.mu.Lock()
	d.runAll = true
	d.mu.Unlock()
	notify(d.wake)
}

// runTests runs the tests of what has changed since the last run, and those that failed in it.
func (d *devSession) runTests(ctx context.Context) {
	d.mu.Lock()
	before, failed := d.tested, map[string]bool{}
	if d.runAll {
		before, d.runAll = nil, false
	}
	for _, r := range d.results {
		failed[r.Name] = !r.Passed()
	}
	d.mu.Unlock()
	d.update(func(s *devState) { s.Running = true })
	start, tested := d.env.now(), d.server.Snapshot() // the tests may run on a later one
	results, err := d.server.Inside().RunTestsSince(ctx, before, func(name string) bool { return failed[name] })
	if ctx.Err() != nil || err != nil { // the server stops; it has loaded files before
		return
	}
	d.tested = tested
	d.mu.Lock()
	tests := d.server.Inside().Catalog().Tests
	d.results = slices.DeleteFunc(d.results, func(r engine.TestResult) bool {
		return !slices.ContainsFunc(tests, func(t definition.Test) bool { return t.Name == r.Name })
	})
	ran, ranFailed := d.record(results)
	all, allFailed := len(d.results), d.state.Failed
	d.mu.Unlock()
	d.update(func(s *devState) {
		s.Running, s.Ran, s.RanFailed, s.Took = false, ran, ranFailed, d.env.now().Sub(start)
	})
	for _, r := range results {
		if !r.Passed() {
			d.line("test", "FAIL  %s", failureText(r))
		}
	}
	of := ""
	if all != ran {
		of = fmt.Sprintf(" (of all %d: %d passed, %d failed)", all, all-allFailed, allFailed)
	}
	switch {
	case all == 0:
		d.line("tests", "none; add test blocks to the files")
	default:
		d.line("tests", "%d passed, %d failed%s", ran-ranFailed, ranFailed, of)
	}
}

// record replaces the results of tests that ran again; d.mu is held. It returns how many ran and
// failed.
func (d *devSession) record(results []engine.TestResult) (ran, failed int) {
	for _, r := range results {
		if ran++; !r.Passed() {
			failed++
		}
		at := slices.IndexFunc(d.results, func(old engine.TestResult) bool { return old.Name == r.Name && old.Target == r.Target })
		if at < 0 {
			d.results = append(d.results, r)
			continue
		}
		d.results[at] = r
	}
	slices.SortFunc(d.results, func(a, b engine.TestResult) int {
		return cmp.Or(cmp.Compare(a.Range.File, b.Range.File), cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte))
	})
	d.state.Tests, d.state.Failed, d.state.Failures = len(d.results), 0, nil
	for _, r := range d.results {
		if !r.Passed() {
			d.state.Failed++
			d.state.Failures = append(d.state.Failures, strings.Split(failureText(r), "\n")...)
		}
	}
	return ran, failed
}

// failureText describes a failed test in lines.
func failureText(r engine.TestResult) string {
	text := fmt.Sprintf("%s: %s\n  %s", r.Target, r.Name, r.Range)
	for _, failure := range r.Failures {
		text += "\n  " + strings.ReplaceAll(failure, "\n", "\n  ")
	}
	return text
}

// writeTypes writes the types of the served files. A problem is reported once.
func (d *devSession) writeTypes() {
	e, wrote := d.env, new(bytes.Buffer)
	e.stdout = wrote
	err := d.mayWrite()
	if err == nil {
		err = d.flags.files.writeTypesOf(e, d.server.Snapshot())
	}
	for name := range strings.Lines(wrote.String()) {
		d.line("types", "%s", name)
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == d.types {
		return
	}
	d.types = problem
	d.update(func(s *devState) { s.Types = problem })
	if problem != "" {
		d.line("types", "not written: %s", problem)
	}
}

// mayWrite returns an error if root would write into the directory of another user, who could have
// put a link there.
func (d *devSession) mayWrite() error {
	dir := d.flags.files.projectDir(d.env)
	info, err := d.env.disk.stat(dir)
	if err != nil || d.env.process.uid != "0" {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the error of the load is better
		}
		return err
	}
	if owner, known := atomicfile.Owner(info); known && owner != 0 {
		return fmt.Errorf("%s belongs to another user, so root does not write there", filepath.ToSlash(dir))
	}
	return nil
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
	text := fmt.Sprintf("%s %s %s by %s", cmp.Or(c.Name, c.Kind), c.Outcome, shortDuration(c.Duration), c.Principal)
	if c.DeniedBy != "" {
		text += ", denied by " + c.DeniedBy
	}
	return diag.Printable(text)
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

// Handle passes on warnings, and records of scripts.
func (h devLog) Handle(ctx context.Context, r slog.Record) error {
	ofCall, ended, ofFiles := false, false, false
	r.Attrs(func(a slog.Attr) bool {
		ofCall, ended, ofFiles = ofCall || a.Key == "call_id", ended || a.Key == "code", ofFiles || a.Key == "problems"
		return true
	})
	if ofFiles || r.Level < slog.LevelWarn && (!ofCall || ended) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h devLog) WithAttrs(attrs []slog.Attr) slog.Handler { return devLog{h.Handler.WithAttrs(attrs)} }
func (h devLog) WithGroup(name string) slog.Handler       { return devLog{h.Handler.WithGroup(name)} }
