package websocket

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// client is one connection.
type client struct {
	socket     *websocket.Conn
	options    Options
	access     *authn.Access
	workClient workqueue.Client // the client that messages count for
	unread     *httpguard.Hold  // for messages that the client has not read

	closing atomic.Bool // the read deadline is no longer extended
	partial bool        // a message has started; only the reading goroutine accesses it

	mu  sync.Mutex // held while a message is written
	err error      // the first write error
}

// closeTimeout is the time for a client to answer a close frame.
const closeTimeout = time.Second

// serve serves the client until it disconnects, asks for shutdown, or the
// server drains. A panic ends only the connection, as in a handler of net/http.
func (c *client) serve(ctx context.Context, s *mcp.Server, peer mcp.Peer) {
	defer c.unread.ReleaseAll()
	defer c.socket.Close()
	defer func() {
		if cause := recover(); cause != nil {
			c.options.Logger.Error("panic in a connection", "transport", "websocket", "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	conn := s.Connect(peer, c.send)
	if conn == nil {
		c.close(websocket.CloseGoingAway, "the server is shutting down")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { c.pingLoop(ctx, conn, s.Draining()) })
	c.receive(ctx, conn, cancel)
	conn.Close()
	keeper.Wait()
	c.drainInput()
}

// drainInput reads the input for a moment: closing a connection with unread
// bytes would reset it, and the client might not see the reason.
func (c *client) drainInput() {
	if !c.closing.Swap(true) {
		_ = c.socket.SetReadDeadline(time.Now().Add(closeTimeout))
	}
	_, _ = io.Copy(io.Discard, c.socket.NetConn())
}

// receive passes messages to the connection until the input ends, and then
// calls ended.
func (c *client) receive(ctx context.Context, conn *mcp.Conn, ended func()) {
	c.extendReadDeadline()
	c.socket.SetPongHandler(func(string) error {
		c.extendReadDeadline()
		return nil
	})
	conn.Pump(ctx, func() (text []byte, served func(), more bool) {
		m := &inboundMessage{client: c}
		m.hold = c.options.Messages.Hold(c.workClient, m)
		text, err := c.read(m.hold)
		if err == nil && !m.hold.Pin() {
			err = httpguard.ErrOverBudget
		}
		if err != nil {
			m.hold.ReleaseAll()
			c.reject(err)
			ended()
			return nil, nil, false
		}
		return text, m.hold.ReleaseAll, true
	})
}

// inboundMessage is a message of the client.
type inboundMessage struct {
	client *client
	hold   *httpguard.Hold
}

// Abort makes reading the message fail.
func (m *inboundMessage) Abort() { _ = m.client.socket.SetReadDeadline(time.Unix(1, 0)) }

// The errors that end the connection.
var (
	errBinary = errors.New("messages must be text")
	errUTF8   = errors.New("messages must be UTF-8")
)

// read reads the next message within its time.
func (c *client) read(hold *httpguard.Hold) ([]byte, error) {
	kind, r, err := c.socket.NextReader()
	if err != nil {
		return nil, err
	}
	if kind != websocket.TextMessage {
		return nil, errBinary
	}
	c.partial = true
	text, err := io.ReadAll(hold.Reader(&pacedReader{r, c, hold, time.Now().Add(c.options.ReadTimeout)}))
	if err != nil {
		if hold.Lost() {
			return nil, httpguard.ErrOverBudget
		}
		return nil, err
	}
	c.partial = false
	c.extendReadDeadline()
	if !utf8.Valid(text) {
		return nil, errUTF8
	}
	if err := c.access.Check(); err != nil {
		return nil, err
	}
	return text, nil
}

// pacedReader reads a message until its time ends or it makes no progress.
type pacedReader struct {
	io.Reader
	client *client
	hold   *httpguard.Hold
	until  time.Time
}

func (p *pacedReader) Read(b []byte) (int, error) {
	next := p.hold.Deadline()
	if p.until.Before(next) {
		next = p.until
	}
	p.client.extend(time.Until(next))
	if p.hold.Lost() {
		return 0, httpguard.ErrOverBudget
	}
	return p.Reader.Read(b)
}

// reject sends the close frame with the reason, unless one was sent or the
// client is gone (RFC 6455 section 7.4.1).
func (c *client) reject(err error) {
	var closed *websocket.CloseError
	switch {
	case c.closing.Load():
	case errors.Is(err, errBinary):
		c.close(websocket.CloseUnsupportedData, err.Error())
	case errors.Is(err, errUTF8):
		c.close(websocket.CloseInvalidFramePayloadData, err.Error())
	case errors.Is(err, authn.ErrAccessRevoked):
		c.close(websocket.ClosePolicyViolation, err.Error())
	case errors.Is(err, httpguard.ErrOverBudget):
		c.close(websocket.CloseTryAgainLater, "there is no room for the message; try again in a second")
	case isTimeout(err) && c.partial:
		c.close(websocket.ClosePolicyViolation, "the message took too long")
	case isTimeout(err):
		c.options.Logger.Info("disconnect client without pong", "transport", "websocket")
		_ = c.socket.Close()
	case errors.As(err, &closed):
		_ = c.socket.Close()
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

// extendReadDeadline extends the deadline for the next message or pong. During
// a message, the deadline of the message applies.
func (c *client) extendReadDeadline() {
	if !c.partial {
		c.extend(2 * c.options.Ping)
	}
}

// extend gives the client time for its next data.
func (c *client) extend(by time.Duration) {
	if c.closing.Load() {
		return
	}
	_ = c.socket.SetReadDeadline(time.Now().Add(by))
	if c.closing.Load() {
		_ = c.socket.SetReadDeadline(time.Now().Add(closeTimeout))
	}
}

// pingLoop pings the client, and sends the close frame when the connection must
// end.
func (c *client) pingLoop(ctx context.Context, conn *mcp.Conn, draining <-chan struct{}) {
	pings := time.NewTicker(c.options.Ping)
	defer pings.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-conn.Done():
			c.sendClose(draining)
			return
		case <-pings.C:
			if err := c.access.Check(); err != nil {
				c.close(websocket.ClosePolicyViolation, err.Error())
				return
			}
			if c.control(websocket.PingMessage, nil) != nil {
				_ = c.socket.Close()
				return
			}
		}
	}
}

// sendClose sends the close frame for a client's shutdown or for a draining
// server (RFC 6455 section 7.4.1).
func (c *client) sendClose(draining <-chan struct{}) {
	select {
	case <-draining:
		c.close(websocket.CloseGoingAway, "the server is shutting down")
	default:
		c.close(websocket.CloseNormalClosure, "")
	}
}

// frameSize is the part of a message that a client must read within the write
// timeout, in bytes.
const frameSize = 64 << 10

// unreadOwner is the client as the owner of its unread messages.
type unreadOwner client

// Abort ends the connection: no message may follow half a message.
func (o *unreadOwner) Abort() { httpguard.Abort(o.socket.NetConn()) }

// send writes one message within its time. If the client does not read it, send
// ends the connection, because no message may follow half a message. A message
// without room is rejected; if even a short message has no room, send ends the
// connection.
func (c *client) send(f mcp.Frame) error {
	n := f.Len()
	if !c.unread.Take(n) {
		if n > httpguard.Buffered && !c.unread.Lost() {
			return mcp.ErrQueueFull
		}
		httpguard.Abort(c.socket.NetConn())
		return net.ErrClosed
	}
	defer c.unread.Release(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.err = c.access.Check(); c.err != nil {
		c.close(websocket.ClosePolicyViolation, c.err.Error())
		return c.err
	}
	c.err = c.write(f)
	if c.err != nil {
		if isTimeout(c.err) {
			c.options.Logger.Info("disconnect slow client", "transport", "websocket", "waited", c.options.WriteTimeout)
		}
		_ = c.socket.Close()
	}
	return c.err
}

// write writes a message, a long one in frames with a timeout for each. The
// caller holds mu.
func (c *client) write(f mcp.Frame) error {
	c.renewWriteDeadline()
	w, err := c.socket.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	_, err = f.WriteTo(&frameWriter{w, c})
	return errors.Join(err, w.Close())
}

// renewWriteDeadline restarts the client's time for the next write.
func (c *client) renewWriteDeadline() {
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.options.WriteTimeout))
}

// frameWriter writes a message in frames.
type frameWriter struct {
	io.Writer
	client *client
}

func (w *frameWriter) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := w.Writer.Write(b[written:min(written+frameSize, len(b))])
		written += n
		if err != nil {
			return written, err
		}
		if w.client.unread.Progress(n) {
			w.client.renewWriteDeadline()
		}
	}
	return written, nil
}

// close starts the closing handshake; the client has closeTimeout to finish it.
func (c *client) close(code int, reason string) {
	c.closing.Store(true)
	_ = c.control(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
	_ = c.socket.SetReadDeadline(time.Now().Add(closeTimeout))
}

func (c *client) control(kind int, data []byte) error {
	return c.socket.WriteControl(kind, data, time.Now().Add(c.options.WriteTimeout))
}
