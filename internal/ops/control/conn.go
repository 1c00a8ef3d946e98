package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/auth/peercred"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// Conn is a connection after the response that started another protocol.
type Conn struct {
	net.Conn
	// UID is the user at the other end; -1 if unknown.
	UID int
	in  io.Reader

	// lines reads lines for Receive; nil until the first one.
	lines *bufio.Reader
	// sending serializes Send. failed is the first error of Send.
	sending sync.Mutex
	failed  error
	// server reports that this is the end of the server, which bounds the lines of the client.
	server bool
}

// newConn returns a connection of which a reader has read the start.
func newConn(conn net.Conn, read *bufio.Reader) *Conn {
	start, _ := read.Peek(read.Buffered()) // all of it is buffered
	c := &Conn{Conn: conn, UID: -1, in: io.MultiReader(bytes.NewReader(start), conn)}
	if peer, known := peercred.Of(conn); known {
		c.UID = int(peer.UID)
	}
	return c
}

// Read reads from the connection.
func (c *Conn) Read(p []byte) (int, error) { return c.in.Read(p) }

// CloseWrite ends the output; the other end reads what was written, and then the end.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// ErrLine is the error of [Conn.Receive] for a line that is too long, or is not the expected JSON.
var ErrLine = errors.New("the line is invalid")

// Send sends a value as a line of JSON. It returns the error of an earlier Send, since the client
// may have received a part of that line. A peer that does not read for some seconds is an error.
// Any number of goroutines may use it.
func (c *Conn) Send(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.failed != nil {
		return c.failed
	}
	if len(line) >= maxAnswer {
		return fmt.Errorf("the line is longer than %d bytes", maxAnswer)
	}
	if c.failed = c.SetWriteDeadline(time.Now().Add(ioTimeout)); c.failed == nil {
		_, c.failed = c.Write(append(line, '\n'))
	}
	return c.failed
}

// Receive waits for a line of JSON and decodes it into a pointer. The error is [io.EOF] at the end
// of the input, and an [ErrLine] for a line that is too long, is no JSON, or has unknown members.
// Only one goroutine may use it, and no other method may read.
func (c *Conn) Receive(into any) error {
	limits := answerLimits
	if c.server {
		limits = paramsLimits
	}
	if c.lines == nil {
		c.lines = bufio.NewReader(c)
	}
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		if len(line)+len(part) > limits.Bytes {
			return fmt.Errorf("%w: it is longer than %d bytes", ErrLine, limits.Bytes)
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	if err := jsonguard.Check(line, limits); err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	if err := decodeStrict(line, into); err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	return nil
}

// Piped is the end of a client of a stream in the process of the server.
type Piped struct {
	*Conn
	ended chan struct{}
}

// Pipe serves the stream to a client in this process, until ctx is done at the latest.
func (s Stream) Pipe(ctx context.Context) *Piped {
	near, far := net.Pipe()
	p := &Piped{&Conn{Conn: near, UID: -1, in: near}, make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer far.Close()
		s.Serve(ctx, &Conn{Conn: far, UID: -1, in: far, server: true})
	}()
	return p
}

// Close ends the stream and waits for the server to leave it.
func (p *Piped) Close() error {
	err := p.Conn.Close()
	<-p.ended
	return err
}
