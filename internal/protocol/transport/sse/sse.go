// Package sse carries MCP over the HTTP+SSE transport of the revision
// 2024-11-05, which later revisions deprecate and old clients still use.
//
// A GET opens a stream of server-sent events. Its first event is the URI to
// which the client POSTs its messages. All messages of the server, including
// responses, arrive on the stream. The stream is the connection: when it ends,
// the session and its running calls end too.
//
// A client that does not read is disconnected. The package makes no decision
// about a message, and checks neither Host nor Origin: package httpguard must
// wrap the handlers.
package sse

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// Options configure the handlers. The zero value serves all callers as
// anonymous.
type Options struct {
	authn.Middleware
	// Messages is the path for client messages, relative to the path of the
	// handlers; empty means "/messages".
	Messages string
	// NewSessionID returns the id of a new session of a principal, of characters that need no escape in a
	// URL. It must be impossible to guess. Nil means a random text.
	NewSessionID func(identity.Principal) string
	httpstream.Bounds
}

type handler struct {
	server  *mcp.Server
	options Options
	clients sync.Map // *client by session id
}

// New returns the handler that opens streams, and the handler for the messages
// of their clients.
func New(s *mcp.Server, o Options) (streams, messages http.Handler) {
	if o.Messages == "" {
		o.Messages = "/messages"
	}
	if o.NewSessionID == nil {
		o.NewSessionID = func(identity.Principal) string { return rand.Text() }
	}
	o.Bounds = o.Bounds.WithDefaults()
	h := &handler{server: s, options: o}
	return http.HandlerFunc(h.stream), http.HandlerFunc(h.message)
}

func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		httpstream.WriteError(w, http.StatusMethodNotAllowed, "a stream is opened by GET")
		return
	}
	if !httpstream.ParseAccept(r).Events {
		httpstream.WriteError(w, http.StatusNotAcceptable, "the Accept header must list text/event-stream")
		return
	}
	caller, ok := httpstream.Authenticate(w, r, h.options.Middleware)
	if !ok {
		return
	}
	if _, err := mcp.AgentFromHeaders(r.Header); err != nil {
		httpstream.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	caller.Peer.Transport = "sse"
	h.serve(w, r, caller)
}

// message passes a text to the client of its stream.
func (h *handler) message(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpstream.WriteError(w, http.StatusMethodNotAllowed, "messages are sent by POST")
		return
	}
	if !httpstream.CheckContentType(w, r) {
		return
	}
	caller, ok := httpstream.Authenticate(w, r, h.options.Middleware)
	if !ok {
		return
	}
	id := SessionOf(r)
	if id == "" {
		httpstream.WriteError(w, http.StatusBadRequest, "the request needs the parameter "+SessionParameter+" once; the first event of the stream contains it")
		return
	}
	found, _ := h.clients.Load(id)
	c, ok := found.(*client)
	if !ok || !c.conn.BelongsTo(caller.Peer.Principal) {
		unknownSession(w)
		return
	}
	text, ok := httpstream.Read(w, r, h.server.MaxMessage())
	if !ok || !httpstream.CheckAccess(w, r, h.options.Middleware, caller.Access) {
		return
	}
	served := httpguard.RetainBody(r)
	if reply, ok := c.deliver(r.Context(), caller.Peer, text, served); ok {
		httpstream.NewResponse(w, h.bounds(r, caller), func() {}).Finish(reply)
		return
	}
	served()
	unknownSession(w)
}

func unknownSession(w http.ResponseWriter) {
	httpstream.WriteError(w, http.StatusNotFound, "unknown session: it ended with its stream; open another")
}

// bounds returns the options of a response. The send queue of the stream, not
// the response, reserves budget for unread messages.
func (h *handler) bounds(r *http.Request, c *httpstream.Caller) httpstream.Options {
	b := h.options.Bounds
	b.Unread = nil
	return b.Options("sse", r, c)
}

// SessionParameter is the URL parameter that identifies the session.
const SessionParameter = "sessionId"

// SessionOf returns the session that a request of a client names; "" if there is not exactly one.
func SessionOf(r *http.Request) string {
	ids := r.URL.Query()[SessionParameter]
	if len(ids) != 1 {
		return ""
	}
	return ids[0]
}

// client is a client with an open stream.
type client struct {
	// fixed at creation
	conn *mcp.Conn
	ctx  context.Context // of the stream
	turn chan struct{}   // has capacity for one: the request that delivers its text
	gone chan struct{}   // closed when no more texts are accepted
}

// serve serves a client until it disconnects, asks for shutdown, reads too
// slowly, or the server drains.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	response := httpstream.NewResponse(w, h.bounds(r, caller), cancel)
	queue := newSendQueue(h.options.Unread.Hold(caller.Client, response), func() {
		response.Abort()
		cancel()
	})
	defer queue.hold.ReleaseAll()
	conn := h.server.Connect(caller.Peer, queue.put)
	if conn == nil {
		response.Finish(mcp.Refuse(mcp.Unavailable, "the server is shutting down"))
		return
	}
	c := &client{conn: conn, ctx: ctx, turn: make(chan struct{}, 1), gone: make(chan struct{})}
	id := h.options.NewSessionID(caller.Peer.Principal)
	h.clients.Store(id, c)
	var writer sync.WaitGroup
	if response.SendEndpoint(h.endpoint(r, id)) == nil {
		writer.Go(func() { h.write(response, queue) })
		select {
		case <-conn.Done():
		case <-ctx.Done():
		}
	}
	h.clients.Delete(id)
	close(c.gone)
	if ctx.Err() != nil {
		queue.discard()
	}
	c.turn <- struct{}{} // after the last delivery
	conn.Close()
	queue.end()
	writer.Wait()
	response.Finish(mcp.Reply{})
}

// endpoint returns the URI for client messages. It restores the path prefix
// that a mux stripped from the request.
func (h *handler) endpoint(r *http.Request, id string) string {
	base := ""
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		base = strings.TrimSuffix(asked.EscapedPath(), r.URL.EscapedPath())
	}
	return base + h.options.Messages + "?" + SessionParameter + "=" + id
}

// write sends queued messages until the queue ends. It discards the queue if
// the client does not read.
func (h *handler) write(response *httpstream.Response, queue *sendQueue) {
	for {
		f, ok := queue.next()
		if !ok {
			return
		}
		if err := response.Send(f); err != nil {
			queue.discard()
			return
		}
	}
}

// deliver passes a text to the client and returns the reply for the sender;
// false if the client is gone. ctx is the context of the request with the text;
// served is called when the text is no longer used.
func (c *client) deliver(ctx context.Context, sender mcp.Peer, text []byte, served func()) (mcp.Reply, bool) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.gone:
		return mcp.Reply{}, false
	case <-ctx.Done():
		return mcp.Reply{}, false
	}
	select {
	case <-c.gone:
		return mcp.Reply{}, false
	default:
		return c.conn.Deliver(c.ctx, sender, text, served), true
	}
}

// maxUnsentBytes is the number of queued bytes above which put blocks.
const maxUnsentBytes = 256 << 10

// sendQueue holds messages to send, so that a request with a message need not
// wait until its response is sent on the stream.
type sendQueue struct {
	hold  *httpguard.Hold // for queued messages and for those that wait to be queued
	abort func()          // ends the connection

	mu      sync.Mutex
	changed sync.Cond
	frames  []mcp.Frame
	bytes   int // of frames and of the frame being sent
	sending int // bytes of that frame
	ended   bool
}

var errClientGone = errors.New("the client is gone")

func newSendQueue(h *httpguard.Hold, drop func()) *sendQueue {
	q := &sendQueue{hold: h, abort: drop}
	q.changed.L = &q.mu
	return q
}

// put queues a frame. It blocks while too many bytes are queued. A frame
// without room is rejected; if even a short frame has no room, put ends the
// connection.
func (q *sendQueue) put(f mcp.Frame) error {
	if !q.hold.Take(f.Len()) {
		if f.Len() > httpguard.Buffered && !q.hold.Lost() {
			return mcp.ErrQueueFull
		}
		q.abort()
		return errClientGone
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > maxUnsentBytes && !q.ended {
		q.changed.Wait()
	}
	if q.ended {
		q.hold.Release(f.Len())
		return errClientGone
	}
	q.frames = append(q.frames, f)
	q.bytes += f.Len()
	q.changed.Broadcast()
	return nil
}

// next returns the next frame after the previous one was sent. It returns false
// when the queue has ended.
func (q *sendQueue) next() (mcp.Frame, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= q.sending
	q.hold.Release(q.sending)
	q.sending = 0
	q.changed.Broadcast()
	for len(q.frames) == 0 && !q.ended {
		q.changed.Wait()
	}
	if len(q.frames) == 0 {
		return mcp.Frame{}, false
	}
	f := q.frames[0]
	q.frames[0] = mcp.Frame{}
	q.frames, q.sending = q.frames[1:], f.Len()
	return f, true
}

// end accepts no more frames; queued frames are still sent.
func (q *sendQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

// discard accepts no more frames, and discards the queued ones.
func (q *sendQueue) discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended, q.frames = true, nil
	q.changed.Broadcast()
}
