package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPath returns a socket path in a new directory.
func newPath(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "s")
}

// serving runs a server on a socket until stop is called or the test ends.
func serving(t *testing.T, path string, answer Handler) (stop func()) {
	t.Helper()
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Serve(ctx, answer)
	}()
	stop = func() {
		cancel()
		<-ended
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// A client that is gone before the response gets no stream, and takes no place of one.
func TestServer_goneClient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	gone := make(chan struct{})
	stop := serving(t, path, func(_ context.Context, r Request) (any, error) {
		<-gone
		return Stream{Result: r, Serve: func(context.Context, *Conn) { t.Error("a stream without a client") }}, nil
	})
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(`{"control":1,"do":"attach"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	close(gone)
	stop()
}

// echo returns the request.
func echo(_ context.Context, r Request) (any, error) { return r, nil }

func TestAsk_answersAndErrors(t *testing.T) {
	path := newPath(t)
	serving(t, path, func(ctx context.Context, r Request) (any, error) {
		if r.Action == Reload {
			return nil, errors.New("the server is shutting down")
		}
		return echo(ctx, r)
	})
	var got Request
	want := Request{Action: Status, Color: true}
	if err := Do(t.Context(), path, want, &got); err != nil || !cmp.Equal(got, want) {
		t.Errorf("the server got %+v, %v, want %+v", got, err, want)
	}
	err := Do(t.Context(), path, Request{Action: Reload}, &got)
	if want := "ask the server at " + path + ": the server is shutting down"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestListen_socketMode(t *testing.T) {
	path := newPath(t)
	stop := serving(t, path, echo)
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v", info, err)
	}
	stop()
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("files remain: %v, %v", left, err)
	}
}

func TestListen_staleSocket(t *testing.T) {
	path := newPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("before: %v, want %v", err, ErrNoServer)
	}
	serving(t, path, echo)
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err != nil {
		t.Error(err)
	}
}

func TestListen_socketInUse(t *testing.T) {
	path := newPath(t)
	serving(t, path, echo)
	_, err := Listen(path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("got error %v", err)
	}
	if want := fmt.Sprintf("process %d has this socket", os.Getpid()); runtime.GOOS == "linux" && !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err != nil {
		t.Errorf("the first server lost its socket: %v", err)
	}
}

func TestAsk_noServer(t *testing.T) {
	path := newPath(t)
	for _, nowhere := range []string{path, filepath.Join(path, "deeper")} {
		if err := Do(t.Context(), nowhere, Request{Action: Status}, &Request{}); !errors.Is(err, ErrNoServer) {
			t.Errorf("%s: %v, want %v", nowhere, err, ErrNoServer)
		}
	}
}

func TestListen_unsafeDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no file modes on this system")
	}
	path := newPath(t)
	open := filepath.Join(filepath.Dir(path), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		path:                        "there is a file that is not a socket",
		filepath.Join(path, "s"):    "not a directory",
		filepath.Join(open, "s"):    "other users can write in " + open,
		filepath.Join("/proc", "s"): "",
	} {
		if _, err := Listen(place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", place, err, want)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("file content %q, %v", text, err)
	}
}

// talk sends text and returns the response.
func talk(t *testing.T, path, text string) string {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	return string(answer)
}

func TestServer_invalidRequest(t *testing.T) {
	path := newPath(t)
	serving(t, path, echo)
	got := map[string]string{}
	want := map[string]string{
		`{"control":1,"do":"status"}` + "\n":                   `{"control":1,"result":{"do":"status"}}` + "\n",
		`{"control":1,"do":"status","later":true}` + "\n":      `{"control":1,"result":{"do":"status"}}` + "\n",
		`{"control":2,"do":"status"}` + "\n":                   `{"control":1,"error":"this server speaks version 1 of the control protocol; use the same mcpd as the server"}` + "\n",
		`{"do":"status"}` + "\n":                               `{"control":1,"error":"this server speaks version 1 of the control protocol; use the same mcpd as the server"}` + "\n",
		`{"control":1,"do":"drop_tokens","kind":"key"}` + "\n": `{"control":1,"error":"drop_tokens needs a secret or a principal"}` + "\n",
		`{"control":1,"do":"stop"}` + "\n":                     `{"control":1,"error":"unknown request; use status, fleet, reload, tokens, drop_tokens, history, attach, detached, catalog, item, explain, matrix, try, complete, calls, audit, policy_files, replay, limits, pins, accept, keys, revoke_key, tasks or cancel_task"}` + "\n",
		strings.Repeat("x", maxParams):                         `{"control":1,"error":"a request must be a line of at most 4096 bytes, or 1048576 with params, within 5s"}` + "\n",
		`{"control":1,"do":"status","params":{}}` + "\n":       `{"control":1,"error":"status takes no params"}` + "\n",
		`{"control":1,"control":1,"do":"status"}` + "\n":       `{"control":1,"error":"read request: an object has two members of the same name (at byte 13)"}` + "\n",
		`{"control":1,"do":{"a":{"b":{"c":[]}}}}` + "\n":       `{"control":1,"error":"read request: do has the wrong type"}` + "\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n":            `{"control":1,"error":"read request: the JSON text has an unexpected character where a value should be (at byte 0)"}` + "\n",
	}
	for text := range want {
		got[text] = talk(t, path, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A client that closes its end does not want the response, however long it takes.
func TestServer_disconnectedClient(t *testing.T) {
	for name, end := range map[string]func(*net.UnixConn) error{"closed": (*net.UnixConn).Close, "half closed": (*net.UnixConn).CloseWrite} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			begun, ended := make(chan struct{}), make(chan error, 1)
			serving(t, path, func(ctx context.Context, r Request) (any, error) {
				close(begun)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return r, nil
			})
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, `{"control":1,"do":"reload"}`+"\n"); err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := end(conn.(*net.UnixConn)); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if !errors.Is(err, errDisconnected) {
					t.Errorf("the request ended with %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("the request goes on without its client")
			}
		})
	}
}

func TestServer_maxConnections(t *testing.T) {
	path := newPath(t)
	begun, end := make(chan struct{}), make(chan struct{})
	stop := serving(t, path, func(ctx context.Context, r Request) (any, error) {
		begun <- struct{}{}
		<-end
		return r, nil
	})
	answered := make(chan error, maxConnections)
	for range maxConnections {
		go func() { answered <- Do(context.Background(), path, Request{Action: Status}, &Request{}) }()
		<-begun
	}
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err == nil {
		t.Error("a connection beyond the limit got a response")
	}
	close(end)
	for range maxConnections {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	stop()
}

// A stream starts with the bytes that followed the request, and does not count as a
// request: the number of streams has a limit of its own.
func TestServer_streams(t *testing.T) {
	path := newPath(t)
	ended := make(chan error, maxStreams)
	stop := serving(t, path, func(_ context.Context, r Request) (any, error) {
		if r.Action != Attach {
			return r, nil
		}
		return Stream{Result: r, Serve: func(ctx context.Context, conn *Conn) {
			defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
			if want := os.Geteuid(); runtime.GOOS == "linux" && conn.UID != want {
				t.Errorf("the stream has the user %d, want %d", conn.UID, want)
			}
			_, err := io.Copy(conn, conn)
			ended <- err
		}}, nil
	})
	early, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if _, err := early.Write([]byte(`{"control":1,"do":"attach"}` + "\nhello\n")); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(early)
	for _, want := range []string{`{"control":1,"result":{"do":"attach"}}` + "\n", "hello\n"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	var open []*Conn
	for range maxStreams - 1 {
		conn, err := Open(t.Context(), path, Request{Action: Attach}, &Request{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	if _, err := Open(t.Context(), path, Request{Action: Attach}, &Request{}); err == nil || !strings.Contains(err.Error(), "64 open streams, its limit") {
		t.Errorf("a stream beyond the limit: %v", err)
	}
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err != nil {
		t.Errorf("a request beside the streams: %v", err)
	}
	for i, conn := range open[:2] {
		said := fmt.Sprintf("client %d", i)
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != said {
			t.Errorf("got %q, %v, want %q", got, err, said)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if again, err := Open(t.Context(), path, Request{Action: Attach}, &Request{}); err != nil {
		t.Errorf("a stream after two have ended: %v", err)
	} else {
		defer again.Close()
	}
	stop() // ends the other streams
	if _, err := open[2].Read(make([]byte, 1)); err == nil {
		t.Error("a stream outlived its server")
	}
}

func TestOpen_longResponse(t *testing.T) {
	path := newPath(t)
	serving(t, path, func(context.Context, Request) (any, error) { return strings.Repeat("x", maxRequest), nil })
	var got string
	if _, err := Open(t.Context(), path, Request{Action: Attach}, &got); !errors.Is(err, bufio.ErrBufferFull) {
		t.Errorf("got error %v", err)
	}
}

func TestOpen_noServer(t *testing.T) {
	if _, err := Open(t.Context(), newPath(t), Request{Action: Attach}, &Request{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("got error %v, want %v", err, ErrNoServer)
	}
}

func TestServer_closeDuringRequest(t *testing.T) {
	path := newPath(t)
	stop := serving(t, path, echo)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err != nil { // the previous connection is accepted by now
		t.Fatal(err)
	}
	stop()
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "a request must be a line") {
		t.Errorf("the connection closed with %q, %v", answer, err)
	}
}

func TestAsk_timeout(t *testing.T) {
	path := newPath(t)
	begun, end := make(chan struct{}), make(chan struct{})
	serving(t, path, func(context.Context, Request) (any, error) {
		close(begun)
		<-end
		return nil, nil
	})
	defer close(end)
	patience := errors.New("no response in time")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		cancel(patience)
	}()
	if err := Do(ctx, path, Request{Action: Reload}, &Request{}); !errors.Is(err, patience) {
		t.Errorf("got error %v, want %v", err, patience)
	}
}

func TestAsk_otherVersion(t *testing.T) {
	for line, want := range map[string]string{
		`{"control":2,"result":{}}`:                                     "the server uses version 2 of the control protocol; use the same mcpd as the server",
		`{"control":2,"error":"use version"}`:                           "use version",
		`{"control":1,"error":"unknown request; use status or reload"}`: "the server is an older mcpd without this request; restart it with this mcpd",
		`{"control":1,"result":[]}`:                                     "decode response: json: cannot unmarshal array into Go value of type control.Request",
		`{"control":1,"result":{},"result":1}`:                          "decode response: an object has two members of the same name (at byte 25)",
	} {
		if err := parseAnswer([]byte(line), &Request{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
