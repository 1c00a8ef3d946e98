// Package stdio carries MCP over a pair of byte streams: one message per line,
// as the stdio transport of all revisions defines.
//
// [Serve] reads lines until the input ends, the client asks for shutdown or the
// server drains; then it waits for running calls. A line that cannot be read
// gets an error, and the stream continues. The output carries only protocol
// messages.
//
// The package makes no decision about a message, and does not use the standard
// streams of the process: the caller passes streams.
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

// ErrDraining reports that the server accepts no new clients.
var ErrDraining = errors.New("the server is shutting down")

// errCancelled reports that calls were cancelled after the grace period.
var errCancelled = errors.New("calls did not end in time and were cancelled")

// errClientStalled reports that the client stopped reading, so that the
// connection was abandoned.
var errClientStalled = errors.New("the client does not read the output")

// cancelTimeout is the time for cancelled calls to end.
const cancelTimeout = 5 * time.Second

// Serve serves one client until in ends, the client asks for shutdown, or the
// server drains; then it waits for running calls. After grace, it cancels them.
// When ctx ends, running calls are cancelled: to let them finish, call
// [mcp.Server.Drain] first. The error is an error of in or out, or reports
// cancelled calls; the end of in is not an error.
//
// If Serve returns while in is open, it closes in if it is an [io.Closer],
// which ends a pending read. If the client does not read out at the end, Serve
// interrupts the write if out has a SetWriteDeadline that works, and otherwise
// abandons the connection.
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
		if !interrupt(out) {
			return errors.Join(err, w.failure(), errClientStalled)
		}
		err = errors.Join(err, errClientStalled)
	}
	conn.Close()
	w.close()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close()
	}
	return errors.Join(err, w.failure())
}

// drain waits until no call is running, for at most grace, or until ctx ends.
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

// waitIdle waits until no call is running. After ctx ends, it waits for at most
// cancelTimeout.
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

// interrupt makes a pending write fail. It returns false if out cannot do that.
func interrupt(out io.Writer) bool {
	o, ok := out.(interface{ SetWriteDeadline(time.Time) error })
	return ok && o.SetWriteDeadline(time.Now()) == nil
}

// readLoop passes the lines of in, up to limit bytes each, to the connection,
// and calls ended at the end. The end of in is not an error, nor is an error
// after ctx ended.
func readLoop(ctx context.Context, in io.Reader, conn *mcp.Conn, limit int, ended func(error)) {
	lines := bufio.NewReaderSize(in, 64<<10)
	var err error // of the last line
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

// readLine returns the next line, without its end, in newly allocated memory.
// It skips a line over the limit without allocating. The last line may come
// with an error.
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
	cancel func() // ends the connection when the output fails

	mu     sync.Mutex
	out    *bufio.Writer
	err    error // the first write error
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

// close makes later writes fail.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// failure returns the error that ended the output, unless a write is blocked.
func (w *writer) failure() error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	return w.err
}

const (
	// firstRequestTimeout is the time for a client to send its first request.
	firstRequestTimeout = 10 * time.Second
	// nextRequestTimeout is the time for a further request, such as initialize
	// after server/discover.
	nextRequestTimeout = 2 * time.Second
)

// Refuse answers the first requests of a client for a server that could not
// start: each gets an error with the message why. It returns after it answered
// initialize, when in ends, or when no request arrives in time.
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
	timeout := time.NewTimer(firstRequestTimeout)
	defer timeout.Stop()
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
			timeout.Reset(nextRequestTimeout)
		case <-timeout.C:
			return errors.New("no request from the client")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
