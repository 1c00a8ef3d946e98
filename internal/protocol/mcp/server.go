// Package mcp is the server side of the Model Context Protocol, in all of its
// revisions, over one [Backend].
//
// A [Server] knows two eras. Legacy revisions begin with initialize and have
// sessions; modern ones carry everything in each request. A transport hands
// over a text together with a [Peer], either as an [Exchange], which is
// answered where it came in, or on a [Conn], which carries messages both ways.
// From there on all transports are one: the text passes the JSON gate, becomes
// messages, each message is held to the rules of its era, and its method is
// looked up in one table, which the features fill. What goes back is a [Frame].
//
// A [Kind] tells what is listed and called: tools, resources, templates and
// prompts. Calls of all kinds, and completions, are one [Request] to the
// backend. A call that needs to know something from its client ends with an
// [Ask] and is made again with what was answered, on either era. What there is
// to tell a client unasked waits in its feed until a stream takes it.
//
// The package decides nothing about a call, knows nothing of HCL, JavaScript
// or CEL, and does not know which transport carries a message: where a
// transport has headers that mirror the message, they are held to it.
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
	// Logger receives what operators want to know; nil drops it.
	Logger *slog.Logger
	// Contradicted is told who claims to be another agent than its credential is
	// bound to; nil is nobody.
	OnAgentMismatch func(AgentMismatch)
	// Limits bound each message; zero members stand for those of [jsonguard.Client].
	Limits jsonguard.Limits
	// PageSize is how many tools a page of a list holds; 0 stands for 1000.
	PageSize int
	// SessionIdle is how long a legacy HTTP session lives without a request
	// or an open stream; 0 stands for 30 minutes.
	SessionIdle time.Duration
	// Quiet is how long after a change of the tools clients are told of it,
	// so that several changes are told at once; 0 stands for 20 ms.
	Debounce time.Duration
	// Ping is how long a legacy peer may be idle before it is pinged; 0 stands
	// for 1 minute, and less than 0 for never. One that leaves two pings
	// unanswered is given up.
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

// Server answers MCP clients of every revision out of one [Backend]. It is
// safe for use by many goroutines.
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

	// described is the last description that was encoded.
	encodedInfo atomic.Pointer[encodedInfo]

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// New returns a server. Its [Server.Drain] must be called in the end.
func New(b Backend, o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		backend: b, options: o,
		work:  newDrainGroup(),
		pages: newPageCache(),
		conns: map[*Conn]struct{}{},
	}
	s.notifier = newNotifier(b, o.Debounce)
	s.sessions = newSessions(maxSessions, o.SessionIdle, func(n *session) { s.notifier.remove(&n.feed) })
	s.tasks, _ = b.(TaskBackend)
	s.methods = methodTable(s.tasks != nil)
	return s
}

// Drain refuses what is new, ends the streams and subscriptions in good order,
// waits for the calls under way and for connections to be closed, and stops
// watching the backend. When ctx ends first, Drain returns its cause: what is
// left ends with the contexts that the transports gave it.
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

// MaxMessage is how long a text may be, in bytes: no transport need read more.
func (s *Server) MaxMessage() int { return s.options.Limits.Bytes }

// Draining is closed when [Server.Drain] has been called.
func (s *Server) Draining() <-chan struct{} { return s.work.ending }

// Peer is the client on the other end, as its transport knows it.
type Peer struct {
	Principal identity.Principal
	Source    identity.Source
	// Transport is what the transport calls itself, by which connections are
	// counted. Nothing else depends on it.
	Transport string
	// Headers are those of the HTTP request that brought the message, or
	// that opened the connection; nil when there was none.
	Headers http.Header
}

// origin is where a message comes from and where what it causes goes.
type origin struct {
	peer Peer
	// mirrored says that the peer's headers repeat parts of each message.
	mirrored bool
	// sent are the headers of the request that brought the message to a connection which
	// another request has opened, that of the peer; nil otherwise.
	sent http.Header
	// sessionID is what the client repeats; empty when it repeats none.
	sessionID string
	// session is that of a legacy client; nil before initialize, and for modern clients.
	session *session
	// calls are the requests that notifications/cancelled can name; nil when it can name none.
	calls *inflight
	// emit sends what precedes the answer; nil when the client takes nothing.
	emit func(Frame) error
	// closeStream has the client come back for the rest; nil when it cannot.
	closeStream func()
	// late ends the response of an exchange whose goroutine is held; nil where
	// that cannot be.
	detached DetachedResponse
	// ending is closed when what may take forever is to end.
	ending <-chan struct{}
	// conn is the connection that is a session of its own; nil when the client
	// repeats an id.
	conn *Conn
}

// lost reports whether the client repeats the id of a session that is not its own.
func (o *origin) lost() bool { return o.sessionID != "" && o.session == nil }

// Backend is what answers behind the protocol. All methods are called from
// many goroutines at once; each reads one consistent state.
type Backend interface {
	// Info returns what the server says of itself. It may change at a reload.
	Info() Info
	// List returns what the caller may see of a kind, in the order to show it.
	List(ctx context.Context, k call.Kind, c identity.Caller) List
	// Find returns the named tool without making the list, and nil if there is none. A tool
	// that has mirrors is returned only if the caller may see it.
	Find(ctx context.Context, c identity.Caller, name string) *Entry
	// Call carries out a request to its end. When ctx ends, the call ends soon after. If the
	// call continues as a task, task is that task, and the result has only a revision. A
	// request of kind Templates is a completion; the result of a completion has at most 100
	// values.
	Call(ctx context.Context, r call.Request) (result call.Result, task *Task)
	// Serves reports whether the URI names a resource that the caller may
	// read, listed or not: only of such ones is a client told that they change.
	// It is false of a URI that is too long to be kept for every client.
	CanRead(ctx context.Context, c identity.Caller, uri string) bool
	// Watch calls fn after each published state, until stop is called, with
	// the URIs of resources whose contents are others than before. fn must not
	// block.
	Watch(fn func(changed []string)) (stop func())
	// Follow has fn of Watch be called when a resource that others keep has changed, as far
	// as that can be known, until leave is called. Neither blocks.
	WatchResource(uri string) (leave func())
}

// Info is what a server says of itself.
type Info struct {
	Name, Title, Version, Description string
	Icons                             []Icon
	// Instructions tell a model how to use the server; they may be empty.
	Instructions string
	// LenientLifecycle says that requests are served before the client has sent
	// notifications/initialized.
	LenientLifecycle bool
	// Revision is the content hash of the published state.
	Revision string
}

// Census counts clients.
type ClientCounts struct {
	// Sessions are those of HTTP, which outlive their requests.
	Sessions int
	// Connections are sessions of their own, by the transports of their peers.
	Connections map[string]int
}

// Census counts the clients that there are.
func (s *Server) ClientCounts() ClientCounts {
	now := ClientCounts{Sessions: s.sessions.len(), Connections: map[string]int{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		now.Connections[c.origin.peer.Transport]++
	}
	return now
}

// Contradiction is a request whose caller claims to be another agent than the one that
// its credential is bound to. It is refused.
type AgentMismatch struct {
	// Caller is who sends it. Its agent is the one that is claimed.
	Caller identity.Caller
	// Method is that of MCP, and Name what the request is about, in the words of its
	// caller; "" where it is about nothing, or was refused before that was read, and of a
	// URI, which may hold arguments.
	Method, Name string
	Trace        call.Trace
}
