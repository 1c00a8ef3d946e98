package httpguard

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The bounds that [Guard] sets.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// CheckListen returns why a server without authentication and TLS may not
// listen on address, "host:port" or "unix:PATH": whoever reaches it there can
// use all of it. On loopback and on a socket it may; anywhere else only if
// insecure is set.
func CheckListen(address string, insecure bool) error {
	if _, ok := SocketPath(address); ok {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: want HOST:PORT, like 127.0.0.1:8080, or unix:PATH", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost") || insecure {
		return nil
	}
	return fmt.Errorf("listen on %q: it is not a loopback address, and there is no authentication with TLS: "+
		"anyone who reaches it could call every tool; listen on 127.0.0.1, or override with --insecure-listen", address)
}

// Guard gives a server the bounds that its own fields are for: how long
// headers and idle connections may take, and how long headers may be. It also
// has the server pass "OPTIONS *" to its handler, and so to the gate, instead
// of answering by itself, and tell a listener that [Limit] has made which of its
// connections are in use.
func ConfigureServer(s *http.Server) {
	trackConns(s)
	s.ReadHeaderTimeout = headerTimeout
	s.IdleTimeout = idleTimeout
	s.MaxHeaderBytes = maxHeaderBytes
	s.DisableGeneralOptionsHandler = true
}

const (
	// socketScheme begins an address that is the path of a socket.
	socketScheme = "unix:"
	// longestSocket is how long the path of a socket may be in bytes, on
	// every system: it is made in a folder beside its place.
	maxSocketPath = 80
	// answerTime is how long a server that has the socket may take to answer.
	probeTimeout = time.Second
)

// SocketPath returns the path in an address "unix:PATH"; false when the address
// is another.
func SocketPath(address string) (path string, ok bool) {
	path, ok = strings.CutPrefix(address, socketScheme)
	return path, ok && path != ""
}

// The modes of a socket: who may connect.
const (
	// OwnSocket is for the user alone who runs the server.
	SocketModeOwner fs.FileMode = 0o600
	// SharedSocket is for all users of the machine, whom somebody else must tell apart.
	SocketModeShared fs.FileMode = 0o666
)

// Listen listens at "host:port" or "unix:PATH", on a socket of the mode. One on which nobody answers is replaced, and ours
// is removed when the listener is closed.
func Listen(address string, mode fs.FileMode) (net.Listener, error) {
	path, ok := SocketPath(address)
	if !ok {
		return net.Listen("tcp", address)
	}
	l, err := ListenSocket(path, mode)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	return l, nil
}

// ListenSocket listens on a socket at a path, as [Listen] does. The error of one
// on which somebody answers is [syscall.EADDRINUSE].
func ListenSocket(path string, mode fs.FileMode) (_ net.Listener, err error) {
	path = filesystemPath(path)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes", maxSocketPath)
	}
	if err := checkSocketFree(path); err != nil {
		return nil, err
	}
	// It takes its place once nobody else can use it any more: whoever looks
	// into the folder meanwhile cannot enter the one in which it is made.
	folder, err := os.MkdirTemp(filepath.Dir(path), ".mcpd-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	made := filepath.Join(folder, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socket{UnixListener: l, path: path}
	err = os.Chmod(made, mode)
	if err == nil {
		s.file, err = os.Lstat(made)
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// onDisk returns a path that is none of a socket without a file.
func filesystemPath(path string) string {
	if strings.HasPrefix(path, "@") {
		return "./" + path
	}
	return path
}

// CheckVacant returns why [Listen] would not have an address now. The error of one that
// somebody has is [syscall.EADDRINUSE].
func CheckAddressFree(address string) error {
	path, ok := SocketPath(address)
	if !ok {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		return l.Close()
	}
	if err := checkSocketFree(filesystemPath(path)); err != nil {
		return fmt.Errorf("listen on %q: %w", address, err)
	}
	return nil
}

// checkVacant returns why no socket can be made at a path: because something
// else is there, or somebody answers.
func checkSocketFree(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is something that is no socket")
	}
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("find out whether a server uses the socket: %w", err)
	}
	return errors.Join(fmt.Errorf("another server answers there: %w", syscall.EADDRINUSE), conn.Close())
}

// socket is a listener on a path of ours.
type socket struct {
	*net.UnixListener
	path    string
	file    fs.FileInfo
	closing sync.Once
}

// Addr returns the address with the path.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close removes the socket, unless another has taken its place, and closes it.
func (s *socket) Close() error {
	s.closing.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
			_ = os.Remove(s.path) // one that stays is replaced at the next start
		}
	})
	return s.UnixListener.Close()
}
