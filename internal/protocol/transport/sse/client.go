package sse

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpstream"
)

// sessionParameter is what a client repeats in the URL of each message.
const sessionParameter = "sessionId"

// client is one that holds a stream open.
type client struct {
	// fixed at creation
	conn  *mcp.Conn
	texts chan delivery
	gone  chan struct{} // closed when no text is taken any more
}

// delivery is a text that a request has brought.
type delivery struct {
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
	answer := httpstream.New(w, h.bounds(r, caller), cancel)
	waiting := newOutbox(h.options.Answers.Hold(caller.Client, answer), func() {
		answer.Cut()
		cancel()
	})
	defer waiting.hold.Give()
	conn := h.server.Connect(caller.Peer, waiting.put)
	if conn == nil {
		answer.Finish(mcp.Refuse(mcp.Unavailable, "the server is shutting down"))
		return
	}
	c := &client{conn: conn, texts: make(chan delivery), gone: make(chan struct{})}
	id := rand.Text()
	h.clients.Store(id, c)
	var writer sync.WaitGroup
	if answer.Endpoint(h.endpoint(r, id)) == nil {
		writer.Go(func() { h.write(answer, waiting) })
		c.receive(ctx)
	}
	h.clients.Delete(id)
	close(c.gone)
	if ctx.Err() != nil {
		waiting.abandon()
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
func (h *handler) write(answer *httpstream.Answer, waiting *outbox) {
	for {
		f, ok := waiting.next()
		if !ok {
			return
		}
		if err := answer.Send(f); err != nil {
			waiting.abandon()
			return
		}
	}
}

// receive takes in texts, one after the other, until there are no more.
func (c *client) receive(ctx context.Context) {
	for {
		select {
		case d := <-c.texts:
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
func (c *client) deliver(ctx context.Context, d delivery) (mcp.Reply, bool) {
	reply := make(chan mcp.Reply, 1)
	d.reply = reply
	select {
	case c.texts <- d:
		return <-reply, true
	case <-c.gone:
	case <-ctx.Done():
	}
	return mcp.Reply{}, false
}
