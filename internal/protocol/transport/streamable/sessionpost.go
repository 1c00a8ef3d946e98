package streamable

import (
	"net/http"
	"sync"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// sessionPost serves the text of a POST in a legacy session. The goroutine of
// the HTTP handler runs the request, as most requests only have a result. When
// something precedes the result, another goroutine starts to write a stream.
// From then on the request outlives the connection, and the client can resume
// the stream.
type sessionPost struct {
	// fixed at creation
	handler *handler
	w       http.ResponseWriter
	r       *http.Request
	caller  *httpstream.Caller
	session string
	version string
	ctx     *lazyctx.Context
	reply   *httpstream.Response // for a reply without a stream

	mu       sync.Mutex
	stream   *stream       // nil until something precedes the result
	written  chan struct{} // closed when the stream has left the connection
	returned bool          // the request has ended
}

// postOnSession serves a text of a legacy session.
func (h *handler) postOnSession(w http.ResponseWriter, r *http.Request, caller *httpstream.Caller, text []byte, version, session string) {
	p := &sessionPost{handler: h, w: w, r: r, caller: caller, session: session, version: version, ctx: lazyctx.Detachable(r.Context())}
	cancel := func() { p.ctx.Cancel(nil) }
	defer cancel()
	p.reply = httpstream.NewResponse(w, h.options.Options("http", r, caller), cancel)
	x := mcp.Exchange{Peer: caller.Peer, Session: session, Emit: p.send}
	if version >= retryEventVersion {
		x.CloseStream = p.close
	}
	ending := p.reply.Detached(r)
	if ending == nil {
		p.serveApart(text, x)
		return
	}
	x.Detached = (*detachedPost)(p)
	p.finish(h.server.Exchange(p.ctx, text, x))
	if p.written != nil {
		<-p.written
	}
}

// serveApart serves the text in another goroutine, for a connection that this
// goroutine cannot end while the request runs: HTTP/2.
func (p *sessionPost) serveApart(text []byte, x mcp.Exchange) {
	release := httpguard.RetainBody(p.r)
	s := p.open()
	go func() {
		defer p.ctx.Cancel(nil)
		reply := p.handler.server.Exchange(p.ctx, text, x)
		release()
		s.finish(reply)
	}()
	<-p.written
}

// send sends what precedes the result.
func (p *sessionPost) send(f mcp.Frame) error { return p.open().send(f) }

// close closes the connection. The client reconnects for the rest.
func (p *sessionPost) close() { p.open().close() }

// open returns the stream of the response, and starts to write it.
func (p *sessionPost) open() *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream != nil {
		return p.stream
	}
	p.ctx.Detach()
	p.stream = p.handler.newStream(responding, p.session, p.version, func() { p.ctx.Cancel(nil) })
	p.written = make(chan struct{})
	c := p.handler.newStreamConn(p.w, p.r, p.caller, p.stream, 0)
	go func() {
		defer close(p.written)
		c.serve(nil)
		if p.runs() {
			c.answer.HangUp(p.r)
		}
	}()
	return p.stream
}

// runs reports whether the request has not ended.
func (p *sessionPost) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.returned
}

// finish ends the response with the reply of a request that has ended.
func (p *sessionPost) finish(r mcp.Reply) {
	p.mu.Lock()
	p.returned = true
	s := p.stream
	p.mu.Unlock()
	if s == nil {
		p.reply.Finish(r)
		return
	}
	httpguard.ReleaseBody(p.r.Body)
	s.finish(r)
}

// detachedPost is a sessionPost that gets its reply while the request still
// blocks the goroutine of the handler.
type detachedPost sessionPost

// Finish ends the response with the reply, and closes the connection.
func (d *detachedPost) Finish(r mcp.Reply) {
	p := (*sessionPost)(d)
	p.mu.Lock()
	s := p.stream
	p.mu.Unlock()
	if s == nil {
		p.reply.Detached(p.r).Finish(r)
		return
	}
	httpguard.ReleaseBody(p.r.Body)
	s.finish(r)
}
