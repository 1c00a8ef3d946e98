// Package serve joins an engine to its fronts: MCP over Streamable HTTP,
// WebSocket and stdio, the RFC's REST wire, health checks, and the pages to which
// users come back who let the server have tokens of theirs. [New] makes a
// [Front]; [Front.Run] binds the transport that the engine's options name,
// [Front.Handler] fits into any mux, and [Front.Stdio] speaks over a pair of
// streams. The package decides nothing about a call: the engine does.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/tasks"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// DefaultAddress is where HTTP listens unless the options or the operator's
// file say otherwise.
const DefaultAddress = "127.0.0.1:8080"

// Options configure a [Front]. The zero value is ready for use.
type Options struct {
	// Address is the host:port of HTTP, or "unix:" and the path of a socket.
	// Empty means what the operator's file says, or [DefaultAddress].
	Address string
	// InsecureListen allows an address beyond loopback without authentication.
	InsecureListen bool
	// Hosts and Origins are allowed beside those of the operator's file.
	Hosts, Origins []string
	// Grace is how long calls may take to end at shutdown. 0 means 10 s.
	Grace time.Duration
	// In and Out are the streams of the stdio transport. Out carries protocol only.
	In  io.Reader
	Out io.Writer
	// Local is the principal on the other end of stdio. The zero Principal is
	// anonymous.
	Local identity.Principal
	// OnListen is told the address of HTTP, once it accepts connections.
	OnListen func(net.Addr)
}

// Front shows one engine to clients. Its methods may be used together.
type Front struct {
	engine  *engine.Server
	options Options
	backend *backend
	mcp     *mcp.Server
	auth    *authManager

	// outdated says that the operator's file wants another listener than there is.
	listenConfigChanged atomic.Bool

	closing  sync.Once
	closeErr error
}

// LocalPrincipal is the operating-system user who holds the other end of stdio
// or types a command line.
func LocalPrincipal(uid, name string) identity.Principal { return authn.LocalPrincipal(uid, name) }

// New returns a front for an engine. The engine is loaded by [Front.Run],
// unless it has been before. [Front.Shutdown] or the end of Run must come last.
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
	f := &Front{engine: e, options: o, backend: b, mcp: mcp.New(b, mcp.Options{Logger: e.Logger(), OnAgentMismatch: who.onClaimMismatch}), auth: who}
	e.CountClients(f.clients)
	e.JudgeStatus(f.auth.withAuthDiagnostics)
	return f
}

// Handler returns the handler of all HTTP routes, behind the gate that decides
// which hosts and origins may enter: those of the options and of the operator's
// file as it is now. It loads the engine when nothing has loaded it yet, and
// fails when that fails, or when a host or an origin is none.
func (f *Front) Handler() (http.Handler, error) {
	if err := f.load(context.Background()); err != nil {
		return nil, err
	}
	return f.handler(f.listen())
}

func (f *Front) handler(l engine.Listen) (http.Handler, error) {
	returns := f.engine.Returns()
	door, err := httpguard.New(httpguard.Options{
		Hosts: l.Hosts, Origins: l.Origins, JSONRPCPaths: []string{"/mcp", "/ws", "/sse", "/mcp/sse", "/messages"},
		IsCallback: func(r *http.Request) bool { return returns(r) != nil },
	})
	if err != nil {
		return nil, fmt.Errorf("make gate: %w", err)
	}
	if err := f.auth.sync(); err != nil {
		return nil, err
	}
	mux, endpoint := http.NewServeMux(), http.Handler(nil)
	for _, r := range f.routes(door.Bodies(), httpguard.NewBudget(0)) {
		if mux.Handle(r.pattern, r.handler); r.pattern == mcpPath {
			endpoint = r.handler
		}
	}
	return door.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == mcpPath { // which most go to, and a mux takes its time to find
			endpoint.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})), nil
}

// Run loads the engine when nothing has loaded it yet, binds the transport
// that the engine's options name, and serves until ctx is done or the client of
// stdio is gone. Then calls in flight end, hooks run, and the engine is closed,
// all within the grace period.
func (f *Front) Run(ctx context.Context) error {
	err := f.load(ctx)
	switch {
	case err != nil:
	case f.engine.Transport() == "stdio":
		err = f.runStdio(ctx)
	default:
		err = f.runHTTP(ctx)
	}
	return errors.Join(err, f.Shutdown(context.WithoutCancel(ctx)))
}

// Status is that of the engine, which knows nothing of how the front lets callers in: it
// is not synchronized either while the files of auth blocks cannot be read as they are
// now, and a restart is needed also where the operator's file wants another listener
// than there is.
func (f *Front) Status() engine.Status {
	status := f.engine.Status()
	status.RestartNeeded = status.RestartNeeded || f.listenConfigChanged.Load()
	return f.auth.withAuthDiagnostics(status)
}

// Sessions counts, by transport ("streamable", "sse", "websocket", "stdio"), the
// sessions that there are. Clients of revision 2026-07-28 have none over Streamable
// HTTP and REST; elsewhere each connection is one.
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
// for shutdown or ctx is done. Once in has ended, calls in flight have the grace
// period to end in.
func (f *Front) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	peer := mcp.Peer{Principal: f.options.Local, Source: identity.Source{Listener: "stdio"}, Transport: "stdio"}
	return stdio.Serve(ctx, f.mcp, peer, in, out, f.options.Grace)
}

// RefuseStdio answers the first requests of a client over a pair of streams, in the place
// of a front that could not be made: each gets an error with the message why. It waits for
// them for a bounded time.
func RefuseStdio(ctx context.Context, in io.Reader, out io.Writer, why string) error {
	return stdio.Refuse(ctx, in, out, why)
}

func (f *Front) runStdio(ctx context.Context) error {
	if f.options.In == nil || f.options.Out == nil {
		return errors.New("run stdio: the options name no streams")
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
	_ = f.Shutdown(context.WithoutCancel(ctx)) // Run returns its error
	cancel()
	return <-ended
}

func (f *Front) runHTTP(ctx context.Context) error {
	listen := f.listen()
	handler, err := f.handler(listen)
	if err != nil {
		return err
	}
	demanding := f.auth.enforceCredentials(httpguard.CheckListen(listen.Address, false) != nil)
	if err := httpguard.CheckListen(listen.Address, f.options.InsecureListen || listen.TLS != nil && demanding); err != nil {
		return err
	}
	if f.engine.Snapshot().Info().ExposesTraces && httpguard.CheckListen(listen.Address, false) != nil {
		f.engine.Logger().Warn("callers from other machines are told where bodies fail; remove expose_traces unless that is meant")
	}
	defer f.watchListenConfig(listen)()
	f.auth.listener.Store(&listen.Address)
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(f.engine.Logger().Handler(), slog.LevelDebug)}
	listener, err := f.bind(server, listen)
	if err != nil {
		return err
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

// shutdownHTTP stops to listen, lets calls end, and then closes what is left:
// a connection on which no call is answered any more.
func (f *Front) shutdownHTTP(ctx context.Context, server *http.Server) error {
	bounded, cancel := context.WithTimeout(ctx, f.options.Grace+cancelTimeout)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- server.Shutdown(bounded) }()
	_ = f.Shutdown(ctx) // Run returns its error
	if <-closed != nil {
		return server.Close()
	}
	return nil
}

// patience is how long calls that were cancelled at the end of the grace
// period, and their hooks, may take to end.
const cancelTimeout = 2 * time.Second

// errCut is why a call was cancelled that outlived the grace period.
var errShutdown = errors.New("the server is shutting down")

// Shutdown refuses what is new, waits at most the grace period for calls in
// flight, those of tasks too, and for their hooks, then cancels the calls that
// still run, and closes the engine. The error says that calls had to be
// cancelled. A second Shutdown returns what the first did.
func (f *Front) Shutdown(ctx context.Context) error {
	f.closing.Do(func() {
		bounded, cancel := context.WithTimeout(ctx, f.options.Grace)
		defer cancel()
		if err := f.drain(bounded); err != nil {
			f.closeErr = fmt.Errorf("the grace period of %s is over: %w", f.options.Grace, err)
		}
		f.backend.inflight.cancelAll(errShutdown)
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
		defer cancel()
		cut := f.backend.Tasks.Close(late)
		if f.closeErr != nil {
			// Their ends are waited for; that they were late has been said.
			_ = f.drain(late)
		}
		f.closeErr = errors.Join(f.closeErr, cut, f.engine.Close(late), f.auth.close())
	})
	return f.closeErr
}

// drain refuses what is new, and waits for the calls and clients that there are.
// Of what is late it names one: the others wait for that.
func (f *Front) drain(ctx context.Context) error {
	// The engine refuses new calls from now on, whichever route they take.
	calls, legs := make(chan error, 1), make(chan error, 1)
	go func() { calls <- f.engine.Drain(ctx) }()
	go func() { legs <- f.backend.Tasks.Drain(ctx) }()
	clients := f.mcp.Drain(ctx)
	if clients != nil {
		clients = fmt.Errorf("drain clients: %w", clients)
	}
	return cmp.Or(<-calls, <-legs, clients)
}
