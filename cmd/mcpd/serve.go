package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/watch"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

type serveFlags struct {
	files     projectFlags
	log       logging
	appliance applianceFlags
	listen    string
	state     string
	stdio     bool
	insecure  bool
	grace     time.Duration
	executor  string
	bundle    bundleFlags
	control   controlFlag
	dev       *devSession // of mcpd dev; nil for mcpd serve
	// began is true once clients are served. problems holds the diagnostics of the
	// first load.
	began    bool
	problems diag.List
}

func newServe(e env) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools, and reload them when files change",
		Long: `Serve serves the tools over HTTP: MCP at /mcp and /ws, and at /sse for clients of the
HTTP+SSE transport; the REST API at /mcp/capabilities and /mcp/execute; health checks at
/healthz and /readyz. With --stdio it speaks MCP on standard input and output, and logs
to standard error.

Serve reloads files when they are saved. If a file has an error, the server keeps the
previous tools and logs the error. SIGHUP reloads everything.

SIGTERM and SIGINT stop the server after its running calls, or after --grace at the
latest. A second signal exits at once, with exit code 1.`,
		Example: `  mcpd serve
  mcpd serve --tools ./tools.d --listen 127.0.0.1:9000
  mcpd serve --stdio`,
		Args: noOperand,
		RunE: func(*cobra.Command, []string) error { return runServe(e, &f) },
	}
	f.files.add(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", "", "listen on `HOST:PORT` (default 127.0.0.1:8080), or on the socket unix:PATH")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "speak MCP on standard input and output")
	cmd.Flags().BoolVar(&f.insecure, "insecure-listen", false, "listen beyond loopback without authentication")
	f.files.upstreams.add(cmd)
	cmd.Flags().StringVar(&f.state, "state", "", "store tasks and paused calls in `FILE`, in the database postgres://…, or in \"memory\" (default a file in the user's state directory)")
	f.control.add(cmd, "answer mcpd status, console and other verbs on the socket `PATH`, or \"off\" (default a socket in the user's state directory)")
	cmd.Flags().DurationVar(&f.grace, "grace", 10*time.Second, "wait up to `TIME` for running calls at shutdown; 0s cancels them at once")
	cmd.Flags().StringVar(&f.executor, "executor", executorWorker, "run scripts with the executor `KIND`: worker (in separate processes) or inline (in the server)")
	_ = cmd.RegisterFlagCompletionFunc("executor", cobra.FixedCompletions([]string{executorWorker, executorInline}, cobra.ShellCompDirectiveNoFileComp))
	f.bundle.add(cmd, &f.files.dir)
	f.appliance.add(cmd)
	f.log.add(cmd)
	return cmd
}

func runServe(e env, f *serveFlags) error {
	err := f.check()
	if err != nil {
		return f.refuse(e, err, err)
	}
	e.process.restartWithTimerSlack()
	logger, err := f.log.open(e)
	if err != nil {
		return f.refuse(e, err, err)
	}
	err = f.serve(e, logger)
	left := err
	var exit *exitError
	if f.log.forMachines() && errors.As(err, &exit) {
		logger.Error("exit", slog.String("error", exit.text))
		left = &exitError{code: exit.code}
	}
	return f.refuse(e, err, left)
}

// check rejects invalid values of flags.
func (f *serveFlags) check() error {
	if f.grace < 0 {
		return usageError("--grace must not be negative")
	}
	if f.executor != executorWorker && f.executor != executorInline {
		return usageError("--executor takes worker or inline")
	}
	if err := f.checkBundle(); err != nil {
		return err
	}
	if err := f.appliance.check(); err != nil {
		return err
	}
	return checkListenAddress(f.listen)
}

// checkListenAddress rejects an invalid value of --listen.
func checkListenAddress(address string) error {
	form := usageError("--listen takes HOST:PORT, such as 127.0.0.1:8080, or unix:PATH")
	path, socket := strings.CutPrefix(address, "unix:")
	switch {
	case address == "" || socket && path != "":
		return nil
	case socket:
		return form
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return form
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return usageError("--listen takes a port from 0 to 65535, not %s", sanitize(port))
	}
	return nil
}

func (f *serveFlags) serve(e env, logger *slog.Logger) error {
	defer enableGCBallast()()
	transport := "http"
	if f.stdio {
		transport = "stdio"
	}
	x, report := executor(e, f.executor, worker.Options{Logger: logger}, logger)
	options := engine.Options{
		Logger: logger, LogRedactor: &f.log.redactor, Transport: transport, DeferReady: true, Scripts: engine.Scripts{Executor: x, Programs: newPrograms(e, f.executor, logger)}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{ReadFile: e.disk.readFile, Console: e.stderr})},
	}
	options.StatePath, options.StateOptional = f.stateFile(e)
	options.StateURL = f.stateURL()
	f.files.serving = true
	if err := f.openBundles(e, logger, &options); err != nil {
		return errors.Join(err, x.Close())
	}
	var s *engine.Server
	options.Front = f.checks(func() bool { return s.Snapshot() != nil })
	s, err := f.files.open(e, options)
	if err != nil {
		return err
	}
	f.bundle.server = s
	ctx, reload, stop := e.service.signals()
	defer stop()
	defer context.AfterFunc(ctx, func() { logger.Info("shutting down", slog.String("hint", "a second signal exits at once")) })()
	watcher, err := f.watch(e, logger)
	if err != nil {
		return err
	}
	if err := f.start(ctx, e, s); err != nil {
		f.problems = s.Status().Problems
		return errors.Join(err, watcher.Close())
	}
	if err := f.checkState(e, s); err != nil {
		return errors.Join(err, watcher.Close())
	}
	o, err := f.operate(e, logger, s, report)
	if err != nil {
		return errors.Join(err, watcher.Close())
	}
	logSandbox("scripts", report, logger)
	var listens atomic.Bool
	o.front = serve.New(s, serve.Options{
		Address: f.listen, InsecureListen: f.insecure, Grace: max(f.grace, 1), In: e.stdin, Out: e.stdout,
		Local: serve.LocalPrincipal(e.process.uid, e.process.username), Bundle: f.bundle.problems, Console: consolePages{o},
		OnListen: func(at net.Addr) {
			listens.Store(true)
			o.onReady(f.announce(e, logger, s, at))
		},
	})
	stopBeside := o.run(ctx, watcher, reload)
	if f.stdio {
		f.began = true
		listens.Store(true)
		o.onReady("stdio")
	}
	err = o.front.Run(ctx)
	stopBeside()
	return errors.Join(exit(err, listens.Load()), o.close())
}

// watch returns a watcher of the files. For a server with --bundle it watches nothing.
func (f *serveFlags) watch(e env, logger *slog.Logger) (*watch.Watcher, error) {
	o := watch.Options{Logger: logger}
	if f.bundle.follower == nil {
		o = f.files.watched(e, logger)
		if _, err := e.disk.stat(f.files.config); err != nil {
			logger.Info("configuration file not found, using defaults", slog.String("config", f.files.config))
		}
	}
	watcher, err := watch.New(o)
	if err != nil {
		return nil, findingsError("watch files: %v", err)
	}
	return watcher, nil
}

// serveChecks checks the listen and tls blocks at each load, unless the server uses
// stdio.
type serveChecks struct {
	serve.Checks
	stdio   bool
	listens func() bool
}

// checks returns the checks of files for these flags.
func (f *serveFlags) checks(listens func() bool) serveChecks {
	return serveChecks{Checks: serve.Checks{Address: f.listen, InsecureListen: f.insecure}, stdio: f.stdio, listens: listens}
}

// CheckTLS accepts all changes once the server listens: they need a restart.
func (s serveChecks) CheckTLS(t engine.ListenTLS) error {
	if s.stdio || s.listens() {
		return nil
	}
	return s.Checks.CheckTLS(t)
}

func (s serveChecks) CheckListen(l engine.Listen, auths []engine.Auth) error {
	if s.stdio {
		return nil
	}
	return s.Checks.CheckListen(l, auths)
}

func (s serveChecks) CheckVacant(l engine.Listen) error {
	if s.stdio {
		return nil
	}
	l.Address = cmp.Or(l.Address, serve.DefaultAddress)
	return exit(s.Checks.CheckVacant(l), false)
}

// exit returns the error of a stopped server. listened reports whether it ever
// listened.
func exit(err error, listened bool) error {
	switch {
	case err == nil:
		return nil
	case listened:
		return findingsError("%v", err)
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("%w; choose another address with --listen", err)
	}
	return startExitError(err)
}

// startExitError returns the error of a server that cannot start. A resource in use by
// another process exits with 1; everything else is a configuration error.
func startExitError(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, engine.ErrInUse) || errors.Is(err, state.ErrUnavailable) {
		return &exitError{code: exitFindings, text: err.Error(), cause: err}
	}
	return usageError("%v", err)
}

// load loads the files for the first time. With a JSON log it does not print the
// diagnostics, which the log already holds.
func (f *serveFlags) load(ctx context.Context, e env, s *engine.Server) error {
	before := debug.SetGCPercent(loadGCPercent)
	defer debug.SetGCPercent(before)
	if 0 <= before && before < loadGCPercent {
		debug.SetGCPercent(before) // GOGC of the operator
	}
	if !f.log.forMachines() {
		return f.files.load(ctx, e, s, false)
	}
	report, err := s.Load(ctx)
	return loadError(report, f.files.config, err)
}

// announce prints the address of the server in one line, or logs it with a JSON log,
// and returns it.
func (f *serveFlags) announce(e env, logger *slog.Logger, s *engine.Server, at net.Addr) string {
	status := s.Status()
	url := "http://" + at.String() + "/mcp"
	if s.Snapshot().Listen().TLS != nil {
		url = "https://" + at.String() + "/mcp"
	}
	if at.Network() == "unix" {
		url = "unix:" + at.String()
	}
	if f.dev != nil {
		f.dev.listening(url)
		return url
	}
	if f.log.forMachines() {
		logger.Info("listening", slog.String("url", url), slog.String("revision", status.Revision), slog.Int("tools", status.Tools),
			slog.Int("resources", status.Resources), slog.Int("templates", status.Templates), slog.Int("prompts", status.Prompts))
		return url
	}
	fmt.Fprintf(e.stderr, "mcpd serves %s on %s, revision %s\n", offered(status), url, status.Revision[:12])
	return url
}

// gcBallast is the minimum growth of the heap between two garbage collections, in bytes.
const gcBallast = 32 << 20

// loadGCPercent is GOGC during the first load, unless the operator set a lower one. The snapshot is allocated among the garbage of
// the load, so the less garbage there is, the more memory can be returned afterwards.
const loadGCPercent = 40

// enableGCBallast makes garbage collections less frequent until release is called. A
// collection starts when the heap has doubled, and the heap of a small server is tiny.
// The ballast counts as heap but is never touched, so that it uses only address space.
func enableGCBallast() (release func()) {
	weight := make([]byte, gcBallast)
	return func() { runtime.KeepAlive(weight) }
}

// refuse reports a failed start to the client on stdio, which otherwise only sees a
// closed connection. It first prints left, the part of err that was not yet printed. It
// returns what is still to print.
func (f *serveFlags) refuse(e env, err, left error) error {
	if err == nil || !f.stdio || f.began || e.stdinIsTerminal {
		return left
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if left.Error() != "" {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(left.Error()))
	}
	why := sanitize(f.reason(err) + f.holder(e, err))
	if err := serve.RefuseStdio(context.Background(), e.stdin, e.stdout, why); err != nil && !f.log.forMachines() {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(err.Error()))
	}
	return &exitError{code: code}
}

// reason returns the message for a client on stdio, the only text that its user sees.
func (f *serveFlags) reason(err error) string {
	first := slices.IndexFunc(f.problems, func(p diag.Diagnostic) bool { return p.Severity == diag.Error })
	if first < 0 {
		return "mcpd could not start: " + err.Error()
	}
	why := "mcpd could not start: " + f.problems[first].String()
	more := 0
	for _, p := range f.problems[first+1:] {
		if p.Severity == diag.Error {
			more++
		}
	}
	if more > 0 {
		why += fmt.Sprintf("\nmcpd check --tools %s --config %s shows %d more.", f.files.tools, f.files.config, more)
	}
	return why
}

// holderPatience is the timeout for the address of a running server.
const holderPatience = 2 * time.Second

// holder names the running server that uses the files, and what to do, if err is due to
// another process.
func (f *serveFlags) holder(e env, err error) string {
	var advice string
	switch {
	case errors.Is(err, audit.ErrInUse):
		advice = "start this one with another --config with a different audit path"
	case errors.Is(err, engine.ErrInUse):
		advice = "start this one with --state memory"
	default:
		return ""
	}
	path := f.control.path(e, &f.files)
	var row statusResult
	if path != "" {
		if _, err := callControl(context.Background(), path, control.Request{Action: control.Status}, holderPatience, &row); err != nil {
			path = ""
		}
	}
	if path == "" {
		return "\nStop the other process, or " + advice + "."
	}
	said := fmt.Sprintf("\nA server of these files runs as process %d, with the control socket %s. Let the client run mcpd attach with the same --tools and --config", row.PID, path)
	at := slices.DeleteFunc(row.Listeners, func(where string) bool { return !strings.Contains(where, "://") })
	if len(at) > 0 {
		said += ", connect it to " + strings.Join(at, " or ")
	}
	return said + ", or " + advice + "."
}
