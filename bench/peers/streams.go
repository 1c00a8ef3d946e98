package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
)

// eventConnection is a connection of the HTTP+SSE transport: a stream of events, and a
// connection for requests.
type eventConnection struct {
	stream  net.Conn
	in      *bufio.Reader
	pending []byte // received bytes of the stream
	handled int    // bytes of pending that are handled
	posts   *httpConnection
}

// dialEvents opens a stream and performs the handshake.
func dialEvents(address string, m mode) (_ *eventConnection, err error) {
	stream, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &eventConnection{stream: stream, in: bufio.NewReaderSize(stream, 64<<10)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := stream.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(stream, "GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", address); err != nil {
		return nil, err
	}
	h, err := readHead(c.in)
	if err != nil {
		return nil, err
	}
	if h.status != 200 || h.length != -1 {
		return nil, fmt.Errorf("event stream: status %d", h.status)
	}
	endpoint, err := c.event()
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(string(endpoint))
	if err != nil {
		return nil, err
	}
	m.sessions = false // the handshake is on the stream
	if c.posts, err = dialHTTP(address, target.RequestURI(), m); err != nil {
		return nil, err
	}
	response, err := c.exchange([]byte(initialize), true)
	if err != nil {
		return nil, err
	}
	if err := checkInitialize(response); err != nil {
		return nil, err
	}
	_, err = c.exchange([]byte(initialized), false)
	return c, err
}

func (c *eventConnection) send(m *message) ([]byte, error) { return c.exchange(m.body, true) }

// exchange posts a message and, if it is a request, waits for the event that answers
// it.
func (c *eventConnection) exchange(body []byte, request bool) ([]byte, error) {
	h, err := c.posts.post("", body)
	if err != nil {
		return nil, err
	}
	if h.status/100 != 2 {
		return nil, fmt.Errorf("status %d: %.300s", h.status, c.posts.response)
	}
	if !request {
		return nil, nil
	}
	if err := c.stream.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	for {
		data, err := c.event()
		if err != nil {
			return nil, err
		}
		if _, ok := idOf(data); ok { // not a notification
			return data, nil
		}
	}
}

// event returns the data of the next event. Comments have none.
func (c *eventConnection) event() ([]byte, error) {
	if c.handled == len(c.pending) {
		c.pending, c.handled = c.pending[:0], 0
	}
	for {
		rest := c.pending[c.handled:]
		end, width := bytes.Index(rest, []byte("\n\n")), 2
		if crlf := bytes.Index(rest, []byte("\r\n\r\n")); crlf >= 0 && (end < 0 || crlf < end) {
			end, width = crlf, 4
		}
		if end >= 0 {
			c.handled += end + width
			if at := bytes.Index(rest[:end], []byte("data:")); at >= 0 {
				data, _, _ := bytes.Cut(rest[at+len("data:"):end], []byte("\n"))
				return bytes.TrimSpace(data), nil
			}
			continue
		}
		var size int
		var err error
		if c.pending, size, err = readChunk(c.in, c.pending); err != nil {
			return nil, err
		}
		if size == 0 {
			return nil, io.ErrUnexpectedEOF
		}
	}
}

func (c *eventConnection) Close() error {
	err := c.stream.Close()
	if c.posts != nil {
		err = errors.Join(err, c.posts.Close())
	}
	return err
}

// socketConnection is a WebSocket.
type socketConnection struct {
	socket   *websocket.Conn
	response bytes.Buffer
}

func dialSocket(address string) (*socketConnection, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}, HandshakeTimeout: patience}
	socket, response, err := dialer.Dial("ws://"+address+"/ws", nil)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	return &socketConnection{socket: socket}, nil
}

func (c *socketConnection) send(m *message) ([]byte, error) {
	if err := c.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if err := c.socket.WriteMessage(websocket.TextMessage, m.body); err != nil {
		return nil, err
	}
	for {
		_, r, err := c.socket.NextReader()
		if err != nil {
			return nil, err
		}
		c.response.Reset()
		if _, err := c.response.ReadFrom(r); err != nil {
			return nil, err
		}
		if _, ok := idOf(c.response.Bytes()); ok {
			return c.response.Bytes(), nil
		}
	}
}

func (c *socketConnection) Close() error { return c.socket.Close() }

// pipes are the standard input and output of a server.
type pipes struct {
	toServer   io.WriteCloser
	fromServer io.Reader
}

// lineConnection is a connection over the pipes of a server, for one caller.
type lineConnection struct {
	out  io.Writer
	in   *bufio.Reader
	line []byte
}

// dialLines performs the handshake of revisions that have one.
func dialLines(p pipes, m mode) (*lineConnection, error) {
	c := &lineConnection{out: p.toServer, in: bufio.NewReaderSize(p.fromServer, 256<<10)}
	if m.revision == modern {
		return c, nil
	}
	response, err := c.exchange([]byte(initialize))
	if err != nil {
		return nil, err
	}
	if err := checkInitialize(response); err != nil {
		return nil, err
	}
	_, err = io.WriteString(c.out, initialized+"\n")
	return c, err
}

func (c *lineConnection) send(m *message) ([]byte, error) { return c.exchange(m.body) }

func (c *lineConnection) exchange(body []byte) ([]byte, error) {
	c.line = append(append(c.line[:0], body...), '\n')
	if _, err := c.out.Write(c.line); err != nil {
		return nil, err
	}
	for {
		line, err := c.read()
		if err != nil {
			return nil, err
		}
		if _, ok := idOf(line); ok {
			return line, nil
		}
	}
}

// read reads a line. It is valid until the next read.
func (c *lineConnection) read() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
		var rest []byte
		rest, err = c.in.ReadBytes('\n')
		line = append(line, rest...)
	}
	return line, err
}

// Close does nothing: the server owns the pipes.
func (c *lineConnection) Close() error { return nil }

// sharedLines lets several callers use the pipes of one server at the same time, as a
// client with several calls in flight.
type sharedLines struct {
	lines   *lineConnection
	writing chan struct{}
	waiting []chan answer // by caller
}

type answer struct {
	response []byte
	err      error
}

// share returns a connection for each caller. A goroutine reads the responses until the
// stream ends.
func share(lines *lineConnection, callers int) []connection {
	s := &sharedLines{lines: lines, writing: make(chan struct{}, 1)}
	connections := make([]connection, callers)
	for i := range connections {
		s.waiting = append(s.waiting, make(chan answer, 1))
		connections[i] = &sharedConnection{shared: s, caller: i}
	}
	go s.dispatch()
	return connections
}

func (s *sharedLines) dispatch() {
	for {
		line, err := s.lines.read()
		if err != nil {
			for _, w := range s.waiting {
				select {
				case w <- answer{err: err}:
				default:
				}
			}
			return
		}
		id, ok := idOf(line)
		caller := (id - firstID(0)) / callerIDs
		if !ok || caller < 0 || caller >= len(s.waiting) {
			continue // a notification
		}
		select {
		case s.waiting[caller] <- answer{response: bytes.Clone(line)}:
		default: // the caller has not asked: its next check finds the wrong ID
		}
	}
}

// sharedConnection is the share of one caller.
type sharedConnection struct {
	shared *sharedLines
	caller int
	line   []byte
}

func (c *sharedConnection) send(m *message) ([]byte, error) {
	c.line = append(append(c.line[:0], m.body...), '\n')
	c.shared.writing <- struct{}{}
	_, err := c.shared.lines.out.Write(c.line)
	<-c.shared.writing
	if err != nil {
		return nil, err
	}
	select {
	case a := <-c.shared.waiting[c.caller]:
		return a.response, a.err
	case <-time.After(patience):
		return nil, fmt.Errorf("no response within %s", patience)
	}
}

// Close does nothing: the server owns the pipes.
func (c *sharedConnection) Close() error { return nil }
