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
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// ErrDraining reports that the server accepts no new clients.
var ErrDraining = errors.New("the server is shutting down")

// errCancelled reports that calls were cancelled after the grace period.
var errCancelled = errors.New("calls did not end in time and were cancelled")

// errClientStalled reports that the client stopped reading, so that the
// connection was abandoned.
var errClientStalled = errors.New("the client does not read the output")

// cancelTimeout is the time for cancelled calls to end.
const cancelTimeout = 2 * time.Second

// Options configure a connection.
type Options struct {
	// Grace is the time for running calls after the input ends.
	Grace time.Duration
	// WriteTimeout is the time for the client to read one message; 0 means no limit. It
	// needs an output with a SetWriteDeadline that works.
	WriteTimeout time.Duration
	// Budget bounds the bytes of messages that are being served, or that the client has not
	// read, for all connections that share it. Client is the client that they count for.
	// Without room, a response is replaced by an error, and a message of the client ends the
	// connection. Nil means no limit.
	Budget *httpguard.Budget
	Client workqueue.Client
	// Check is called for each message; its error ends the connection. It may be nil.
	Check func() error
}

// Serve serves one client until in ends, the client asks for shutdown, or the
// server drains; then it waits for running calls. After the grace period, it
// cancels them. When ctx ends, running calls are cancelled: to let them finish,
// call [mcp.Server.Drain] first. The error is the reason for which the server
// ended the connection, such as an error of in or out or the cause of ctx, or
// reports cancelled calls; the end of in is not an error.
//
// If Serve returns while in is open, it closes in if it is an [io.Closer],
// which ends a pending read. If the client does not read out at the end, Serve
// interrupts the write if out has a SetWriteDeadline that works, and otherwise
// abandons the connection.
func Serve(ctx context.Context, s *mcp.Server, peer mcp.Peer, in io.Reader, out io.Writer, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	w := newWriter(out, o, cancel)
	defer w.unread.ReleaseAll()
	conn := s.Connect(peer, w.send)
	if conn == nil {
		return ErrDraining
	}
	r := reader{lines: bufio.NewReaderSize(in, 64<<10), conn: conn, limit: s.MaxMessage(), options: o}
	read := make(chan error, 1)
	go r.loop(ctx, func(err error) { read <- err })
	var err error
	select {
	case err = <-read:
	case <-conn.Ending():
		err = conn.Err()
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			err = cause
		}
	}
	conn.End()
	err = errors.Join(err, drain(ctx, conn, o.Grace))

	cancel(nil)
	if !waitIdle(ctx, conn) && !w.interrupt() {
		return errors.Join(err, w.failure(), errClientStalled)
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

// reader reads the messages of a connection.
type reader struct {
	lines   *bufio.Reader
	conn    *mcp.Conn
	limit   int // bytes of a line
	options Options
}

// loop passes the lines to the connection, and calls ended at the end. The end of
// the input is not an error, nor is an error after ctx ended.
func (r *reader) loop(ctx context.Context, ended func(error)) {
	var err error // of the last line
	r.conn.Pump(ctx, func() (text []byte, served func(), more bool) {
		for err == nil {
			var hold *httpguard.Hold // unlimited
			if r.options.Budget != nil {
				hold = r.options.Budget.Hold(r.options.Client, nil)
				served = hold.ReleaseAll
			}
			var tooLong bool
			if text, tooLong, err = readLine(r.lines, r.limit, hold); err != nil && !errors.Is(err, io.EOF) {
				err = fmt.Errorf("read a message: %w", err)
			} else if r.options.Check != nil {
				err = cmp.Or(r.options.Check(), err)
			}
			switch {
			case err != nil && !errors.Is(err, io.EOF):
			case tooLong:
				r.conn.Reject(fmt.Sprintf("the line is longer than %d bytes", r.limit))
			case len(bytes.TrimSpace(text)) > 0:
				return text, served, true
			}
			hold.ReleaseAll()
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			ended(nil)
		} else {
			ended(err)
		}
		return nil, nil, false
	})
}

// readLine returns the next line, without its end, in newly allocated memory that
// the hold has room for. It skips a line over the limit without allocating. The
// last line may come with an error.
func readLine(r *bufio.Reader, limit int, hold *httpguard.Hold) (line []byte, tooLong bool, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		if err == nil {
			piece = bytes.TrimSuffix(piece[:len(piece)-1], []byte{'\r'})
		}
		if len(line)+len(piece) > limit {
			tooLong, line = true, nil
		}
		if !tooLong {
			if !hold.Take(len(piece)) {
				return nil, false, httpguard.ErrOverBudget
			}
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// writer writes frames as lines, one whole line at a time.
type writer struct {
	// fixed at creation
	cancel   context.CancelCauseFunc // ends the connection when the output fails
	deadline func(time.Time) error
	timeout  time.Duration
	unread   *httpguard.Hold

	interrupted atomic.Bool

	mu     sync.Mutex
	out    *bufio.Writer
	err    error // the first write error
	closed bool
}

var errClosed = errors.New("the output is closed")

func newWriter(out io.Writer, o Options, cancel context.CancelCauseFunc) *writer {
	w := &writer{out: bufio.NewWriterSize(out, 64<<10), timeout: o.WriteTimeout, unread: o.Budget.Hold(o.Client, nil), cancel: cancel}
	w.deadline = func(time.Time) error { return os.ErrNoDeadline }
	if out, ok := out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		w.deadline = out.SetWriteDeadline
	}
	return w
}

// send writes a frame, for which the client has the write timeout, however long it
// is. It returns [mcp.ErrQueueFull] if there is no room for the frame.
func (w *writer) send(f mcp.Frame) error {
	n := f.Len()
	if !w.unread.Take(n) {
		if n > httpguard.Buffered {
			return mcp.ErrQueueFull
		}
		w.cancel(httpguard.ErrOverBudget)
		return httpguard.ErrOverBudget
	}
	defer w.unread.Release(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return errClosed
	case w.err != nil:
		return w.err
	}
	if w.timeout > 0 {
		_ = w.deadline(time.Now().Add(w.timeout))
		if w.interrupted.Load() {
			_ = w.deadline(time.Now())
		}
	}
	_, err := f.WriteTo(w.out)
	if err == nil {
		err = w.out.WriteByte('\n')
	}
	if err == nil {
		err = w.out.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errClientStalled
	}
	if err != nil {
		w.err = fmt.Errorf("write a message: %w", err)
		w.cancel(nil)
	}
	return w.err
}

// interrupt makes pending and later writes fail. It returns false if the output
// cannot do that.
func (w *writer) interrupt() bool {
	w.interrupted.Store(true)
	return w.deadline(time.Now()) == nil
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
			line, _, err := readLine(r, jsonguard.Client().Bytes, nil)
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
