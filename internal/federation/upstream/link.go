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
type Link struct {
	// Fixed once it is dialled.
	place    Place
	options  Options
	wire     *wire
	session  *mcp.ClientSession
	child    *program // nil over HTTP
	leave    func()   // ends all streams
	way      way      // in which the server is spoken to over HTTP
	watching sync.WaitGroup

	calls atomic.Int64
	debug debugging
}

// Dial connects to a server, and has agreed on a revision with it when it returns. It
// takes no longer than ctx lets it. Close the link when it is of no use any more.
func Dial(ctx context.Context, p Place, o Options) (*Link, error) { return dial(ctx, p, o, way{}) }

// dial is [Dial], for a server that was spoken to before in the way known.
func dial(ctx context.Context, p Place, o Options, known way) (*Link, error) {
	l := &Link{place: p, options: o}
	limits := jsonguard.Limits{Bytes: p.MaxMessage, Depth: maxDepth, Tokens: maxTokens, Halves: true}
	if limits.Bytes <= 0 {
		limits.Bytes = defaultMessage
	}
	changed := o.Changed
	if changed == nil {
		changed = func(string, string) {}
	}
	l.wire = newWire(limits, p.Ask, changed)
	// Streams last as long as the context that they are opened with.
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	l.leave = leave
	stop := context.AfterFunc(ctx, leave)
	err := l.connect(life, known)
	if !stop() {
		err = l.child.explained(context.Cause(ctx))
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Link) connect(ctx context.Context, known way) error {
	if len(l.place.Command) == 0 {
		return l.find(ctx, known)
	}
	child, err := l.start(ctx)
	if err != nil {
		return err
	}
	l.child = child
	return l.shake(ctx, &mcp.IOTransport{Reader: child, Writer: child, MaxLineLength: -1})
}

func (l *Link) shake(ctx context.Context, t mcp.Transport) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpd", Version: l.options.Version}, &mcp.ClientOptions{
		Capabilities:               l.place.Ask.capabilities(),
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	client.AddReceivingMiddleware(l.hear)
	shaken := make(chan struct{})
	l.watching.Go(func() {
		select { // the client library waits for what can no more come
		case <-l.wire.dead:
			l.leave()
		case <-shaken:
		}
	})
	session, err := client.Connect(ctx, t, nil)
	close(shaken)
	if err != nil {
		if cause := l.wire.failure(); cause != nil {
			return cause
		}
		return err
	}
	l.session = session
	l.wire.ready.Store(true)
	_ = l.hearLogs(ctx, false) // it has been said
	l.watching.Go(func() {
		err := session.Wait()
		l.wire.fail(lost(err))
	})
	return nil
}

// hear takes requests of the server to the clients of its calls.
func (l *Link) hear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != carrier {
			return next(ctx, method, req)
		}
		mark, _ := req.GetParams().GetMeta()[markKey].(string)
		d, err := l.wire.demanded(mark)
		if err != nil {
			return nil, err
		}
		answer, err := d.call.ask(ctx, d.method, d.params)
		if err != nil {
			return nil, err
		}
		return &response{text: answer}, nil
	}
}

// modern is the first revision without sessions.
const modern = "2026-07-28"

// Revision is the revision of the protocol that the server speaks.
func (l *Link) Revision() string { return l.session.InitializeResult().ProtocolVersion }

func (l *Link) Modern() bool { return l.Revision() >= modern }

// Dead is closed when the connection cannot be used any more.
func (l *Link) Dead() <-chan struct{} { return l.wire.dead }

// Err is why the connection cannot be used any more; nil while it can.
func (l *Link) Err() error { return l.wire.failure() }

// ErrLost is why the calls of a link end whose server has ended it.
var ErrLost = errors.New("the connection to the server is lost")

// lost is ErrLost with the reason, where there is one.
func lost(why error) error {
	if why == nil {
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrLost, why)
}

// ErrClosed is why the calls of a link that was closed end.
var ErrClosed = errors.New("the connection to the server was closed")

// Close ends the connection, its calls, and the program that was started for it. It waits
// until nothing of them is left.
func (l *Link) Close() error {
	l.wire.fail(ErrClosed)
	var err error
	if l.session != nil {
		err = l.session.Close()
	}
	l.leave()
	if l.child != nil {
		l.child.end()
		err = nil // its streams have ended, however
	}
	l.wire.running.Wait()
	l.watching.Wait()
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
	Value func(context.Context, grant.Value) (string, error)
	// Environment returns the variables that every program gets, as NAME=value, and how many
	// servers stand before this one, each started as the program of the one before it.
	// Programs of [MaxDepth] or more are not started: they would be those of a server that is
	// its own upstream. Nil is neither.
	Environment func() (env []string, depth int)
	// Propagate returns the traceparent (W3C Trace Context) that the requests of a context
	// carry on in _meta, "" for none. Nil has none carried on. There is no tracestate: it
	// would be text of whoever calls.
	Propagate func(context.Context) (traceparent string)
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
type Place struct {
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
	Ask Asks
	// Start is how long the server may take until it is ready, and MaxMessage what it may
	// send at once, in bytes.
	Start      time.Duration
	MaxMessage int
	// Lazy has the server reached when it is called first. It is no part of the hash: one
	// that is reached goes on.
	Lazy bool `json:"-"`
}

// The values of [Place.Transport].
const (
	// Streamable is Streamable HTTP, of all revisions since 2025-03-26.
	Streamable = "streamable"
	// Events is HTTP with SSE, of revision 2024-11-05.
	Events = "sse"
)

// Hash is that of everything that the place says.
func (p Place) Hash() [32]byte {
	// Plain data always encodes.
	text, _ := json.Marshal(p)
	return sha256.Sum256(text)
}

type Asks struct{ Elicit, Sample, Roots bool }

// capabilities are those that the server is told once, where its revision has sessions.
func (a Asks) capabilities() *mcp.ClientCapabilities {
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

func (a Asks) allows(method string) bool {
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
func leastLevel(debug bool) mcp.LoggingLevel {
	if debug {
		return "debug"
	}
	return "info"
}

// hearLogs asks a server that has sessions to log, of what is for developers, too, where
// debug says so. One that will not is heard no less.
func (l *Link) hearLogs(ctx context.Context, debug bool) error {
	can := l.session.InitializeResult().Capabilities
	//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 are asked so
	if l.Modern() || can == nil || can.Logging == nil {
		return nil
	}
	//lint:ignore SA1019 as above
	err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: leastLevel(debug)})
	if err != nil {
		l.options.Logger.Debug("an upstream server does not log", slog.String("upstream", l.place.Name), logged("error", err.Error()))
	}
	return err
}

// debugging has a session log more while calls want that. It has one level for the calls of
// all: no other is told what it did not ask for, and none pays for it longer than it must.
type debugging struct {
	mu    sync.Mutex
	calls int  // that want it
	on    bool // the server may log so
}

// hearDebug has a server that has sessions log more, before the call of ctx is made, until
// leave is called. Neither is a part of the call, or takes longer than [leaveTime].
func (l *Link) hearDebug(ctx context.Context) (leave func()) {
	ctx = context.WithValue(context.WithoutCancel(ctx), callKey{}, (*Call)(nil))
	level := func(debug bool) error {
		ctx, cancel := context.WithTimeout(ctx, leaveTime)
		defer cancel()
		return l.hearLogs(ctx, debug)
	}
	d := &l.debug
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
const maxNoise = truncate.Least

// logged is what a server says, for the log. Who hides secrets in it sees where it was cut:
// half of one may stand there.
func logged(key, text string) slog.Attr { return slog.String(key, truncate.Text(text, maxNoise)) }
