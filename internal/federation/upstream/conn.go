// Package upstream is the client of other MCP servers: those whose tools, resources and
// prompts this server offers as its own.
//
// A [Place] says where a server is, and a [Link] is a connection to it: [Dial] starts the
// program or reaches the host, agrees on a revision of the protocol, and [Link.List]
// reads all that the server offers, as a [Listing]. [Link.Begin] makes a call, of which
// the [Call] tells what comes of it: that it has ended, or what the server asks its
// client in the midst of it.
//
// The go-sdk knows the protocol: both eras, their transports and their handshakes. It
// stands behind a wire that every byte of the server passes first. The wire refuses what
// package jsonguard does, keeps to itself what answers no question, and takes results as
// they are: nothing of a result is decoded and written anew on its way to the caller.
//
// What a server sends is believed nothing. It cannot name a call of somebody else: what
// it asks, tells and logs goes to the call on whose stream it came, and where streams are
// shared, to the only one that runs, or to nobody.
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

// The limits of what servers send, but for its size.
const (
	maxDepth  = 64
	maxTokens = 1_000_000
	// defaultMessage is what a server may send at once, in bytes, unless its place says
	// otherwise.
	defaultMessage = 4 << 20
)

// Link is a connection to a server. It is safe for concurrent use.
type Conn struct {
	// Fixed once it is dialled.
	target       Target
	options      Options
	filter       *messageFilter
	session      *mcp.ClientSession
	child        *stdioServer     // nil over HTTP
	closeStreams func()           // ends all streams
	variant      transportVariant // in which the server is spoken to over HTTP
	background   sync.WaitGroup

	lastToken atomic.Int64
	debugLogs debugState
}

// Dial connects to a server, and has agreed on a revision with it when it returns. It
// takes no longer than ctx lets it. Close the link when it is of no use any more.
func Dial(ctx context.Context, p Target, o Options) (*Conn, error) {
	return dial(ctx, p, o, transportVariant{})
}

// dial is [Dial], for a server that was spoken to before in the way known.
func dial(ctx context.Context, p Target, o Options, known transportVariant) (*Conn, error) {
	l := &Conn{target: p, options: o}
	limits := jsonguard.Limits{Bytes: p.MaxMessage, Depth: maxDepth, Tokens: maxTokens, Halves: true}
	if limits.Bytes <= 0 {
		limits.Bytes = defaultMessage
	}
	changed := o.Changed
	if changed == nil {
		changed = func(string, string) {}
	}
	l.filter = newMessageFilter(limits, p.Input, changed)
	// Streams last as long as the context that they are opened with.
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	l.closeStreams = leave
	stop := context.AfterFunc(ctx, leave)
	err := l.connect(life, known)
	if !stop() {
		err = l.child.withStderr(context.Cause(ctx))
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Conn) connect(ctx context.Context, known transportVariant) error {
	if len(l.target.Command) == 0 {
		return l.probe(ctx, known)
	}
	child, err := l.startProgram(ctx)
	if err != nil {
		return err
	}
	l.child = child
	return l.handshake(ctx, &mcp.IOTransport{Reader: child, Writer: child, MaxLineLength: -1})
}

func (l *Conn) handshake(ctx context.Context, t mcp.Transport) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpd", Version: l.options.Version}, &mcp.ClientOptions{
		Capabilities:               l.target.Input.capabilities(),
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	client.AddReceivingMiddleware(l.interceptRequests)
	connected := make(chan struct{})
	l.background.Go(func() {
		select { // the client library waits for what can no more come
		case <-l.filter.done:
			l.closeStreams()
		case <-connected:
		}
	})
	session, err := client.Connect(ctx, t, nil)
	close(connected)
	if err != nil {
		if cause := l.filter.failure(); cause != nil {
			return cause
		}
		return err
	}
	l.session = session
	l.filter.ready.Store(true)
	_ = l.setLogLevel(ctx, false) // it has been said
	l.background.Go(func() {
		err := session.Wait()
		l.filter.fail(connectionLost(err))
	})
	return nil
}

// hear takes requests of the server to the clients of its calls.
func (l *Conn) interceptRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != carrierMethod {
			return next(ctx, method, req)
		}
		mark, _ := req.GetParams().GetMeta()[requestMarkKey].(string)
		d, err := l.filter.takeRequest(mark)
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

// Revision is the revision of the protocol that the server speaks.
func (l *Conn) Revision() string { return l.session.InitializeResult().ProtocolVersion }

func (l *Conn) Modern() bool { return l.Revision() >= modern }

// Dead is closed when the connection cannot be used any more.
func (l *Conn) Done() <-chan struct{} { return l.filter.done }

// Err is why the connection cannot be used any more; nil while it can.
func (l *Conn) Err() error { return l.filter.failure() }

// ErrLost is why the calls of a link end whose server has ended it.
var ErrConnectionLost = errors.New("the connection to the server is lost")

// lost is ErrLost with the reason, where there is one.
func connectionLost(why error) error {
	if why == nil {
		return ErrConnectionLost
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, why)
}

// ErrClosed is why the calls of a link that was closed end.
var ErrClosed = errors.New("the connection to the server was closed")

// Close ends the connection, its calls, and the program that was started for it. It waits
// until nothing of them is left.
func (l *Conn) Close() error {
	l.filter.fail(ErrClosed)
	var err error
	if l.session != nil {
		err = l.session.Close()
	}
	l.closeStreams()
	if l.child != nil {
		l.child.stop()
		err = nil // its streams have ended, however
	}
	l.filter.running.Wait()
	l.background.Wait()
	return err
}

// Options are what connections are made with. Version, Transport, Value and Logger are
// required.
type Options struct {
	// Version is that of this server, which says so.
	Version string
	// Transport reaches hosts under a grant.
	Transport func(grant.HTTP) http.RoundTripper
	// Value puts text together that may hold secrets.
	ResolveValue func(context.Context, grant.Value) (string, error)
	// Environment returns the variables that every program gets, as NAME=value, and how many
	// servers stand before this one, each started as the program of the one before it.
	// Programs of [MaxDepth] or more are not started: they would be those of a server that is
	// its own upstream. Nil is neither.
	Environment func() (env []string, depth int)
	// Propagate returns the traceparent (W3C Trace Context) that the requests of a context
	// carry on in _meta, "" for none. Nil has none carried on. There is no tracestate: it
	// would be text of whoever calls.
	Traceparent func(context.Context) (traceparent string)
	// Redact hides the values of secrets in what a program says, before a part of it is
	// taken. Nil hides nothing.
	Redact func(text string) string
	// Supervisor is the process that runs programs (see package supervisor).
	Supervisor []string
	// Changed is told of what the server says of itself: that a list has changed, by its
	// method, and of a resource its URI. It must not block.
	Changed func(method, uri string)
	Logger  *slog.Logger
}

// MaxDepth bounds the depth of [Options].Environment, and DepthVariable is the one by which a program is told.
const (
	MaxDepth      = 4
	DepthVariable = "MCPD_UPSTREAM_DEPTH"
)

// Place says where a server is, and how to speak to it. Exactly one of Command and URL
// is set.
type Target struct {
	// Name is that of the upstream block, for the log.
	Name string
	// Command is a program, by its absolute path, and its arguments; Dir is the folder
	// that it runs in. Env holds its variables.
	Command []string
	Dir     string
	Env     []grant.Variable
	// URL is that of a server over HTTP, which is reached under the grant.
	URL   string
	Grant grant.HTTP
	// Transport is [Streamable] or [Events], "" where it is found out.
	Transport string
	// Ask is what the server may ask of the clients of its calls.
	Input InputPolicy
	// Start is how long the server may take until it is ready, and MaxMessage what it may
	// send at once, in bytes.
	StartTimeout time.Duration
	MaxMessage   int
	// Lazy has the server reached when it is called first. It is no part of the hash: one
	// that is reached goes on.
	Lazy bool `json:"-"`
}

// The values of [Place.Transport].
const (
	// Streamable is Streamable HTTP, of all revisions since 2025-03-26.
	TransportStreamable = "streamable"
	// Events is HTTP with SSE, of revision 2024-11-05.
	TransportSSE = "sse"
)

// Hash is that of everything that the place says.
func (p Target) Hash() [32]byte {
	// Plain data always encodes.
	text, _ := json.Marshal(p)
	return sha256.Sum256(text)
}

type InputPolicy struct{ Elicit, Sample, Roots bool }

// capabilities are those that the server is told once, where its revision has sessions.
func (a InputPolicy) capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{}
	if a.Elicit {
		c.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if a.Sample {
		//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 ask for it
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	if a.Roots {
		//lint:ignore SA1019 as above
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	return c
}

func (a InputPolicy) allows(method string) bool {
	switch method {
	case methodElicit:
		return a.Elicit
	case methodSample:
		return a.Sample
	}
	return a.Roots
}

// logLevelKey is the member of _meta by which servers without sessions are asked to log
// (2026-07-28 server/utilities/logging): they log nothing otherwise.
const logLevelKey = "io.modelcontextprotocol/logLevel"

// leastLevel is the level from which on servers are asked to log of calls.
//
//lint:ignore SA1019 servers of all revisions know it
func logLevel(debug bool) mcp.LoggingLevel {
	if debug {
		return "debug"
	}
	return "info"
}

// hearLogs asks a server that has sessions to log, of what is for developers, too, where
// debug says so. One that will not is heard no less.
func (l *Conn) setLogLevel(ctx context.Context, debug bool) error {
	can := l.session.InitializeResult().Capabilities
	//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 are asked so
	if l.Modern() || can == nil || can.Logging == nil {
		return nil
	}
	//lint:ignore SA1019 as above
	err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: logLevel(debug)})
	if err != nil {
		l.options.Logger.Debug("an upstream server does not log", slog.String("upstream", l.target.Name), logText("error", err.Error()))
	}
	return err
}

// debugging has a session log more while calls want that. It has one level for the calls of
// all: no other is told what it did not ask for, and none pays for it longer than it must.
type debugState struct {
	mu    sync.Mutex
	calls int  // that want it
	on    bool // the server may log so
}

// hearDebug has a server that has sessions log more, before the call of ctx is made, until
// leave is called. Neither is a part of the call, or takes longer than [leaveTime].
func (l *Conn) enableDebugLogs(ctx context.Context) (leave func()) {
	ctx = context.WithValue(context.WithoutCancel(ctx), callKey{}, (*Call)(nil))
	level := func(debug bool) error {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		return l.setLogLevel(ctx, debug)
	}
	d := &l.debugLogs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; !d.on {
		d.on = true
		_ = level(true) // it has been said
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.calls--; d.calls == 0 {
			d.on = level(false) != nil
		}
	}
}

// maxNoise is how much of the words of a server one record of the log has, in bytes.
const maxLogText = truncate.Least

// logged is what a server says, for the log. Who hides secrets in it sees where it was cut:
// half of one may stand there.
func logText(key, text string) slog.Attr { return slog.String(key, truncate.Text(text, maxLogText)) }
