package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
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

// connect opens a session with the server.
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

// shake opens a session.
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

// Modern reports whether the server has no sessions.
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
