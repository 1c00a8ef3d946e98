package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/internal/auth/peercred"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

const (
	// ioTimeout is the timeout to receive a request and to send a response.
	ioTimeout = 5 * time.Second
	// maxConnections is the maximum number of connections that carry requests; further
	// ones are closed.
	maxConnections = 16
	// maxStarted is the maximum number of such connections of programs that the server has
	// started. They get none of maxConnections, so they cannot lock out the operator.
	maxStarted = 4
	// maxStreams is the maximum number of connections that a [Stream] serves.
	maxStreams = 64
	// acceptBackoff is the delay after a failed accept.
	acceptBackoff = 100 * time.Millisecond
)

// Handler handles a request. Its result is encoded as JSON. An error is sent to the
// client and must contain only what the user of the server may know. The context ends when
// the client closes its end of the connection before the response, or when the stream that the request
// starts has ended.
type Handler func(ctx context.Context, r Request) (result any, err error)

// Stream is the result of a request after which its connection carries another
// protocol.
type Stream struct {
	// Result is the response to the request.
	Result any
	// Serve serves the connection after the response, until ctx is done at the latest. The
	// connection is closed when it returns.
	Serve func(ctx context.Context, conn *Conn)
}

// Server is the server end of a control socket. It must be closed with [Server.Close].
type Server struct {
	// fixed at creation
	listener net.Listener
	dir      *socketDir
	room     chan struct{}
	started  chan struct{} // the room of programs that the server has started
	streams  chan struct{}
}

// Listen creates the socket at path, and its directory. It replaces a stale socket of a
// dead process. If a process answers on the socket, the error names it and is
// [syscall.EADDRINUSE].
func Listen(path string) (*Server, error) {
	s, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen for requests on %s: %w", path, err)
	}
	return s, nil
}

func listen(path string) (*Server, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(folder)
	if err == nil {
		err = checkOwner(folder, info)
	}
	if err != nil {
		return nil, err
	}
	p, err := openSocketDir(path)
	if err != nil {
		return nil, err
	}
	l, err := p.listen()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Server{listener: l, dir: p, room: make(chan struct{}, maxConnections), started: make(chan struct{}, maxStarted), streams: make(chan struct{}, maxStreams)}, nil
}

// listen creates the socket while no other process creates one in this directory.
func (d *socketDir) listen() (net.Listener, error) {
	unlock, err := d.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := httpguard.ListenSocket(d.short, httpguard.SocketModeOwner)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s has this socket; stop it, or choose another socket with --control: %w", ownerProcess(d.short), syscall.EADDRINUSE)
	}
	return l, err
}

// ownerProcess describes the process that answers on a socket.
func ownerProcess(short string) string {
	conn, err := net.DialTimeout("unix", short, ioTimeout)
	if err != nil {
		return "another process"
	}
	defer conn.Close()
	if peer, ok := peercred.Of(conn); ok && peer.PID > 0 {
		return fmt.Sprintf("process %d", peer.PID)
	}
	return "another process"
}

// Serve answers requests until ctx is done, and returns after the last response.
func (s *Server) Serve(ctx context.Context, answer Handler) {
	var busy sync.WaitGroup
	defer busy.Wait()
	defer context.AfterFunc(ctx, func() { _ = s.listener.Close() })()
	for ctx.Err() == nil {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // the process is out of descriptors
			select {
			case <-ctx.Done():
			case <-time.After(acceptBackoff):
			}
		default:
			room := s.admit(conn)
			if room == nil {
				_ = conn.Close()
				continue
			}
			busy.Go(func() {
				defer conn.Close()
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				if stream := s.serve(ctx, cancel, conn, room, answer); stream != nil {
					defer func() { <-s.streams }()
					stream()
				}
			})
		}
	}
}

// admit counts a connection in the room that it returns, or returns nil if the connection belongs to
// another user or is beyond the limit.
func (s *Server) admit(conn net.Conn) (room chan struct{}) {
	if peer, known := peercred.Of(conn); known && peer.UID != 0 && int(peer.UID) != os.Geteuid() {
		return nil
	}
	room = s.room
	if startedByServer(conn) {
		room = s.started
	}
	select {
	case room <- struct{}{}:
		return room
	default:
		return nil
	}
}

// serve answers the request of one connection, and then frees its slot in room. If the connection
// switches to another protocol, it takes a slot of s.streams instead, and serve returns the function
// that serves it. A disconnect is not an error, but cancels the request.
func (s *Server) serve(ctx context.Context, cancel context.CancelCauseFunc, conn net.Conn, room chan struct{}, answer Handler) (stream func()) {
	defer func() { <-room }()
	_ = conn.SetReadDeadline(time.Now().Add(ioTimeout))
	waited := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	limited := &io.LimitedReader{R: conn, N: maxParams}
	reader := bufio.NewReader(limited)
	line, err := reader.ReadBytes('\n')
	waited()
	var r Request
	var result any
	if err != nil {
		err = fmt.Errorf("a request must be a line of at most %d bytes, or %d with params, within %s", maxRequest, maxParams, ioTimeout)
	} else if r, err = parseRequest(line); err == nil && r.Action != Status && room == s.started {
		err = errors.New("programs that the server has started, such as programs of tools and upstream servers, may only ask for its status")
	} else if err == nil {
		limited.N = maxRequest // what follows the request is not part of it
		stop := watchEnd(conn, reader, cancel)
		result, err = answer(withUser(ctx, conn), r)
		stop()
	}
	if begun, ok := result.(Stream); ok && err == nil {
		select {
		case s.streams <- struct{}{}:
			result, stream = begun.Result, func() {
				if conn.SetDeadline(time.Time{}) == nil {
					opened := newConn(conn, reader)
					opened.server = true
					begun.Serve(ctx, opened)
				}
			}
		default:
			err = fmt.Errorf("the server has %d open streams, its limit", maxStreams)
		}
	}
	_ = conn.SetWriteDeadline(time.Now().Add(ioTimeout))
	if _, err := conn.Write(encodeAnswer(result, err)); err != nil && stream != nil { // the client is gone
		<-s.streams
		return nil
	}
	return stream
}

// errDisconnected is the cause of the end of a request without a client.
var errDisconnected = errors.New("the client closed the connection")

// watchEnd cancels a request when its client closes its end of the connection, until stop is called.
// It stops watching at the first byte that the client sends, which the reader keeps.
func watchEnd(conn net.Conn, reader *bufio.Reader, cancel context.CancelCauseFunc) (stop func()) {
	_ = conn.SetReadDeadline(time.Time{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if _, err := reader.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel(errDisconnected)
		}
	}()
	return func() {
		_ = conn.SetReadDeadline(time.Now())
		<-watched
	}
}

// userKey is the key of the user of a connection in the context of its request.
type userKey struct{}

func withUser(ctx context.Context, conn net.Conn) context.Context {
	if peer, known := peercred.Of(conn); known {
		return context.WithValue(ctx, userKey{}, int(peer.UID))
	}
	return ctx
}

// UserOf returns the user who sent the request of a [Handler]; -1 if unknown.
func UserOf(ctx context.Context) int {
	if uid, ok := ctx.Value(userKey{}).(int); ok {
		return uid
	}
	return -1
}

// startedByServer reports whether the client may descend from this process. Programs of tools and
// upstream servers run as the user of the server, who may do everything here.
func startedByServer(conn net.Conn) bool {
	peer, known := peercred.Of(conn)
	return known && peercred.MayDescend(int(peer.PID), os.Getpid())
}

// Close removes the socket. Further calls do nothing.
func (s *Server) Close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, s.dir.close())
}
