// Package upstream is the client of upstream MCP servers. Their tools, resources and prompts
// this server offers as its own.
//
// A [Target] describes a server and a [Conn] is a connection to it. [Dial] starts the program
// or connects to the host and negotiates a protocol revision. [Conn.List] reads what the server
// offers, as a [Listing]. [Conn.Start] starts a [Call], which returns the result or the input
// requests of the server.
//
// The go-sdk implements the protocol: both eras, their transports and handshakes. All data from
// the server passes a message filter first. The filter rejects what package jsonguard rejects,
// hides unsolicited messages from the SDK, and keeps results as raw JSON: no result is decoded
// and encoded again on its way to the caller.
//
// Data from a server is not trusted. A server cannot address another caller's call: its input
// requests, notifications and logs go to the call with the stream they arrive on. On a shared
// stream they go to the only running call, or are dropped.
package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// The limits of server messages, except their size.
const (
	maxDepth  = 64
	maxTokens = 1_000_000
	// defaultMessage is the default size limit of a message, in bytes.
	defaultMessage = 4 << 20
)

// Conn is a connection to a server. It is safe for concurrent use.
type Conn struct {
	// Fixed once connected.
	target       Target
	options      Options
	filter       *messageFilter
	session      *mcp.ClientSession
	child        *stdioServer     // nil over HTTP
	closeStreams func()           // closes all streams, or the input of the program
	variant      transportVariant // the transport in use over HTTP
	background   sync.WaitGroup

	lastToken atomic.Int64
	debugLogs debugState
}

// Dial connects to a server and negotiates a protocol revision. It returns when ctx is done at
// the latest. Close the connection after use.
func Dial(ctx context.Context, t Target, o Options) (*Conn, error) {
	return dial(ctx, t, o, transportVariant{})
}

// dial is [Dial] for a server that was last reached with the known variant.
func dial(ctx context.Context, t Target, o Options, known transportVariant) (*Conn, error) {
	c := &Conn{target: t, options: o}
	limits := jsonguard.Limits{Bytes: t.MaxMessage, Depth: maxDepth, Tokens: maxTokens, Halves: true}
	if limits.Bytes <= 0 {
		limits.Bytes = defaultMessage
	}
	changed := o.Changed
	if changed == nil {
		changed = func(string, string) {}
	}
	c.filter = newMessageFilter(limits, t.Input, changed)
	// A stream lives as long as the context that opens it.
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	c.closeStreams = leave
	stop := context.AfterFunc(ctx, leave)
	err := c.connect(life, known)
	if !stop() {
		err = c.child.withStderr(context.Cause(ctx))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) connect(ctx context.Context, known transportVariant) error {
	if len(c.target.Command) == 0 {
		return c.probe(ctx, known)
	}
	child, err := c.startProgram(ctx)
	if err != nil {
		return err
	}
	c.child = child
	context.AfterFunc(ctx, func() { _ = child.Close() }) // the client library waits for its writes
	return c.handshake(ctx, &mcp.IOTransport{Reader: child, Writer: child, MaxLineLength: -1})
}

func (c *Conn) handshake(ctx context.Context, t mcp.Transport) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpd", Version: c.options.Version}, &mcp.ClientOptions{
		Capabilities:               c.target.Input.capabilities(),
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	client.AddReceivingMiddleware(c.interceptRequests)
	connected := make(chan struct{})
	c.background.Go(func() {
		select { // the client library would wait forever
		case <-c.filter.done:
			c.closeStreams()
		case <-connected:
		}
	})
	session, err := client.Connect(ctx, t, nil)
	close(connected)
	if err != nil {
		if cause := c.filter.failure(); cause != nil {
			return cause
		}
		return err
	}
	c.session = session
	c.filter.ready.Store(true)
	_ = c.setLogLevel(ctx, false) // already logged
	c.background.Go(func() {
		err := session.Wait()
		c.filter.fail(connectionLost(err))
	})
	return nil
}

// interceptRequests relays requests of the server to the clients of its calls.
func (c *Conn) interceptRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != carrierMethod {
			return next(ctx, method, req)
		}
		mark, _ := req.GetParams().GetMeta()[requestMarkKey].(string)
		d, err := c.filter.takeRequest(mark)
		if err != nil {
			return nil, err
		}
		answer, err := d.call.requestInput(ctx, d.method, d.params)
		if err != nil {
			return nil, err
		}
		return &rawResponse{text: answer}, nil
	}
}

// modern is the first revision without sessions.
const modern = "2026-07-28"

// Revision returns the negotiated protocol revision.
func (c *Conn) Revision() string { return c.session.InitializeResult().ProtocolVersion }

func (c *Conn) Modern() bool { return c.Revision() >= modern }

// Done is closed when the connection can no longer be used.
func (c *Conn) Done() <-chan struct{} { return c.filter.done }

// Err says why the connection can no longer be used; nil while it can.
func (c *Conn) Err() error { return c.filter.failure() }

// ErrConnectionLost ends the calls of a connection that the server has closed.
var ErrConnectionLost = errors.New("connection to the server lost")

// connectionLost returns ErrConnectionLost with the reason, if there is one.
func connectionLost(err error) error {
	if err == nil {
		return ErrConnectionLost
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, err)
}

// ErrClosed ends the calls of a connection that was closed locally.
var ErrClosed = errors.New("connection to the server closed")

// Close closes the connection, its calls and its program, and waits until all of them have
// ended.
func (c *Conn) Close() error {
	c.filter.fail(ErrClosed)
	if c.child != nil {
		late := time.AfterFunc(stopTimeout, c.closeStreams) // the program may not read its input
		defer late.Stop()
	}
	var err error
	if c.session != nil {
		err = c.session.Close()
	}
	c.closeStreams()
	if c.child != nil {
		c.child.stop()
		err = nil // an error of streams that have ended anyway
	}
	c.filter.running.Wait()
	c.background.Wait()
	return err
}

// Options configure connections. Version, Transport, ResolveValue and Logger are required.
type Options struct {
	// Version is the version of this server, sent to the upstream.
	Version string
	// Transport connects to hosts under a grant.
	Transport func(grant.HTTP) http.RoundTripper
	// ResolveValue resolves a value that may contain secrets.
	ResolveValue func(context.Context, grant.Value) (string, error)
	// Environment returns the variables that every program inherits, as NAME=value, and the
	// number of servers in front of this one, each started as the program of the previous one.
	// Programs at depth [MaxDepth] are not started: the server would be its own upstream. If
	// nil, there are none.
	Environment func() (env []string, depth int)
	// Traceparent returns the traceparent (W3C Trace Context) for the _meta of requests in a
	// context, or "". If nil, none is sent. There is no tracestate: it would be text of the
	// caller.
	Traceparent func(context.Context) (traceparent string)
	// Redact redacts secrets in output of a program before it is truncated. If nil, nothing is
	// redacted.
	Redact func(text string) string
	// Supervisor is the command of the process that runs programs (see package supervisor).
	Supervisor []string
	// Changed receives change notifications: the method for a changed list, and the URI of an
	// updated resource. It must not block.
	Changed func(method, uri string)
	Logger  *slog.Logger
}

// MaxDepth bounds the depth in [Options].Environment. DepthVariable passes the depth to
// programs.
const (
	MaxDepth      = 4
	DepthVariable = "MCPD_UPSTREAM_DEPTH"
)

// Target describes a server and how to connect to it. Exactly one of Command and URL is set.
type Target struct {
	// Name is the name of the upstream block, for logs.
	Name string
	// Command is the absolute path of a program and its arguments, Dir its working directory,
	// and Env its variables.
	Command []string
	Dir     string
	Env     []grant.Variable
	// URL is the address of an HTTP server; it is reached under Grant.
	URL   string
	Grant grant.HTTP
	// Transport is [TransportStreamable] or [TransportSSE]; "" detects it.
	Transport string
	// Input says which input requests may reach the clients of calls.
	Input InputPolicy
	// StartTimeout bounds the time until the server is ready, and MaxMessage the size of one
	// message, in bytes.
	StartTimeout time.Duration
	MaxMessage   int
	// Lazy connects on the first call. It is not part of the hash: a connected server stays
	// connected.
	Lazy bool `json:"-"`
}

// The values of [Target.Transport].
const (
	// TransportStreamable is Streamable HTTP, of all revisions since 2025-03-26.
	TransportStreamable = "streamable"
	// TransportSSE is HTTP with SSE, of revision 2024-11-05.
	TransportSSE = "sse"
)

// Hash returns a hash of all fields but Lazy.
func (t Target) Hash() [32]byte {
	// Plain data always encodes.
	text, _ := json.Marshal(t)
	return sha256.Sum256(text)
}

type InputPolicy struct{ Elicit, Sample, Roots bool }

// capabilities returns the client capabilities for revisions with sessions, which are sent
// once.
func (p InputPolicy) capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{}
	if p.Elicit {
		c.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if p.Sample {
		//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 ask for it
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	if p.Roots {
		//lint:ignore SA1019 as above
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	return c
}

func (p InputPolicy) allows(method string) bool {
	switch method {
	case methodElicit:
		return p.Elicit
	case methodSample:
		return p.Sample
	}
	return p.Roots
}

// logLevelKey is the member of _meta that requests logs from servers without sessions
// (2026-07-28 server/utilities/logging): without it they log nothing.
const logLevelKey = "io.modelcontextprotocol/logLevel"

// logLevel returns the minimum level of logs to request.
//
//lint:ignore SA1019 servers of all revisions know it
func logLevel(debug bool) mcp.LoggingLevel {
	if debug {
		return "debug"
	}
	return "info"
}

// setLogLevel requests logs from a server with sessions, including debug logs if debug is set.
// A server that refuses stays in use.
func (c *Conn) setLogLevel(ctx context.Context, debug bool) error {
	can := c.session.InitializeResult().Capabilities
	//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 are asked so
	if c.Modern() || can == nil || can.Logging == nil {
		return nil
	}
	//lint:ignore SA1019 as above
	err := c.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: logLevel(debug)})
	if err != nil {
		c.options.Logger.Debug("set log level of upstream server", slog.String("upstream", c.target.Name), logText("error", err.Error()))
	}
	return err
}

// debugState counts the calls that want debug logs in a session, which has one log level for
// all calls. The level is lowered after the last such call.
type debugState struct {
	mu    sync.Mutex
	calls int  // calls that want debug logs
	on    bool // the session may have the debug level
}

// enableDebugLogs raises the log level of a session before the call of ctx, until leave is
// called. Both requests are independent of the call and bounded by [stopTimeout].
func (c *Conn) enableDebugLogs(ctx context.Context) (leave func()) {
	ctx = context.WithValue(context.WithoutCancel(ctx), callKey{}, (*Call)(nil))
	level := func(debug bool) error {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		return c.setLogLevel(ctx, debug)
	}
	d := &c.debugLogs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; !d.on {
		d.on = true
		_ = level(true) // already logged
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.calls--; d.calls == 0 {
			d.on = level(false) != nil
		}
	}
}

// maxLogText bounds server text in one log record, in bytes.
const maxLogText = truncate.Least

// logText returns an attribute with text of a server. The truncation is marked, so that a
// redactor can recognize a truncated secret.
func logText(key, text string) slog.Attr { return slog.String(key, truncate.Text(text, maxLogText)) }
