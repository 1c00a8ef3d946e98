package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestListen_longPath(t *testing.T) {
	path := filepath.Join(filepath.Dir(newPath(t)), strings.Repeat("long/", 40), "s")
	serving(t, path, echo)
	if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err != nil {
		t.Error(err)
	}
}

// Another user connects although file modes allow it: the socket peer identifies the
// user.
func TestServer_otherUser(t *testing.T) {
	if path := os.Getenv("MCPD_TEST_CONTROL"); path != "" {
		err := Do(t.Context(), path, Request{Action: Status}, &Request{})
		if err == nil || errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "does not answer this user") {
			t.Fatalf("got error %v", err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	path := newPath(t)
	asked := false
	stop := serving(t, path, func(_ context.Context, r Request) (any, error) {
		asked = true
		return r, nil
	})
	for _, opened := range []struct {
		name string
		mode os.FileMode
	}{{path, 0o666}, {filepath.Dir(path), 0o755}} {
		if err := os.Chmod(opened.name, opened.mode); err != nil {
			t.Fatal(err)
		}
	}
	// The program is opened by this process: other users cannot read its directory.
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	other := exec.Command("/proc/self/fd/3", "-test.run=^TestServer_otherUser$", "-test.count=1")
	other.ExtraFiles = []*os.File{program}
	other.Dir, other.Env = "/", []string{"MCPD_TEST_CONTROL=" + path}
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	stop()
	if asked {
		t.Error("the request was carried out")
	}
}

// Programs that the server started hold connections: four with a request, and no others. The operator,
// whose requests have room of their own, is still answered.
func TestServer_maxStarted(t *testing.T) {
	if path := os.Getenv("MCPD_TEST_HOLD"); path != "" {
		for i := range 2 * maxConnections {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if i < 4 { // waits for its response
				_, _ = io.WriteString(conn, `{"control":1,"do":"status"}`+"\n")
			} else if text, err := io.ReadAll(conn); len(text) != 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("connection %d got %q, %v", i+1, text, err)
			}
		}
		fmt.Println("connected")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		return
	}
	path := newPath(t)
	var held atomic.Int64
	stop := serving(t, path, func(ctx context.Context, r Request) (any, error) {
		if r.Action == Status {
			held.Add(1)
			<-ctx.Done()
		}
		return "yes", nil
	})
	child := exec.Command(os.Args[0], "-test.run=^TestServer_maxStarted$", "-test.count=1")
	child.Env = append(os.Environ(), "MCPD_TEST_HOLD="+path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewReader(out)
	if line, err := printed.ReadString('\n'); err != nil || line != "connected\n" {
		t.Errorf("%q, %v", line, err)
	}
	var got string
	if err := Do(t.Context(), path, Request{Action: Reload}, &got); err != nil || got != "yes" {
		t.Errorf("the operator got %q, %v", got, err)
	}
	_ = in.Close()
	if rest, _ := io.ReadAll(printed); child.Wait() != nil {
		t.Errorf("%s", rest)
	}
	stop()
	if n := held.Load(); n != 4 {
		t.Errorf("%d requests of the program were answered, want 4", n)
	}
}

// A program that the server started, such as one of a tool, runs as the same user.
func TestServer_startedProgram(t *testing.T) {
	if path := os.Getenv("MCPD_TEST_STARTED"); path != "" {
		if err := Do(t.Context(), path, Request{Action: Status}, &Request{}); err != nil {
			t.Errorf("status: %v", err)
		}
		for _, action := range []Action{Reload, Tokens, Attach, Try, RevokeKey} {
			if err := Do(t.Context(), path, Request{Action: action}, &Request{}); err == nil || !strings.Contains(err.Error(), "programs that the server has started") {
				t.Errorf("%s: %v", action, err)
			}
		}
		return
	}
	path := newPath(t)
	stop := serving(t, path, echo)
	defer stop()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(program, "-test.run=^TestServer_startedProgram$", "-test.count=1")
	child.Env = append(os.Environ(), "MCPD_TEST_STARTED="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
