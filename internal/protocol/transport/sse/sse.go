// Package sse carries MCP over the HTTP+SSE transport of the revision
// 2024-11-05, which later ones have deprecated and old clients still speak.
//
// A GET opens a stream of server-sent events. Its first event says where the
// client is to POST its messages; everything that the server says, answers too,
// comes on the stream. The stream is the connection: when it ends, so does the
// session, with all that is under way.
//
// A client that does not take what is sent to it is dropped. The package
// decides nothing about a message, and judges neither Host nor Origin: a gate
// must stand before the handlers.
package sse

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// Options adjust the handlers. The zero value serves everyone as anonymous.
type Options struct {
	authn.Middleware
	// Messages is the path that clients send their messages to, below the one
	// that the handlers are mounted on; empty stands for "/messages".
	Messages string
	httpstream.Bounds
}

type handler struct {
	server  *mcp.Server
	options Options
	clients sync.Map // *client by the id of its session
}

// New returns the handler that streams are opened on, and the one that takes
// the messages of their clients.
func New(s *mcp.Server, o Options) (streams, messages http.Handler) {
	if o.Messages == "" {
		o.Messages = "/messages"
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

// message hands a text to the client whose stream it belongs to.
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
	ids := r.URL.Query()[sessionParameter]
	if len(ids) != 1 {
		httpstream.WriteError(w, http.StatusBadRequest, "the request needs the parameter "+sessionParameter+", once: the stream told it in its first event")
		return
	}
	found, _ := h.clients.Load(ids[0])
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
	if reply, ok := c.deliver(r.Context(), inboundMessage{sender: caller.Peer, text: text, served: served}); ok {
		httpstream.NewResponse(w, h.bounds(r, caller), func() {}).Finish(reply)
		return
	}
	served()
	unknownSession(w)
}

func unknownSession(w http.ResponseWriter) {
	httpstream.WriteError(w, http.StatusNotFound, "unknown session: it ended with its stream; open another")
}

// bounds returns the options of a response. The outbox of the stream, not the response,
// takes room for what waits.
func (h *handler) bounds(r *http.Request, c *httpstream.Caller) httpstream.Options {
	b := h.options.Bounds
	b.Unread = nil
	return b.Options("sse", r, c)
}

// sessionParameter is what a client repeats in the URL of each message.
const sessionParameter = "sessionId"

// client is one that holds a stream open.
type client struct {
	// fixed at creation
	conn  *mcp.Conn
	inbox chan inboundMessage
	gone  chan struct{} // closed when no text is taken any more
}

// delivery is a text that a request has brought.
type inboundMessage struct {
	sender mcp.Peer
	text   []byte
	// served is called once the text is not used any more.
	served func()
	reply  chan<- mcp.Reply // has room for one
}

// serve serves a client until it goes, asks for shutdown, is dropped, or the
// server drains.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	answer := httpstream.NewResponse(w, h.bounds(r, caller), cancel)
	waiting := newSendQueue(h.options.Unread.Hold(caller.Client, answer), func() {
		answer.Abort()
		cancel()
	})
	defer waiting.hold.ReleaseAll()
	conn := h.server.Connect(caller.Peer, waiting.put)
	if conn == nil {
		answer.Finish(mcp.Refuse(mcp.Unavailable, "the server is shutting down"))
		return
	}
	c := &client{conn: conn, inbox: make(chan inboundMessage), gone: make(chan struct{})}
	id := rand.Text()
	h.clients.Store(id, c)
	var writer sync.WaitGroup
	if answer.SendEndpoint(h.endpoint(r, id)) == nil {
		writer.Go(func() { h.write(answer, waiting) })
		c.receive(ctx)
	}
	h.clients.Delete(id)
	close(c.gone)
	if ctx.Err() != nil {
		waiting.discard()
	}
	conn.Close()
	waiting.end()
	writer.Wait()
	answer.Finish(mcp.Reply{})
}

// endpoint returns where the client is to send its messages: below the path
// that whoever mounted the handlers has taken off.
func (h *handler) endpoint(r *http.Request, id string) string {
	base := ""
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		base = strings.TrimSuffix(asked.EscapedPath(), r.URL.EscapedPath())
	}
	return base + h.options.Messages + "?" + sessionParameter + "=" + id
}

// write writes what waits until there will be no more. A client that does not
// take it is dropped.
func (h *handler) write(answer *httpstream.Response, waiting *sendQueue) {
	for {
		f, ok := waiting.next()
		if !ok {
			return
		}
		if err := answer.Send(f); err != nil {
			waiting.discard()
			return
		}
	}
}

func (c *client) receive(ctx context.Context) {
	for {
		select {
		case d := <-c.inbox:
			d.reply <- c.conn.Deliver(ctx, d.sender, d.text, d.served)
		case <-c.conn.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// deliver has a text taken in, and returns why it was not; false when the
// client is gone. ctx is that of the request which has brought the text.
func (c *client) deliver(ctx context.Context, d inboundMessage) (mcp.Reply, bool) {
	reply := make(chan mcp.Reply, 1)
	d.reply = reply
	select {
	case c.inbox <- d:
		return <-reply, true
	case <-c.gone:
	case <-ctx.Done():
	}
	return mcp.Reply{}, false
}

// maxBehind is how many bytes may wait for a client before what else there is
// to send waits for it too.
const maxUnsentBytes = 256 << 10

// outbox holds what is to be sent, so that a request which brings a message
// need not wait until its answer has gone out on the stream.
type sendQueue struct {
	hold  *httpguard.Hold // of what waits, and of what waits to be put in
	abort func()          // ends the connection

	mu      sync.Mutex
	changed sync.Cond
	frames  []mcp.Frame
	bytes   int // of frames, and of the one that is being sent
	sending int // the bytes of that one
	ended   bool
}

var errClientGone = errors.New("the client is gone")

func newSendQueue(h *httpguard.Hold, drop func()) *sendQueue {
	o := &sendQueue{hold: h, abort: drop}
	o.changed.L = &o.mu
	return o
}

// put adds a frame. It waits for a client that is far behind. A frame that there is no
// room for is refused, but where a short one finds none either, the client is dropped.
func (o *sendQueue) put(f mcp.Frame) error {
	if !o.hold.Take(f.Len()) {
		if f.Len() > httpguard.Buffered && !o.hold.Lost() {
			return mcp.ErrQueueFull
		}
		o.abort()
		return errClientGone
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > maxUnsentBytes && !o.ended {
		o.changed.Wait()
	}
	if o.ended {
		o.hold.Release(f.Len())
		return errClientGone
	}
	o.frames = append(o.frames, f)
	o.bytes += f.Len()
	o.changed.Broadcast()
	return nil
}

// next returns the frame to send once the one before it was sent. False means
// that there will be no more.
func (o *sendQueue) next() (mcp.Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= o.sending
	o.hold.Release(o.sending)
	o.sending = 0
	o.changed.Broadcast()
	for len(o.frames) == 0 && !o.ended {
		o.changed.Wait()
	}
	if len(o.frames) == 0 {
		return mcp.Frame{}, false
	}
	f := o.frames[0]
	o.frames[0] = mcp.Frame{}
	o.frames, o.sending = o.frames[1:], f.Len()
	return f, true
}

// end takes no more frames; what waits is still sent.
func (o *sendQueue) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.changed.Broadcast()
}

// abandon takes no more frames, and forgets what waits.
func (o *sendQueue) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended, o.frames = true, nil
	o.changed.Broadcast()
}
