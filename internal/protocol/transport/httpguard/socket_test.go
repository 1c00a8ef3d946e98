package httpguard

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// newSocket returns an address with a path in a new directory, which is short
// enough on every machine.
func newSocket(t *testing.T) (address, path string) {
	t.Helper()
	t.Chdir(t.TempDir())
	return "unix:mcpd.sock", "mcpd.sock"
}

func TestListen_socketMode(t *testing.T) {
	address, path := newSocket(t)
	l, err := Listen(address, SocketModeOwner)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", info, err)
	}
	if got := l.Addr(); got.Network() != "unix" || got.String() != path {
		t.Errorf("address: %s %s", got.Network(), got)
	}
	if left, err := filepath.Glob(".mcpd-*"); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
	for range 2 {
		_ = l.Close()
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket was not removed: %v", err)
	}
}

func TestListen_replacesDeadSocket(t *testing.T) {
	address, path := newSocket(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l, err := Listen(address, SocketModeOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestListen_keepsOtherFiles(t *testing.T) {
	address, path := newSocket(t)
	first, err := Listen(address, SocketModeOwner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(address, SocketModeOwner); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("beside a running server: %v", err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the first server lost its socket: %v", err)
	}
	conn.Close()
	// A socket that replaced the listener's own must not be removed.
	if err := os.Rename(path, "aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if _, err := Listen(address, SocketModeOwner); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("beside a file: %v", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "precious" {
		t.Errorf("file: %q, %v", content, err)
	}
}

func TestListen_invalidPath(t *testing.T) {
	newSocket(t)
	for address, want := range map[string]string{
		"unix:nowhere/mcpd.sock":                 "no such file",
		"unix:/" + strings.Repeat("x", 100):      "at most 80 bytes",
		"unix:" + strings.Repeat("y/", 40) + "s": "at most 80 bytes",
	} {
		if _, err := Listen(address, SocketModeOwner); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGuard_socketHosts(t *testing.T) {
	address, path := newSocket(t)
	l, err := Listen(address, SocketModeOwner)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: newGate(t, Options{Hosts: []string{"mcp.internal"}}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(passed)
	}))}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(LimitListener(l, ConnLimits{})) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", path)
	}}}
	for host, want := range map[string]int{
		"localhost": passed, "localhost:8080": passed, "127.0.0.1": passed, "[::1]:1": passed, "mcp.internal": passed,
		"evil.com": 403, "unix": 403,
	} {
		response, err := client.Get("http://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", host, response.StatusCode, want)
		}
	}
	server.Close()
	<-ended
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket was not removed: %v", err)
	}
}
