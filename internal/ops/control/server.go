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
	// requestTime is how long a request may take to come, and an answer to be taken.
	requestTime = 5 * time.Second
	// maxConnections is how many there may be at once. One more is closed.
	maxConnections = 16
	// pause is how long the server waits when it cannot take a connection.
	pause = 100 * time.Millisecond
)

// Answer carries out a request. Its result is encoded as JSON; an error is told
// to who has asked, and holds nothing that the user of the server may not know.
type Answer func(ctx context.Context, r Request) (result any, err error)

// Server is the end of a socket that answers. [Server.Close] must come last.
type Server struct {
	// fixed at creation
	listener net.Listener
	place    *place
	room     chan struct{}
}

// Listen makes the socket at a path, and the folder that it stands in. A socket
// that a process has left which is dead is replaced. One on which a process
// answers is not: the error names that process, and is [syscall.EADDRINUSE].
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
	p, err := enter(path)
	if err != nil {
		return nil, err
	}
	l, err := p.listen()
	if err != nil {
		return nil, errors.Join(err, p.leave())
	}
	return &Server{listener: l, place: p, room: make(chan struct{}, maxConnections)}, nil
}

// listen makes the socket, while no other process makes one in this folder.
func (p *place) listen() (net.Listener, error) {
	unlock, err := p.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := httpguard.ListenSocket(p.short, httpguard.SocketModeOwner)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s has this socket; end it, or name another with --control: %w", holder(p.short), syscall.EADDRINUSE)
	}
	return l, err
}

// holder names the process that answers on a socket.
func holder(short string) string {
	conn, err := net.DialTimeout("unix", short, requestTime)
	if err != nil {
		return "another process"
	}
	defer conn.Close()
	if peer, ok := peercred.Of(conn); ok && peer.PID > 0 {
		return fmt.Sprintf("process %d", peer.PID)
	}
	return "another process"
}

// Serve answers requests until ctx is done, and returns when the last of them
// is answered.
func (s *Server) Serve(ctx context.Context, answer Answer) {
	var busy sync.WaitGroup
	defer busy.Wait()
	defer context.AfterFunc(ctx, func() { _ = s.listener.Close() })()
	for ctx.Err() == nil {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // the process has no descriptor left, for now
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		case !s.admits(conn):
			_ = conn.Close()
		default:
			busy.Go(func() {
				defer func() { <-s.room }()
				serve(ctx, conn, answer)
			})
		}
	}
}

// admits reports whether a connection is of a user who may ask, and there is
// room for it, which it takes.
func (s *Server) admits(conn net.Conn) bool {
	if peer, known := peercred.Of(conn); known && peer.UID != 0 && int(peer.UID) != os.Geteuid() {
		return false
	}
	select {
	case s.room <- struct{}{}:
		return true
	default:
		return false
	}
}

// serve answers the request of one connection. Who goes away is nobody's error.
func serve(ctx context.Context, conn net.Conn, answer Answer) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(requestTime))
	waited := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	line, err := bufio.NewReader(io.LimitReader(conn, maxRequest)).ReadBytes('\n')
	waited()
	var r Request
	var result any
	if err != nil {
		err = fmt.Errorf("a request is a line of %d bytes at most, and comes within %s", maxRequest, requestTime)
	} else if r, err = parseRequest(line); err == nil {
		result, err = answer(ctx, r)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(requestTime))
	_, _ = conn.Write(encodeAnswer(result, err))
}

// Close removes the socket. Another call does nothing.
func (s *Server) Close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, s.place.leave())
}
