package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// patience is the time that a server has for a response. A server that needs longer
// ends the run.
const patience = 30 * time.Second

// connection is a connection of the load generator to a server, used by one caller at a
// time.
type connection interface {
	// send sends a message and returns its response. The response is valid until the
	// next call.
	send(m *message) (response []byte, err error)
	Close() error
}

// httpConnection is a persistent connection to a Streamable HTTP endpoint. It does as
// little work as possible, because load generator and servers share the processors.
type httpConnection struct {
	conn    net.Conn
	in      *bufio.Reader
	fixed   string // header lines of all requests
	session string
	modern  bool

	request  []byte
	response []byte
}

// dialHTTP connects to an endpoint. For sessions it performs the handshake.
func dialHTTP(address, path string, m mode) (*httpConnection, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &httpConnection{
		conn: conn, in: bufio.NewReaderSize(conn, 64<<10), modern: m.revision == modern,
		fixed: "POST " + path + " HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: peers\r\nContent-Type: application/json\r\n" +
			"Accept: application/json, text/event-stream\r\n",
	}
	if m.sessions {
		if err := c.open(); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	if m.revision != "" && m.transport == "http" {
		c.fixed += "Mcp-Protocol-Version: " + m.revision + "\r\n"
	}
	return c, nil
}

// open opens a session.
func (c *httpConnection) open() error {
	h, err := c.post("", []byte(initialize))
	if err != nil {
		return err
	}
	if err := checkInitialize(c.response); err != nil {
		return err
	}
	if h.session != "" {
		c.fixed += "Mcp-Session-Id: " + h.session + "\r\n"
		c.session = h.session
	}
	h, err = c.post("Mcp-Protocol-Version: "+legacy+"\r\n", []byte(initialized))
	if err == nil && h.status != 202 {
		err = fmt.Errorf("initialized: status %d: %.300s", h.status, c.response)
	}
	return err
}

func (c *httpConnection) send(m *message) ([]byte, error) {
	extra := ""
	if c.modern {
		if extra = "Mcp-Method: tools/list\r\n"; m.tool != "" {
			extra = "Mcp-Method: tools/call\r\nMcp-Name: " + m.tool + "\r\n"
		}
	}
	h, err := c.post(extra, m.body)
	if err == nil && h.status != 200 {
		err = fmt.Errorf("status %d: %.300s", h.status, c.response)
	}
	return c.response, err
}

// post sends a request and reads the response. Of an event stream the response is the
// last message.
func (c *httpConnection) post(extra string, body []byte) (head, error) {
	r := append(c.request[:0], c.fixed...)
	r = append(r, extra...)
	r = append(r, "Content-Length: "...)
	r = strconv.AppendInt(r, int64(len(body)), 10)
	r = append(r, "\r\n\r\n"...)
	r = append(r, body...)
	c.request = r
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return head{}, err
	}
	if _, err := c.conn.Write(r); err != nil {
		return head{}, err
	}
	h, err := readHead(c.in)
	if err != nil {
		return head{}, err
	}
	c.response, err = readBody(c.in, h, c.response[:0])
	if err == nil && h.events {
		c.response, err = lastEvent(c.response)
	}
	return h, err
}

func (c *httpConnection) Close() error { return c.conn.Close() }

// head is the part of a response head that matters.
type head struct {
	status  int
	length  int // -1 if chunked
	events  bool
	session string
}

func readHead(r *bufio.Reader) (head, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return head{}, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return head{}, fmt.Errorf("not a response: %q", line)
	}
	h := head{}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return head{}, err
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return head{}, err
		}
		name, value, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		if !ok {
			return h, nil
		}
		value = bytes.TrimSpace(value)
		switch {
		case equalFold(name, "Content-Length"):
			if h.length, err = strconv.Atoi(string(value)); err != nil {
				return head{}, err
			}
		case equalFold(name, "Transfer-Encoding"):
			h.length = -1
		case equalFold(name, "Content-Type"):
			h.events = bytes.HasPrefix(value, []byte("text/event-stream"))
		case equalFold(name, "Mcp-Session-Id"):
			h.session = string(value)
		}
	}
}

func equalFold(name []byte, want string) bool {
	return len(name) == len(want) && strings.EqualFold(string(name), want)
}

// readBody appends the body of a response to a buffer.
func readBody(r *bufio.Reader, h head, to []byte) ([]byte, error) {
	if h.length >= 0 {
		return readBytes(r, h.length, to)
	}
	for {
		var err error
		var size int
		if to, size, err = readChunk(r, to); err != nil || size == 0 {
			return to, err
		}
	}
}

// readChunk appends the next chunk of a body to a buffer. The last chunk has size 0.
func readChunk(r *bufio.Reader, to []byte) (_ []byte, size int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return to, 0, err
	}
	n, err := strconv.ParseUint(string(bytes.TrimRight(line, "\r\n")), 16, 31)
	if err != nil {
		return to, 0, err
	}
	if to, err = readBytes(r, int(n), to); err == nil {
		_, err = r.Discard(len("\r\n"))
	}
	return to, int(n), err
}

func readBytes(r *bufio.Reader, n int, to []byte) ([]byte, error) {
	at := len(to)
	if cap(to)-at < n {
		to = append(make([]byte, 0, 2*(at+n)), to...)
	}
	to = to[:at+n]
	_, err := io.ReadFull(r, to[at:])
	return to, err
}

// lastEvent returns the data of the last event in a stream.
func lastEvent(stream []byte) ([]byte, error) {
	at := bytes.LastIndex(stream, []byte("data:"))
	if at < 0 {
		return nil, fmt.Errorf("event stream has no message: %.300s", stream)
	}
	data, _, _ := bytes.Cut(stream[at+len("data:"):], []byte("\n"))
	return bytes.TrimSpace(data), nil
}
