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
	workClient workqueue.Client // whom messages count for
	unread     *httpguard.Hold  // of what the client has yet to read

	closing atomic.Bool // no more time is given
	partial bool        // a message has begun; only who reads touches it

	mu  sync.Mutex // held while a message is written
	err error      // of the first write that failed
}

// farewell is how long a client has to answer a close frame.
const closeTimeout = time.Second

// serve serves the client until it goes, asks for shutdown, or the server drains.
// A panic costs no more than the connection, as one in a handler of net/http.
func (c *client) serve(ctx context.Context, s *mcp.Server, peer mcp.Peer) {
	defer c.unread.ReleaseAll()
	defer c.socket.Close()
	defer func() {
		if cause := recover(); cause != nil {
			c.options.Logger.Error("a connection has panicked", "transport", "websocket", "cause", cause, "stack", string(debug.Stack()))
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

// linger reads what still comes for a moment: closing a connection with bytes
// unread would reset it, and the client might not see why it was closed.
func (c *client) drainInput() {
	if !c.closing.Swap(true) {
		_ = c.socket.SetReadDeadline(time.Now().Add(closeTimeout))
	}
	_, _ = io.Copy(io.Discard, c.socket.NetConn())
}

// receive hands messages to the connection until there are no more, and then
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

// message is one that the client sends.
type inboundMessage struct {
	client *client
	hold   *httpguard.Hold
}

// Cut has reading the message fail.
func (m *inboundMessage) Abort() { _ = m.client.socket.SetReadDeadline(time.Unix(1, 0)) }

// The messages that end the connection.
var (
	errBinary = errors.New("messages are text")
	errUTF8   = errors.New("messages are UTF-8")
)

// read reads the next message, all of it within its time.
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

// paced reads a message until its time is up, or until it makes no progress.
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

// reject tells the client why its connection ends, unless that has been told
// or nobody is there to hear it (RFC 6455 section 7.4.1).
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
		c.options.Logger.Info("a client answers no pings: it is dropped", "transport", "websocket")
		_ = c.socket.Close()
	case errors.As(err, &closed):
		_ = c.socket.Close()
	}
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// alive gives the client time until it must be heard of again. In the middle of
// a message it must send the rest of it.
func (c *client) extendReadDeadline() {
	if !c.partial {
		c.extend(2 * c.options.Ping)
	}
}

// extend gives the client time for what it is to send next.
func (c *client) extend(by time.Duration) {
	if c.closing.Load() {
		return
	}
	_ = c.socket.SetReadDeadline(time.Now().Add(by))
	if c.closing.Load() {
		_ = c.socket.SetReadDeadline(time.Now().Add(closeTimeout))
	}
}

// keep pings the client, and says farewell to it when the connection is to be closed.
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

// sayFarewell tells a client that asked for the end from one that the server
// leaves (RFC 6455 section 7.4.1).
func (c *client) sendClose(draining <-chan struct{}) {
	select {
	case <-draining:
		c.close(websocket.CloseGoingAway, "the server is shutting down")
	default:
		c.close(websocket.CloseNormalClosure, "")
	}
}

// piece is how much of a message a client must take within the write timeout, in bytes.
const frameSize = 64 << 10

// reader is the client as the one who has yet to read what is sent.
type unreadOwner client

// Cut ends the connection: half a message cannot be followed by another.
func (r *unreadOwner) Abort() { httpguard.Abort(r.socket.NetConn()) }

// send writes one message within its time. A client that does not take it is
// dropped: half a message cannot be followed by another. A message that there is no room
// for is refused, but where a short one finds none either, the client is dropped.
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
			c.options.Logger.Info("a client does not take what is sent to it: it is dropped", "transport", "websocket", "waited", c.options.WriteTimeout)
		}
		_ = c.socket.Close()
	}
	return c.err
}

// write writes a message, a long one in pieces with a time for each. mu is held.
func (c *client) write(f mcp.Frame) error {
	c.renewWriteDeadline()
	w, err := c.socket.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	_, err = f.WriteTo(&frameWriter{w, c})
	return errors.Join(err, w.Close())
}

// renew gives the client its time for what is written next.
func (c *client) renewWriteDeadline() {
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.options.WriteTimeout))
}

// pieces writes a message in frames.
type frameWriter struct {
	io.Writer
	client *client
}

func (p *frameWriter) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, err := p.Writer.Write(b[written:min(written+frameSize, len(b))])
		written += n
		if err != nil {
			return written, err
		}
		if p.client.unread.Progress(n) {
			p.client.renewWriteDeadline()
		}
	}
	return written, nil
}

// close begins the closing handshake; the client has a moment to end it.
func (c *client) close(code int, reason string) {
	c.closing.Store(true)
	_ = c.control(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
	_ = c.socket.SetReadDeadline(time.Now().Add(closeTimeout))
}

func (c *client) control(kind int, data []byte) error {
	return c.socket.WriteControl(kind, data, time.Now().Add(c.options.WriteTimeout))
}
