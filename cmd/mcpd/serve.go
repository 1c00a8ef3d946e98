package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/watch"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

type serveFlags struct {
	files    files
	log      logging
	listen   string
	state    string
	stdio    bool
	insecure bool
	grace    time.Duration
	executor string
	control  controlFlag
	// began says that clients are served, problems is what a load has found before.
	began    bool
	problems diag.List
}

func newServe(e env) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools, and reload them when files change",
		Long: `Serve serves the tools over HTTP: MCP on /mcp and /ws, and on /sse for
clients of the HTTP+SSE transport; the REST wire on /mcp/capabilities and
/mcp/execute, health on /healthz and /readyz. With --stdio it speaks MCP on
standard input and output instead, and the log goes to standard error.

Changed files are loaded as they are saved. When a file has a mistake, the old
tools keep serving and the log says what is wrong. SIGHUP reloads everything.

SIGTERM and SIGINT let the calls under way end, for as long as --grace says. A
second one ends the process at once, with exit code 1.`,
		Example: `  mcpd serve
  mcpd serve --tools ./tools.d --listen 127.0.0.1:9000
  mcpd serve --stdio`,
		Args: noOperand,
		RunE: func(*cobra.Command, []string) error { return runServe(e, &f) },
	}
	f.files.add(cmd)
	f.log.add(cmd)
	f.files.upstreams.add(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", "", "listen on `HOST:PORT` (default 127.0.0.1:8080), or on the socket unix:PATH")
	cmd.Flags().StringVar(&f.state, "state", "", "keep tasks and calls that wait in `FILE`, or in \"memory\" (default a file in the user's folder for state)")
	f.control.add(cmd, "answer mcpd status, reload and token on the socket `PATH`, or \"off\" (default a socket in the user's folder for state)")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "speak MCP on standard input and output")
	cmd.Flags().BoolVar(&f.insecure, "insecure-listen", false, "listen beyond loopback without authentication")
	cmd.Flags().StringVar(&f.executor, "executor", executorWorker, "run bodies in a \"worker\" process, where they can be stopped, or \"inline\"")
	_ = cmd.RegisterFlagCompletionFunc("executor", cobra.FixedCompletions([]string{executorWorker, executorInline}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().DurationVar(&f.grace, "grace", 10*time.Second, "let calls take `TIME` to end at shutdown; 0s ends them at once")
	return cmd
}

func runServe(e env, f *serveFlags) error {
	err := f.check()
	if err != nil {
		return f.refuse(e, err, err)
	}
	e.beginLate()
	logger, err := f.log.open(e)
	if err != nil {
		return f.refuse(e, err, err)
	}
	err = f.serve(e, logger)
	left := err
	var exit *exitError
	if f.log.forMachines() && errors.As(err, &exit) {
		logger.Error("mcpd ends", slog.String("error", exit.text))
		left = &exitError{code: exit.code}
	}
	return f.refuse(e, err, left)
}

// check refuses values of flags that have none of the forms that they may.
func (f *serveFlags) check() error {
	if f.grace < 0 {
		return usage("--grace takes a time that is not negative")
	}
	if f.executor != executorWorker && f.executor != executorInline {
		return usage("--executor takes worker or inline")
	}
	return checkListenAddress(f.listen)
}

// checkListenAddress refuses a value of --listen that has none of the forms that it may.
func checkListenAddress(address string) error {
	form := usage("--listen takes HOST:PORT, like 127.0.0.1:8080, or unix:PATH")
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
		return usage("--listen takes a port from 0 to 65535, and %s is none", printable(port))
	}
	return nil
}

func (f *serveFlags) serve(e env, logger *slog.Logger) error {
	defer holdBallast()()
	transport := "http"
	if f.stdio {
		transport = "stdio"
	}
	x, report := executor(e, f.executor, worker.Options{Logger: logger}, logger)
	options := engine.Options{
		Logger: logger, LogRedactor: &f.log.veil, Transport: transport, DeferReady: true, Scripts: engine.Scripts{Executor: x, Programs: newPrograms(e, f.executor, logger)}, Extensions: []engine.Extension{telemetry.New(telemetry.Options{ReadFile: e.disk.readFile, Console: e.stderr})},
	}
	options.StatePath, options.StateOptional = f.stateFile(e)
	f.files.serving = true
	var s *engine.Server
	options.Front = serveChecks{Checks: serve.Checks{Address: f.listen, InsecureListen: f.insecure}, stdio: f.stdio, listens: func() bool { return s.Snapshot() != nil }}
	s, err := f.files.open(e, options)
	if err != nil {
		return err
	}
	ctx, reload, stop := e.signals()
	defer stop()
	defer context.AfterFunc(ctx, func() { logger.Info("shutting down; a second signal ends the process at once") })()
	watcher, err := watch.New(watch.Options{
		Roots: f.files.roots(e), Files: []string{f.files.config, f.files.lockPath()}, Globs: []string{filepath.Join(filepath.Dir(f.files.config), "*.mcpdvars")},
		Skip: func(name string) bool { return name == ".git" }, Logger: logger,
	})
	if err != nil {
		return findings("watch files: %v", err)
	}
	if _, err := e.disk.stat(f.files.config); err != nil {
		logger.Info("there is no operator's file; no operator's policies apply", slog.String("config", f.files.config))
	}
	if err := f.load(ctx, e, s); err != nil {
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
	tellConfinement("bodies", report, logger)
	var listens atomic.Bool
	o.front = serve.New(s, serve.Options{
		Address: f.listen, InsecureListen: f.insecure, Grace: max(f.grace, 1), In: e.stdin, Out: e.stdout,
		Local: serve.LocalPrincipal(e.uid, e.user),
		OnListen: func(at net.Addr) {
			listens.Store(true)
			o.opened(f.announce(e, logger, s, at))
		},
	})
	stopBeside := o.run(ctx, watcher, reload)
	if f.stdio {
		f.began = true
		listens.Store(true)
		o.opened("stdio")
	}
	err = o.front.Run(ctx)
	stopBeside()
	return errors.Join(exit(err, listens.Load()), o.close())
}

// serveChecks has each load look at what the server listens with, unless it listens to stdio.
type serveChecks struct {
	serve.Checks
	stdio   bool
	listens func() bool
}

// CheckTLS accepts all once the server listens: it goes on with what it has read.
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

// exit returns the exit code of a server that has ended; it may never have listened.
func exit(err error, listened bool) error {
	switch {
	case err == nil:
		return nil
	case listened:
		return findings("%v", err)
	case errors.Is(err, syscall.EADDRINUSE):
		err = fmt.Errorf("%w; choose another address with --listen", err)
	}
	return unstarted(err)
}

// unstarted returns the exit code of a server that cannot begin: what another process has
// may be free the next time, and all else is how it is configured.
func unstarted(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, engine.ErrInUse) {
		return &exitError{code: exitFindings, text: err.Error(), cause: err}
	}
	return usage("%v", err)
}

// load loads the files for the first time. A log for machines holds the
// mistakes already; plain text would break it.
func (f *serveFlags) load(ctx context.Context, e env, s *engine.Server) error {
	if !f.log.forMachines() {
		return f.files.load(ctx, e, s, false)
	}
	report, err := s.Load(ctx)
	return loadError(report, f.files.config, err)
}

// announce says where the server listens, in one line that a person can click,
// or as a record where machines read the log, and returns that place.
func (f *serveFlags) announce(e env, logger *slog.Logger, s *engine.Server, at net.Addr) string {
	status := s.Status()
	url := "http://" + at.String() + "/mcp"
	if s.Snapshot().Listen().TLS != nil {
		url = "https://" + at.String() + "/mcp"
	}
	if at.Network() == "unix" {
		url = "unix:" + at.String()
	}
	if f.log.forMachines() {
		logger.Info("listening", slog.String("url", url), slog.String("revision", status.Revision), slog.Int("tools", status.Tools),
			slog.Int("resources", status.Resources), slog.Int("templates", status.Templates), slog.Int("prompts", status.Prompts))
		return url
	}
	fmt.Fprintf(e.stderr, "mcpd serves %s on %s, revision %s\n", offered(status), url, status.Revision[:12])
	return url
}

// changeOf tells the engine, in its own terms, what the watcher saw.
func (f *serveFlags) changeOf(seen watch.Change) engine.Change {
	change := engine.Change{All: seen.Rescan}
	for _, name := range seen.Paths {
		relative, err := filepath.Rel(f.files.tools, name)
		if err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
			change.Paths = append(change.Paths, filepath.ToSlash(relative))
			continue
		}
		change.Config = true
	}
	return change
}

// ballast is how much the heap grows at least before it is collected, in bytes.
const ballast = 32 << 20

// holdBallast has the collector of a long-running process work less often, until
// release is called: it does once as much was allocated as there is, and a server
// with few tools has next to nothing. The ballast counts for that, and is never
// touched, so that it takes up addresses alone.
func holdBallast() (release func()) {
	weight := make([]byte, ballast)
	return func() { runtime.KeepAlive(weight) }
}

// refuse tells a client on stdio why there is no server for it: otherwise its user would
// read no more than that the connection was closed. The operator reads it first: left is
// what of err was not said yet. It returns what is left to say afterwards.
func (f *serveFlags) refuse(e env, err, left error) error {
	if err == nil || !f.stdio || f.began || e.typed {
		return left
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if left.Error() != "" {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(left.Error()))
	}
	why := printable(f.reason(err) + f.holder(e, err))
	if err := serve.RefuseStdio(context.Background(), e.stdin, e.stdout, why); err != nil && !f.log.forMachines() {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(err.Error()))
	}
	return &exitError{code: code}
}

// reason says why the server could not start, for a person who sees nothing but that.
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
		why += fmt.Sprintf("\nmcpd check --tools %s --config %s tells %d more.", f.files.tools, f.files.config, more)
	}
	return why
}

// holderPatience is how long a server that runs may take to say where it listens.
const holderPatience = 2 * time.Second

// holder says which server has the files that this one wants, and what to do, where another
// process is the reason.
func (f *serveFlags) holder(e env, err error) string {
	var advice string
	switch {
	case errors.Is(err, audit.ErrInUse):
		advice = "start this one with another --config, whose audit block has a path of its own"
	case errors.Is(err, engine.ErrInUse):
		advice = "start this one with --state memory"
	default:
		return ""
	}
	path := f.control.path(e, &f.files)
	var row statusRow
	if path != "" {
		if _, err := reach(context.Background(), path, control.Request{Do: control.Status}, holderPatience, &row); err != nil {
			path = ""
		}
	}
	if path == "" {
		return "\nStop the other process, or " + advice + "."
	}
	said := fmt.Sprintf("\nA server of these files runs as process %d, with the control socket %s", row.PID, path)
	at := slices.DeleteFunc(row.Listeners, func(where string) bool { return !strings.Contains(where, "://") })
	if len(at) == 0 {
		return said + ". Stop it, or " + advice + "."
	}
	return fmt.Sprintf("%s. Connect the client to %s, or %s.", said, strings.Join(at, " or "), advice)
}
