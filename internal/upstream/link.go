package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/jsongate"
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
}

// Dial connects to a server, and has agreed on a revision with it when it returns. It
// takes no longer than ctx lets it. Close the link when it is of no use any more.
func Dial(ctx context.Context, p Place, o Options) (*Link, error) { return dial(ctx, p, o, way{}) }

// dial is [Dial], for a server that was spoken to before in the way known.
func dial(ctx context.Context, p Place, o Options, known way) (*Link, error) {
	l := &Link{place: p, options: o}
	limits := jsongate.Limits{Bytes: p.MaxMessage, Depth: maxDepth, Tokens: maxTokens, Halves: true}
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
	l.hearLogs(ctx)
	l.watching.Go(func() {
		err := session.Wait()
		l.wire.fail(lost(err))
	})
	return nil
}

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

// allows reports whether the server may ask this.
func (a Asks) allows(method string) bool {
	switch method {
	case methodElicit:
		return a.Elicit
	case methodSample:
		return a.Sample
	}
	return a.Roots
}

// response is what a client answers to a question of the server, in its own words.
type response struct {
	mcp.ElicitResult // has the type be a result, and a response, of the client library
	text             json.RawMessage
}

// MarshalJSON returns the answer as it came.
func (r *response) MarshalJSON() ([]byte, error) { return r.text, nil }

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

// Begin makes a call. It goes on until it ends or [Call.Cancel] is called, whatever
// becomes of ctx, of which it has the values.
func (l *Link) Begin(ctx context.Context, r Request, heard Listener) *Call {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := newCall(l.calls.Add(1), r, heard, cancel)
	ctx = context.WithValue(ctx, callKey{}, c)
	c.began = l.wire.health.heard.Load()
	if err := l.wire.open(c); err != nil {
		cancel(err)
		c.end(err)
		return c
	}
	go func() {
		defer l.wire.running.Done()
		defer cancel(nil)
		err := l.send(ctx, c, r)
		l.wire.close(c)
		cause := context.Cause(ctx)
		if met := c.trouble.Load(); err != nil && cause != nil {
			err = cause
		} else if err != nil && met != nil {
			err = met.error
		}
		l.wire.judge(c, cause, err)
		c.end(err)
	}()
	return c
}

// send sends a request and waits for its response, which the wire takes.
func (l *Link) send(ctx context.Context, c *Call, r Request) error {
	meta, responses := l.meta(ctx, c, r), answers(r.Responses)
	var err error
	switch r.Method {
	case MethodTool:
		_, err = l.session.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: r.Name, Arguments: r.Arguments, InputResponses: responses, RequestState: r.State})
	case MethodRead:
		_, err = l.session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: r.Name, InputResponses: responses, RequestState: r.State})
	case MethodPrompt:
		var arguments map[string]string
		if len(r.Arguments) > 0 {
			if err := json.Unmarshal(r.Arguments, &arguments); err != nil {
				return errors.New("the arguments of a prompt are strings")
			}
		}
		_, err = l.session.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: r.Name, Arguments: arguments, InputResponses: responses, RequestState: r.State})
	case MethodComplete:
		params := &mcp.CompleteParams{}
		if err := json.Unmarshal(r.Arguments, params); err != nil {
			return fmt.Errorf("the params of a completion: %w", err)
		}
		params.Meta = meta
		_, err = l.session.Complete(ctx, params)
	default:
		err = l.page(ctx, meta, r)
	}
	return err
}

// meta returns the _meta of a request.
func (l *Link) meta(ctx context.Context, c *Call, r Request) mcp.Meta {
	meta := mcp.Meta{tokenKey: json.RawMessage(c.token)}
	l.trace(ctx, meta)
	if l.Modern() {
		meta[mcp.MetaKeyClientCapabilities] = json.RawMessage("{}")
		if r.Can != nil {
			meta[mcp.MetaKeyClientCapabilities] = r.Can
		}
		if r.Method == MethodTool || r.Method == MethodRead || r.Method == MethodPrompt {
			meta[logLevelKey] = logLevel
		}
	}
	return meta
}

// traceParentKey is the member of _meta that names the span which a request is a part of
// (2026-07-28 basic/index, OpenTelemetry trace context). Names without a prefix are free
// before.
const traceParentKey = "traceparent"

// trace has a request carry the trace of its context on.
func (l *Link) trace(ctx context.Context, meta mcp.Meta) {
	if l.options.Propagate == nil {
		return
	}
	if parent := l.options.Propagate(ctx); parent != "" {
		meta[traceParentKey] = parent
	}
}

// answers are those to the questions of a server without sessions, by its keys.
func answers(texts map[string]json.RawMessage) mcp.InputResponseMap {
	if texts == nil {
		return nil
	}
	all := make(mcp.InputResponseMap, len(texts))
	for key, text := range texts {
		all[key] = &response{text: text}
	}
	return all
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
