// Package console is the web console of a running server: pages that show what it serves, call its
// items, and list calls, policies, upstream servers, keys, tokens and tasks.
//
// A [Console] is an HTTP handler over a [Backend], which carries requests of the control protocol
// (package control). It has no other access to the server, and keeps nothing except its session,
// the latest calls (feed) and the calls that it made (run).
//
// The pages are rendered by html/template. Forms work without JavaScript; htmx replaces parts of a
// page, and its extension for server-sent events (SSE) keeps them current. No text of the server
// becomes markup: templates escape it, and a filter of whole pages shows invisible characters.
//
// Each request passes [Console.ServeHTTP] before a route sees it. For mcpd console, it checks the host,
// the secret path, the session, and the origin and CSRF token of a POST. On a listener, package serve
// has checked them, and only the CSRF token is checked here.
package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// Backend sends requests to the server. The context of a request is the context of the HTTP request that
// causes it, or one with its values. All methods may be called concurrently.
type Backend interface {
	// Do sends a request and decodes its result into into, a pointer, as [control.Do] does.
	Do(ctx context.Context, r control.Request, into any) error
	// Open sends a request that starts a stream, as [control.Open] does.
	Open(ctx context.Context, r control.Request) (Stream, error)
}

// ForbiddenError is the error of a [Backend] that refuses a request because its caller lacks a right.
type ForbiddenError string

func (e ForbiddenError) Error() string { return string(e) }

// Stream carries lines of JSON after a request: see [control.Conn]. Close ends a Receive that waits.
type Stream interface {
	Send(value any) error
	Receive(into any) error
	Close() error
}

// Options configure a [Console].
type Options struct {
	// Base is the path that all paths start with, such as /console, for pages on a listener that
	// has authenticated the caller and checked the host and the origin. Then Hosts has no meaning,
	// and the only session belongs to the caller. Empty is for a console on its own port,
	// whose base is a secret: see [Console.NewToken].
	Base string
	// SignOut ends the session of a caller of the listener.
	SignOut func()
	// Hosts are the accepted Host headers, such as 127.0.0.1:4321.
	Hosts []string
	// Attach is the argument list of a command that a desktop client starts, such as mcpd attach.
	Attach []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Console is the handler of all pages. It must be closed with [Console.Close].
type Console struct {
	// fixed at creation
	backend Backend
	options Options
	base    string // the path that all paths start with
	mux     *http.ServeMux
	pages   map[string]*template.Template
	assets  map[string]*asset
	feed    *feed
	streams chan struct{} // a slot for each open stream of events
	// completing has a slot for each running completion.
	completing chan struct{}
	token      oneTimeToken // none before NewToken

	// ctx ends with Close. busy counts the goroutines of calls.
	ctx  context.Context
	stop context.CancelFunc
	busy sync.WaitGroup

	// guarded by mu
	mu       sync.Mutex
	session  *session
	runs     []*run            // oldest first
	rows     map[uint64]string // of calls, by their numbers: see callRow
	starting int               // calls that are not in runs yet
}

// maxStreams bounds the open streams of events.
const maxStreams = 24

// New returns a console over a backend.
func New(b Backend, o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	pages, err := parsedPages()
	if err != nil {
		return nil, err
	}
	assets, err := packedAssets()
	if err != nil {
		return nil, err
	}
	c := &Console{backend: b, options: o, base: o.Base, mux: http.NewServeMux(), pages: pages, assets: assets, streams: make(chan struct{}, maxStreams), completing: make(chan struct{}, maxCompleting)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.feed = newFeed(c.ctx, b, o.Now)
	c.route()
	if o.Base != "" {
		c.startSession()
	} else {
		c.base = "/" + rand.Text()
	}
	return c, nil
}

// Close cancels the calls that the console made, ends its streams, and waits for them.
func (c *Console) Close() {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.busy.Wait()
	c.feed.close()
}

// route adds the routes of all pages.
func (c *Console) route() {
	routes := map[string]http.HandlerFunc{
		"GET /{$}":                  c.overview,
		"GET " + startPath:          c.start,
		"GET /overview/events":      c.overviewEvents,
		"GET /items":                c.items,
		"GET /item":                 c.item,
		"POST /item/try":            c.try,
		"POST /item/complete":       c.complete,
		"GET /runs/{id}":            c.runPage,
		"GET /runs/{id}/events":     c.runEvents,
		"GET /runs/{id}/test":       c.downloadTest,
		"POST /runs/{id}/answer":    c.answerRun,
		"POST /runs/{id}/cancel":    c.cancelRun,
		"GET /calls":                c.calls,
		"GET /calls/events":         c.callEvents,
		"GET /calls/{id}":           c.callPage,
		"GET /policies":             c.policies,
		"POST /policies/explain":    c.explain,
		"POST /policies/replay":     c.replay,
		"GET /upstreams":            c.upstreams,
		"GET /upstreams/events":     c.upstreamEvents,
		"GET /access":               c.access,
		"GET /confirm/{action}":     c.confirm,
		"POST /confirm/{action}":    c.perform,
		"POST /reload":              c.reload,
		"GET /assets/{hash}/{name}": c.serveAsset,
	}
	for pattern, handler := range routes {
		c.mux.HandleFunc(pattern, handler)
	}
}

// Timeouts of [Console.Serve]. A write to a stream of events has writePatience.
const (
	readPatience  = 30 * time.Second
	writePatience = 20 * time.Second
	maxHeader     = 32 << 10
	// maxConns bounds the connections. One that serves no request of the session makes room for a
	// new one, so other users of the machine cannot lock out the operator.
	maxConns = 256
)

// Serve serves the console on a listener until ctx is done.
func (c *Console) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: c, ReadTimeout: readPatience, WriteTimeout: requestPatience + writePatience,
		BaseContext: func(net.Listener) context.Context { return c.ctx },
	}
	httpguard.ConfigureServer(server)
	server.MaxHeaderBytes = maxHeader
	l = httpguard.LimitListener(l, httpguard.ConnLimits{Total: maxConns})
	defer context.AfterFunc(ctx, func() {
		c.stop()
		_ = server.Close()
	})()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}

// requestPatience is the timeout of a request to the server. A reload may run tests.
const requestPatience = 2 * time.Minute

// do sends a request with parameters to the server and decodes its result into into.
func (c *Console) do(r *http.Request, action control.Action, params, into any) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), requestPatience, errors.New("the server did not answer in time"))
	defer cancel()
	request, err := control.NewRequest(action, params)
	if err != nil {
		return err
	}
	return c.backend.Do(ctx, request, into)
}

// said is the response to the requests that verbs of mcpd use too: JSON, and diagnostics as text.
type said struct {
	JSON        json.RawMessage `json:"said"`
	Diagnostics string          `json:"printed"`
}

// errUnknownResponse is the error of a response of another version.
var errUnknownResponse = errors.New("the response of the server cannot be decoded; use the same mcpd as the server")

// ask sends a request whose response is [said], and decodes its JSON into into. It returns the
// diagnostics.
func (c *Console) ask(r *http.Request, request control.Request, into any) (diagnostics string, err error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), requestPatience, errors.New("the server did not answer in time"))
	defer cancel()
	var got said
	if err := c.backend.Do(ctx, request, &got); err != nil {
		return "", err
	}
	if err := json.Unmarshal(got.JSON, into); err != nil {
		return "", errUnknownResponse
	}
	return got.Diagnostics, nil
}
