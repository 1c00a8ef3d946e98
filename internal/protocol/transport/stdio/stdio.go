// Package stdio carries MCP over a pair of byte streams: one message a line,
// as the stdio transport of all revisions has it.
//
// [Serve] reads lines until the input ends, the client asks for shutdown or the
// server drains; then the calls under way come to their end. A line that cannot
// be read gets an error, and the stream goes on. Nothing but protocol is
// written to the output.
//
// The package decides nothing about a message, and does not touch the
// process's own standard streams: they are handed to it.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// ErrDraining is returned when the server takes no new clients any more.
var ErrDraining = errors.New("the server is shutting down")

// errCut is returned when calls were cancelled that outlived the input for too long.
var errCancelled = errors.New("calls did not end in time and were cut off")

// errStuck is returned when the client stopped reading and everything had to end.
var errClientStalled = errors.New("the client does not take what is written to it")

// patience is how long calls that were cancelled may take to end.
const cancelTimeout = 5 * time.Second

// Serve serves one client until in ends, the client asks for shutdown, or the
// server drains; what is under way then comes to its end before Serve returns.
// Calls that outlive this by more than grace are cancelled. When ctx ends, what is under way is cancelled: to let it finish,
// call [mcp.Server.Drain] first. The error is that of in or out, or says that
// calls were cut off; an end of in is none.
//
// When Serve returns while in is still open, in is closed if it is an
// [io.Closer], which gives up the read that is under way.
func Serve(ctx context.Context, s *mcp.Server, peer mcp.Peer, in io.Reader, out io.Writer, grace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWriter(out, cancel)
	conn := s.Connect(peer, w.send)
	if conn == nil {
		return ErrDraining
	}
	read := make(chan error, 1)
	go readLoop(ctx, in, conn, s.MaxMessage(), func(err error) { read <- err })

	var err error
	select {
	case err = <-read:
	case <-conn.Ending():
	case <-ctx.Done():
	}
	conn.End()
	err = errors.Join(err, drain(ctx, conn, grace))
	cancel()
	if !waitIdle(ctx, conn) {
		return errors.Join(err, w.failure(), errClientStalled)
	}
	conn.Close()
	w.close()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close()
	}
	return errors.Join(err, w.failure())
}

// outlast waits until nothing is under way, as long as ctx and grace allow.
func drain(ctx context.Context, conn *mcp.Conn, grace time.Duration) error {
	overdue := time.NewTimer(grace)
	defer overdue.Stop()
	select {
	case <-conn.Done():
		return nil
	case <-ctx.Done():
		return nil
	case <-overdue.C:
		return errCancelled
	}
}

// settled waits until nothing is under way; once ctx has ended, not for ever.
func waitIdle(ctx context.Context, conn *mcp.Conn) bool {
	select {
	case <-conn.Done():
		return true
	case <-ctx.Done():
	}
	select {
	case <-conn.Done():
		return true
	case <-time.After(cancelTimeout):
		return false
	}
}

// receive hands the lines of in, up to the limit in bytes, to the connection,
// and calls ended at their end. That of in is no error, and neither is one that
// comes once everything is over.
func readLoop(ctx context.Context, in io.Reader, conn *mcp.Conn, limit int, ended func(error)) {
	lines := bufio.NewReaderSize(in, 64<<10)
	var err error // that came with the last line
	conn.Pump(ctx, func() (text []byte, served func(), more bool) {
		for err == nil {
			var tooLong bool
			text, tooLong, err = readLine(lines, limit)
			switch {
			case tooLong:
				conn.Reject(fmt.Sprintf("the line is longer than %d bytes", limit))
			case len(bytes.TrimSpace(text)) > 0:
				return text, nil, true
			}
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			ended(nil)
		} else {
			ended(fmt.Errorf("read a message: %w", err))
		}
		return nil, nil, false
	})
}

// readLine returns the next line, without its end, in memory of its own. A line
// over the limit is skipped, at the cost of no memory. The last line may come
// with the error.
func readLine(r *bufio.Reader, limit int) (line []byte, tooLong bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if err == nil {
			piece = bytes.TrimSuffix(piece[:len(piece)-1], []byte{'\r'})
		}
		if len(line)+len(piece) > limit {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// writer writes frames as lines, one whole line at a time.
type writer struct {
	cancel func() // ends everything when the output fails

	mu     sync.Mutex
	out    *bufio.Writer
	err    error // of the first write that failed
	closed bool
}

var errClosed = errors.New("the output is closed")

func newWriter(out io.Writer, cancel func()) *writer {
	return &writer{out: bufio.NewWriterSize(out, 64<<10), cancel: cancel}
}

func (w *writer) send(f mcp.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return errClosed
	case w.err != nil:
		return w.err
	}
	_, err := f.WriteTo(w.out)
	if err == nil {
		err = w.out.WriteByte('\n')
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		w.err = fmt.Errorf("write a message: %w", err)
		w.cancel()
	}
	return w.err
}

// close makes what comes too late fail.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// failure returns the error that ended the output, unless a write is stuck.
func (w *writer) failure() error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	return w.err
}

const (
	// firstRequest is how long a client may take to send its first request.
	firstRequestTimeout = 10 * time.Second
	// nextRequest is how long it may take to send another one, such as the initialize
	// of a client that has tried server/discover before.
	nextRequestTimeout = 2 * time.Second
)

// Refuse answers the first requests of a client for a server that could not start: each
// of them gets an error with the message why. It returns once the client has been
// answered its initialize, when in ends, or when no request comes in time.
func Refuse(ctx context.Context, in io.Reader, out io.Writer, why string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, _, err := readLine(r, jsonguard.Client().Bytes)
			if len(bytes.TrimSpace(line)) > 0 {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	patience := time.NewTimer(firstRequestTimeout)
	defer patience.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return nil
			}
			answer, initialized := mcp.Decline(line, why)
			if len(answer) == 0 {
				continue
			}
			if _, err := out.Write(append(answer, '\n')); err != nil {
				return fmt.Errorf("write a message: %w", err)
			}
			if initialized {
				return nil
			}
			patience.Reset(nextRequestTimeout)
		case <-patience.C:
			return errors.New("the client sends no request")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
