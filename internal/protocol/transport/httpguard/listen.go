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

// The limits that [ConfigureServer] sets.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// CheckListen returns an error if a server without authentication and TLS may
// not listen on address, "host:port" or "unix:PATH". Any client that reaches it
// could call every tool. Loopback addresses and sockets are allowed, others
// only with insecure.
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

// ConfigureServer sets the timeouts for headers and idle connections, and the
// maximum size of headers. It also makes the server pass "OPTIONS *" to its
// handler, and so to the guard, and tell a listener of [LimitListener] which
// connections are in use.
func ConfigureServer(s *http.Server) {
	trackConns(s)
	s.ReadHeaderTimeout = headerTimeout
	s.IdleTimeout = idleTimeout
	s.MaxHeaderBytes = maxHeaderBytes
	s.DisableGeneralOptionsHandler = true
}

const (
	// socketScheme is the prefix of a socket address.
	socketScheme = "unix:"
	// maxSocketPath is the maximum length of a socket path in bytes, on every
	// system: the socket is created in a directory beside its path.
	maxSocketPath = 80
	// probeTimeout bounds the probe for a server that already uses the socket.
	probeTimeout = time.Second
)

// SocketPath returns the path in an address "unix:PATH"; false for any other
// address.
func SocketPath(address string) (path string, ok bool) {
	path, ok = strings.CutPrefix(address, socketScheme)
	return path, ok && path != ""
}

// The modes of a socket, which control who may connect.
const (
	// SocketModeOwner allows only the user who runs the server.
	SocketModeOwner fs.FileMode = 0o600
	// SocketModeShared allows all users of the machine; something else must
	// authenticate them.
	SocketModeShared fs.FileMode = 0o666
)

// Listen listens at "host:port" or "unix:PATH", on a socket with the mode. It
// replaces a socket that no server uses. Closing the listener removes its
// socket.
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

// ListenSocket listens on a socket at a path, as [Listen] does. The error is
// [syscall.EADDRINUSE] if a server uses the socket.
func ListenSocket(path string, mode fs.FileMode) (_ net.Listener, err error) {
	path = filesystemPath(path)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes", maxSocketPath)
	}
	if err := checkSocketFree(path); err != nil {
		return nil, err
	}
	// The socket moves to its path after its mode is set. Until then, other users
	// cannot enter the directory in which it is created.
	folder, err := os.MkdirTemp(filepath.Dir(path), ".mcpd-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	created := filepath.Join(folder, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: created, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socket{UnixListener: l, path: path}
	err = os.Chmod(created, mode)
	if err == nil {
		s.file, err = os.Lstat(created)
	}
	if err == nil {
		err = os.Rename(created, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// filesystemPath returns a path that is not an abstract socket name.
func filesystemPath(path string) string {
	if strings.HasPrefix(path, "@") {
		return "./" + path
	}
	return path
}

// CheckAddressFree returns an error if [Listen] would fail for the address now.
// The error is [syscall.EADDRINUSE] if the address is in use.
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

// checkSocketFree returns an error if no socket can be created at a path:
// because of another file, or because a server answers.
func checkSocketFree(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return errors.New("there is a file that is not a socket")
	}
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("probe the socket: %w", err)
	}
	return errors.Join(fmt.Errorf("another server answers there: %w", syscall.EADDRINUSE), conn.Close())
}

// socket is a listener on a socket that it created.
type socket struct {
	*net.UnixListener
	path    string
	file    fs.FileInfo
	closing sync.Once
}

// Addr returns the address with the path.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close removes the socket, unless another one replaced it, and closes the
// listener.
func (s *socket) Close() error {
	s.closing.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
			_ = os.Remove(s.path) // a remaining socket is replaced at the next start
		}
	})
	return s.UnixListener.Close()
}
