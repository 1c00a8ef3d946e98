package websocket

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/internal/mcp"
)

// client is one connection.
type client struct {
	socket  *websocket.Conn
	options Options

	closing atomic.Bool // no more time is given

	mu  sync.Mutex // held while a message is written
	err error      // of the first write that failed
}

// farewell is how long a client has to answer a close frame.
const farewell = time.Second

// serve serves the client until it goes, asks for shutdown, or the server drains.
func (c *client) serve(ctx context.Context, s *mcp.Server, peer mcp.Peer) {
	defer c.socket.Close()
	conn := s.Connect(peer, c.send)
	if conn == nil {
		c.close(websocket.CloseGoingAway, "the server is shutting down")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { c.keep(ctx, conn, s.Draining()) })
	c.receive(ctx, conn)
	cancel()
	conn.Close()
	keeper.Wait()
}

// receive hands messages to the connection until there are no more.
func (c *client) receive(ctx context.Context, conn *mcp.Conn) {
	c.alive()
	c.socket.SetPongHandler(func(string) error {
		c.alive()
		return nil
	})
	for {
		kind, text, err := c.socket.ReadMessage()
		if err != nil {
			return
		}
		c.alive()
		if kind != websocket.TextMessage {
			c.close(websocket.CloseUnsupportedData, "messages are text")
			return
		}
		conn.Receive(ctx, text)
	}
}

// alive gives the client time until it must be heard of again.
func (c *client) alive() {
	if !c.closing.Load() {
		_ = c.socket.SetReadDeadline(time.Now().Add(2 * c.options.Ping))
	}
}

// keep pings the client, and says farewell to it when the connection is to be closed.
func (c *client) keep(ctx context.Context, conn *mcp.Conn, draining <-chan struct{}) {
	pings := time.NewTicker(c.options.Ping)
	defer pings.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-conn.Done():
			c.sayFarewell(draining)
			return
		case <-pings.C:
			if c.control(websocket.PingMessage, nil) != nil {
				_ = c.socket.Close()
				return
			}
		}
	}
}

// sayFarewell tells a client that asked for the end from one that the server
// leaves (RFC 6455 section 7.4.1).
func (c *client) sayFarewell(draining <-chan struct{}) {
	select {
	case <-draining:
		c.close(websocket.CloseGoingAway, "the server is shutting down")
	default:
		c.close(websocket.CloseNormalClosure, "")
	}
}

// send writes one message within its time. A client that does not take it is
// dropped: half a message cannot be followed by another.
func (c *client) send(f mcp.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	_ = c.socket.SetWriteDeadline(time.Now().Add(c.options.WriteTimeout))
	w, err := c.socket.NextWriter(websocket.TextMessage)
	if err == nil {
		_, err = f.WriteTo(w)
		err = errors.Join(err, w.Close())
	}
	if c.err = err; err != nil {
		_ = c.socket.Close()
	}
	return err
}

// close begins the closing handshake; the client has a moment to end it.
func (c *client) close(code int, reason string) {
	c.closing.Store(true)
	_ = c.control(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason))
	_ = c.socket.SetReadDeadline(time.Now().Add(farewell))
}

func (c *client) control(kind int, data []byte) error {
	return c.socket.WriteControl(kind, data, time.Now().Add(c.options.WriteTimeout))
}
