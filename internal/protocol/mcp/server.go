// Package mcp implements the server side of the Model Context Protocol, in all
// its revisions, over one [Backend].
//
// A [Server] serves two eras. Legacy revisions start with initialize and have
// sessions; modern revisions carry everything in each request. A transport
// passes a text with the [Peer] that sent it. An [Exchange] returns one reply,
// and a [Conn] carries messages both ways. From there all transports share one
// path: the JSON guard checks the text, which is then parsed into messages.
// Each message is validated by the rules of its era, and its method is looked
// up in one table. The reply is a [Frame].
//
// A [call.Kind] names what is listed and called: tools, resources, templates
// and prompts. Calls of all kinds, and completions, reach the backend as one
// [call.Request]. A call that needs input from its client ends with a
// [call.Ask] and is called again with the responses, in either era.
// Notifications without a request wait in a feed until a stream takes them.
//
// The package makes no decision about a call, does not depend on HCL,
// JavaScript or CEL, and does not know which transport carries a message. If a
// transport has headers that mirror the message, the package checks them
// against the message.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Options adjust a [Server]. The zero value is ready for use.
type Options struct {
	// Logger receives log records; nil discards them.
	Logger *slog.Logger
	// OnAgentMismatch is called for each request whose claimed agent is not the
	// agent that its credential is bound to. It may be nil.
	OnAgentMismatch func(AgentMismatch)
	// Limits bound each message. Zero fields take the values of
	// [jsonguard.Client].
	Limits jsonguard.Limits
	// PageSize is the maximum number of entries in a page of a list; 0 means
	// 1000.
	PageSize int
	// SessionIdle is how long a legacy HTTP session lives without a request or an
	// open stream; 0 means 30 minutes.
	SessionIdle time.Duration
	// NewSessionID returns the id of a new HTTP session of a principal. It must be impossible to guess.
	// Nil means a random text.
	NewSessionID func(identity.Principal) string
	// Debounce is the delay between a change of the lists and its notification,
	// so that several changes share one notification; 0 means 20 ms.
	Debounce time.Duration
	// Ping is how long a legacy peer may be idle before the server pings it; 0
	// means 1 minute, a negative value disables pings. A peer that leaves two
	// pings unanswered is disconnected.
	Ping time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Limits.Bytes <= 0 {
		o.Limits.Bytes = jsonguard.Client().Bytes
	}
	if o.PageSize <= 0 {
		o.PageSize = 1000
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = 30 * time.Minute
	}
	if o.Debounce <= 0 {
		o.Debounce = 20 * time.Millisecond
	}
	if o.Ping == 0 {
		o.Ping = time.Minute
	}
	return o
}

// Server serves MCP clients of every revision from one [Backend]. It is safe
// for concurrent use.
type Server struct {
	// fixed at creation
	backend  Backend
	tasks    TaskBackend // nil when the backend has no tasks
	options  Options
	methods  map[string]*method
	work     *drainGroup
	sessions *sessions
	notifier *notifier
	pages    *pageCache

	// encodedInfo is the last encoded Implementation object.
	encodedInfo atomic.Pointer[encodedInfo]

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// New returns a server. The caller must call [Server.Drain] at the end.
func New(b Backend, o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		backend: b, options: o,
		work:  newDrainGroup(),
		pages: newPageCache(),
		conns: map[*Conn]struct{}{},
	}
	s.notifier = newNotifier(b, o.Debounce)
	s.sessions = newSessions(maxSessions, o.SessionIdle, func(sess *session) { s.notifier.remove(&sess.feed) })
	if o.NewSessionID != nil {
		s.sessions.newID = o.NewSessionID
	}
	s.tasks, _ = b.(TaskBackend)
	s.methods = methodTable(s.tasks != nil)
	return s
}

// Drain rejects new requests, ends streams and subscriptions in order, waits
// for running calls and open connections, and stops watching the backend. If
// ctx ends first, Drain returns its cause; the remaining calls end with the
// contexts that their transports passed.
func (s *Server) Drain(ctx context.Context) error {
	s.work.end()
	s.mu.Lock()
	for c := range s.conns {
		c.work.end()
	}
	s.mu.Unlock()
	s.notifier.stop()
	return s.work.wait(ctx)
}

// MaxMessage returns the maximum length of a text, in bytes. Transports need
// not read more.
func (s *Server) MaxMessage() int { return s.options.Limits.Bytes }

// Draining returns a channel that is closed when [Server.Drain] is called.
func (s *Server) Draining() <-chan struct{} { return s.work.ending }

// Peer is the client at the other end, as its transport sees it.
type Peer struct {
	Principal identity.Principal
	Source    identity.Source
	// Transport is the name of the transport. Connections are counted by it;
	// nothing else depends on it.
	Transport string
	// Headers are the headers of the HTTP request that carried the message or
	// opened the connection; nil without HTTP.
	Headers http.Header
}

// origin is the source of a message and the destination of its effects.
type origin struct {
	peer Peer
	// mirrored is true if the peer's headers mirror each message.
	mirrored bool
	// sent holds the headers of the request that delivered the message to a
	// connection opened by another request; nil otherwise.
	sent http.Header
	// sessionID is the session id that the client sent; empty for none.
	sessionID string
	// session is the session of a legacy client; nil before initialize and for
	// modern clients.
	session *session
	// calls are the requests that notifications/cancelled can cancel; nil if it
	// can cancel none.
	calls *inflight
	// emit sends what precedes the response; nil if the client accepts nothing.
	emit func(Frame) error
	// closeStream closes the stream, and the client reconnects for the rest; nil
	// if the client cannot reconnect.
	closeStream func()
	// detached ends the response of an exchange while its goroutine is blocked;
	// nil if that cannot happen.
	detached DetachedResponse
	// ending is closed when requests without a time limit must end.
	ending <-chan struct{}
	// conn is the connection, which is its own session; nil if the client sends a
	// session id.
	conn *Conn
}

// lost reports whether the client sent the id of a session that it does not
// own.
func (o *origin) lost() bool { return o.sessionID != "" && o.session == nil }

// Backend answers the requests of the protocol. All methods are called
// concurrently; each call reads one consistent state.
type Backend interface {
	// Info returns the server's description of itself. It may change at a reload.
	Info() Info
	// List returns the entries of a kind that the caller may see, in display
	// order.
	List(ctx context.Context, k call.Kind, c identity.Caller) List
	// Find returns the named tool without building the list, or nil if there is
	// none. It returns a tool with mirrored arguments only if the caller may see
	// it.
	Find(ctx context.Context, c identity.Caller, name string) *Entry
	// Call runs a request to its end. When ctx ends, the call ends soon after. If
	// the call continues as a task, Call returns that task, and a result with
	// only a revision. A request of kind Templates is a completion; its result
	// has at most 100 values.
	Call(ctx context.Context, r call.Request) (result call.Result, task *Task)
	// CanRead reports whether the URI names a resource that the caller may read,
	// listed or not: clients are notified of changes of such resources only. It
	// returns false for a URI that is too long to store for every client.
	CanRead(ctx context.Context, c identity.Caller, uri string) bool
	// Watch calls fn after each published state, until stop is called. changed
	// holds the URIs of resources whose contents changed. fn must not block.
	Watch(fn func(changed []string)) (stop func())
	// WatchResource watches a resource of an upstream server until leave is
	// called. When the resource changes, as far as the backend can detect it, the
	// backend calls the function passed to Watch. Neither function blocks.
	WatchResource(uri string) (leave func())
}

// Info describes a server.
type Info struct {
	Name, Title, Version, Description string
	Icons                             []Icon
	// Instructions explain to a model how to use the server; they may be empty.
	Instructions string
	// LenientLifecycle is true if requests are served before the client sends
	// notifications/initialized.
	LenientLifecycle bool
	// Revision is the content hash of the published state.
	Revision string
}

// ClientCounts holds numbers of clients.
type ClientCounts struct {
	// Sessions is the number of HTTP sessions, which outlive their requests.
	Sessions int
	// Connections are the connections by transport; each is its own session.
	Connections map[string]int
}

// ClientCounts returns the current numbers of clients.
func (s *Server) ClientCounts() ClientCounts {
	now := ClientCounts{Sessions: s.sessions.len(), Connections: map[string]int{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		now.Connections[c.origin.peer.Transport]++
	}
	return now
}

// AgentMismatch describes a rejected request: its caller claims an agent other
// than the one that its credential is bound to.
type AgentMismatch struct {
	// Caller is the sender. Its agent is the claimed one.
	Caller identity.Caller
	// Method is the MCP method. Name is the requested item, as the caller named
	// it. It is empty if the method has no item, if the request was rejected
	// before the name was read, and for a URI, which may hold arguments.
	Method, Name string
	Trace        call.Trace
}
