// Package serve serves an engine to clients: MCP over Streamable HTTP, HTTP+SSE,
// WebSocket and stdio, the REST API of RFC-0001, health checks, and the OAuth
// callback pages for users who authorize the server.
//
// [New] returns a [Front]. Most programs call [Front.Run], which serves the
// configured transport until its context ends:
//
//	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: files}, Front: serve.Checks{}})
//	if err != nil {
//		return err
//	}
//	return serve.New(server, serve.Options{}).Run(ctx)
//
// A program with its own HTTP server mounts [Front.Handler], and a program with
// its own streams calls [Front.Stdio]. Both call [Front.Shutdown] at the end.
// [Checks] makes a load fail if the front could not serve the files.
//
// The package makes no decision about a call: the engine does.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// DefaultAddress is the listen address of HTTP unless the options or the config
// file set another.
const DefaultAddress = "127.0.0.1:8080"

// Options configure a [Front]. The zero value is ready for use.
type Options struct {
	// Address is the host:port for HTTP, or "unix:" and the path of a socket.
	// Empty means the address in the config file, or [DefaultAddress].
	Address string
	// InsecureListen allows an address other than loopback without
	// authentication.
	InsecureListen bool
	// Hosts and Origins are allowed in addition to those in the config file.
	Hosts, Origins []string
	// Grace is the time for running calls to end at shutdown. 0 means 10 s.
	Grace time.Duration
	// In and Out are the streams of the stdio transport. Out carries only
	// protocol messages.
	In  io.Reader
	Out io.Writer
	// Local is the principal at the other end of stdio. The zero Principal means
	// anonymous.
	Local identity.Principal
	// OnListen is called with the address of HTTP when it accepts connections.
	OnListen func(net.Addr)
	// Console has the pages for the console block of mcpd.hcl. If it is nil, the block has no effect.
	Console Console
	// Bundle returns the problems of the bundle that the engine loaded its files from. The status
	// lists them, and the server stays ready. It is nil without a bundle.
	Bundle func() diag.List
}

// Front serves one engine to clients. Its methods are safe for concurrent use.
type Front struct {
	engine  *engine.Server
	options Options
	backend *backend
	mcp     *mcp.Server
	auth    *authManager
	// console is nil without [Options.Console].
	console *consoleSessions
	// link is the link to other replicas; nil before [Front.Run], and without a replica block.
	link atomic.Pointer[link]

	// attached bounds the bytes of messages of all attached clients, and attaches
	// counts these clients.
	attached *httpguard.Budget
	attaches atomic.Uint64

	// listenConfigChanged is true if the configured listener differs from the
	// bound one.
	listenConfigChanged atomic.Bool

	closing  sync.Once
	closeErr error
}

// LocalPrincipal returns the principal of the operating-system user at the
// other end of stdio or at a command line.
func LocalPrincipal(uid, name string) identity.Principal { return authn.LocalPrincipal(uid, name) }

// New returns a front for an engine. [Front.Run] loads the engine unless it is
// loaded. The caller must call [Front.Run] or [Front.Shutdown] at the end.
func New(e *engine.Server, o Options) *Front {
	if o.Grace <= 0 {
		o.Grace = 10 * time.Second
	}
	if o.Local.ID == "" {
		o.Local = identity.Anonymous()
	}
	b := &backend{engine: e, encoded: newEncodeCache(e.Logger()), Tasks: tasks.New(tasks.Options{
		Store: func() (tasks.Store, error) { return e.Inside().State() },
		Run: func(ctx context.Context, r call.Request) call.Result {
			r.Cancelled = cancellation
			return e.Execute(ctx, r)
		},
		Logger: e.Logger(),
	})}
	who := newAuthManager(e)
	f := &Front{engine: e, options: o, backend: b, auth: who, attached: httpguard.NewBudget(0)}
	if o.Console != nil {
		f.console = newConsoleSessions(f, o.Console, who.middleware())
	}
	f.mcp = mcp.New(b, mcp.Options{Logger: e.Logger(), OnAgentMismatch: who.onClaimMismatch, NewSessionID: f.newSessionID})
	e.SetClientCounter(f.clients)
	e.SetStatusFilter(f.auth.withAuthDiagnostics)
	return f
}

// Handler returns the handler of all HTTP routes, with the checks of hosts and
// origins: the options and the present config file list them. It loads
// the engine if necessary. It returns an error if loading fails, or if a host
// or an origin is invalid.
func (f *Front) Handler() (http.Handler, error) {
	if err := f.load(context.Background()); err != nil {
		return nil, err
	}
	return f.handler(f.listen())
}

func (f *Front) handler(l engine.Listen) (http.Handler, error) {
	callback := f.engine.OAuthCallbacks()
	guard, err := httpguard.New(httpguard.Options{
		Hosts: l.Hosts, Origins: l.Origins, JSONRPCPaths: []string{"/mcp", "/ws", "/sse", "/mcp/sse", "/messages"},
		IsCallback: func(r *http.Request) bool { return callback(r) != nil }, IsPage: f.console.isConsole,
	})
	if err != nil {
		return nil, fmt.Errorf("configure hosts and origins: %w", err)
	}
	if err := f.auth.sync(); err != nil {
		return nil, err
	}
	mux, endpoint := http.NewServeMux(), http.Handler(nil)
	routes := f.routes(guard.Bodies(), httpguard.NewBudget(0))
	if link := f.link.Load(); link != nil {
		link.forwardSessions(routes, guard)
	}
	for _, r := range routes {
		if mux.Handle(r.pattern, r.handler); r.pattern == mcpPath {
			endpoint = r.handler
		}
	}
	return guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == mcpPath { // the most frequent path, without the cost of a mux
			endpoint.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})), nil
}

// Run loads the engine if necessary, serves the configured transport until ctx
// is done or the client of stdio disconnects, and then shuts down: running
// calls and hooks end, and the engine is closed, within the grace period. On Linux, an
// idle process keeps only the pages of its program file that it still uses.
func (f *Front) Run(ctx context.Context) error {
	var trimming sync.WaitGroup
	defer trimming.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	err := f.load(ctx)
	if err == nil {
		trimming.Go(func() { osproc.UnmapIdle(running, f.activity, func() { osproc.FindProgram().Unmap() }) })
	}
	switch {
	case err != nil:
	case f.engine.Transport() == "stdio":
		err = f.runStdio(ctx)
	default:
		err = f.runHTTP(ctx)
	}
	return errors.Join(err, f.Shutdown(context.WithoutCancel(ctx)))
}

// activity returns a number that each call and each load changes.
func (f *Front) activity() uint64 {
	status := f.engine.Status()
	return uint64(status.Calls) + uint64(status.Loads)
}

// Status returns the status of the engine, with the state of the front: it is
// not synchronized while the files of auth blocks cannot be read, and a restart
// is needed if the configured listener differs from the bound one. It has the
// problems of a bundle. A front that ends connections to shut down is draining.
func (f *Front) Status() engine.Status {
	status := f.engine.Status()
	select {
	case <-f.mcp.Draining(): // before the first connection ends, and maybe before the engine rejects calls
		status.Draining = true
	default:
	}
	status.RestartNeeded = status.RestartNeeded || f.listenConfigChanged.Load()
	status = f.auth.withAuthDiagnostics(status)
	if problems := f.bundleProblems(); len(problems) > 0 {
		status.Problems = slices.Concat(status.Problems, problems).Sort()
	}
	return status
}

func (f *Front) bundleProblems() diag.List {
	if f.options.Bundle == nil {
		return nil
	}
	return f.options.Bundle()
}

// Sessions returns the number of sessions by transport ("streamable", "sse",
// "websocket", "stdio"). Clients of revision 2026-07-28 have no sessions over
// Streamable HTTP and REST; on other transports each connection is a session.
func (f *Front) Sessions() map[string]int {
	now := f.mcp.ClientCounts()
	sessions := map[string]int{"streamable": now.Sessions, "sse": 0, "websocket": 0, "stdio": 0}
	for transport, n := range now.Connections {
		sessions[transport] += n
	}
	return sessions
}

func (f *Front) load(ctx context.Context) error {
	if f.engine.Snapshot() != nil {
		return nil
	}
	if _, err := f.engine.Load(ctx); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// Stdio serves one client over a pair of streams until in ends, the client asks
// for shutdown or ctx is done. After in ends, running calls have the grace
// period to end.
func (f *Front) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	peer := mcp.Peer{Principal: f.options.Local, Source: identity.Source{Listener: "stdio"}, Transport: "stdio"}
	return stdio.Serve(ctx, f.mcp, peer, in, out, stdio.Options{Grace: f.options.Grace})
}

// CancelTask ends a task of a principal, for the operator of the server. It has no effect on a task
// that has ended. The error is a [*call.Error].
func (f *Front) CancelTask(ctx context.Context, owner identity.Principal, id string) error {
	if err := f.backend.CancelTask(ctx, identity.Caller{Principal: owner}, id); err != nil {
		return err
	}
	return nil
}

// RefuseStdio answers the first requests of a client over a pair of streams
// when no front could be created: each gets an error with the message why. It
// waits for them for a limited time.
func RefuseStdio(ctx context.Context, in io.Reader, out io.Writer, why string) error {
	return stdio.Refuse(ctx, in, out, why)
}

func (f *Front) runStdio(ctx context.Context) error {
	if f.options.In == nil || f.options.Out == nil {
		return errors.New("run stdio: no streams in the options")
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- f.Stdio(serving, f.options.In, f.options.Out) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = f.Shutdown(context.WithoutCancel(ctx)) // Run returns the error
	cancel()
	return <-ended
}

func (f *Front) runHTTP(ctx context.Context) error {
	listen := f.listen()
	link, err := f.openLink()
	if err != nil {
		return err
	}
	defer link.close()
	handler, err := f.handler(listen)
	if err != nil {
		return err
	}
	demanding := f.auth.enforceCredentials(httpguard.CheckListen(listen.Address, false) != nil)
	if err := httpguard.CheckListen(listen.Address, f.options.InsecureListen || listen.TLS != nil && demanding); err != nil {
		return err
	}
	if f.engine.Snapshot().Info().ExposesTraces && httpguard.CheckListen(listen.Address, false) != nil {
		f.engine.Logger().Warn("expose_traces shows script locations to callers on other machines")
	}
	defer f.watchListenConfig(listen)()
	f.auth.listener.Store(&listen.Address)
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(f.engine.Logger().Handler(), slog.LevelDebug)}
	listener, err := f.bind(server, listen)
	if err != nil {
		return err
	}
	if err := link.serve(f.engine.Inside().States()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if f.options.OnListen != nil {
		f.options.OnListen(listener.Addr())
	}
	httpguard.ConfigureServer(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve http: %w", err), server.Close())
	case <-ctx.Done():
	}
	err = f.shutdownHTTP(context.WithoutCancel(ctx), server)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve http: %w", served))
	}
	return err
}

// shutdownHTTP stops listening, waits for running calls, and then closes the
// remaining connections.
func (f *Front) shutdownHTTP(ctx context.Context, server *http.Server) error {
	bounded, cancel := context.WithTimeout(ctx, f.options.Grace+cancelTimeout)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- server.Shutdown(bounded) }()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		f.link.Load().shutdown(bounded)
	}()
	defer func() { <-stopped }()
	_ = f.Shutdown(ctx) // Run returns the error
	if <-closed != nil {
		return server.Close()
	}
	return nil
}

// cancelTimeout is the time for cancelled calls and their hooks to end after
// the grace period.
const cancelTimeout = 2 * time.Second

// errShutdown is the cause of calls cancelled after the grace period.
var errShutdown = errors.New("the server is shutting down")

// Shutdown rejects new calls, waits at most the grace period for running calls,
// tasks and hooks, then cancels the remaining ones, and closes the engine. The
// error reports cancelled calls. A second Shutdown returns the result of the
// first.
func (f *Front) Shutdown(ctx context.Context) error {
	f.closing.Do(func() {
		bounded, cancel := context.WithTimeout(ctx, f.options.Grace)
		defer cancel()
		if f.console != nil {
			f.console.closeAll()
		}
		if err := f.drain(bounded); err != nil {
			f.closeErr = fmt.Errorf("the grace period of %s has ended: %w", f.options.Grace, err)
		}
		f.backend.inflight.cancelAll(errShutdown)
		final, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		cut := f.backend.Tasks.Close(final)
		if f.closeErr != nil {
			// Wait for the cancelled calls; the error is already set.
			_ = f.drain(final)
		}
		f.closeErr = errors.Join(f.closeErr, cut, f.engine.Close(final), f.auth.close())
	})
	return f.closeErr
}

// drain rejects new calls, and waits for running calls and clients. The error
// names one of them, as the others wait for it.
func (f *Front) drain(ctx context.Context) error {
	// From now on the engine rejects new calls on every route.
	calls, legs := make(chan error, 1), make(chan error, 1)
	go func() { calls <- f.engine.Drain(ctx) }()
	go func() { legs <- f.backend.Tasks.Drain(ctx) }()
	clients := f.mcp.Drain(ctx)
	if clients != nil {
		clients = fmt.Errorf("drain clients: %w", clients)
	}
	return cmp.Or(<-calls, <-legs, clients)
}
