package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const attachInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// say sends text to the server.
func (s *stdioServer) say(t *testing.T, text string) {
	t.Helper()
	if _, err := s.in.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// hear returns the next message of the server that contains a text.
func (s *stdioServer) hear(t *testing.T, part string) string {
	t.Helper()
	for s.lines.Scan() {
		if line := s.lines.Text(); strings.Contains(line, part) {
			return line
		}
	}
	t.Fatalf("no message contains %s; the output ended with %v", part, s.lines.Err())
	return ""
}

// attachTools has a tool that returns the version, and one that waits for a site.
const attachTools = `tool "probe" {
  description = "Version %[1]d"
  timeout     = "30s"
  run         = "return 'version %[1]d';"
}
tool "wait" {
  timeout = "2m"
  allow {
    http "site" {
      hosts            = ["%[2]s"]
      private_networks = true
      timeout          = "2m"
    }
  }
  run = <<JS
    return (await http.site.get("http://%[2]s/call")).text() + " waiting";
  JS
}
`

// attachable is a running server with attachTools.
type attachable struct {
	*daemon
	program, dir string
	env          []string
	site         *externalSite
}

func newAttachable(t *testing.T) *attachable {
	t.Helper()
	a := &attachable{program: buildDaemon(t), dir: t.TempDir(), env: append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), site: newExternalSite(t)}
	if err := os.Mkdir(filepath.Join(a.dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	a.save(t, 1)
	var err error
	if a.daemon, err = startDaemon(a.program, a.dir, a.env, []string{"--grace", "2m"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	return a
}

// save saves a version of the tools.
func (a *attachable) save(t *testing.T, version int) {
	t.Helper()
	save(t, filepath.Join(a.dir, "tools.d", "tools.hcl"), fmt.Sprintf(attachTools, version, a.site.Listener.Addr()))
}

// attach starts a client, which knows the list of tools.
func (a *attachable) attach(t *testing.T) *stdioServer {
	t.Helper()
	client := startStdio(t, a.program, a.dir, a.env, "attach")
	client.say(t, attachInitialize+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n")
	client.hear(t, `"id":2,"result"`)
	return client
}

const attachModern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// Clients of both eras share the server: each has its own session, hears of changed tools,
// and calls the new version. The server bounds the lines of each. When it stops, it completes
// running calls, and the clients exit with the reason.
func TestAttach_severalClients(t *testing.T) {
	t.Parallel()
	a := newAttachable(t)
	clients := []*stdioServer{a.attach(t), a.attach(t)}
	modern := startStdio(t, a.program, a.dir, a.env, "attach")
	modern.say(t, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+attachModern+"}}\n")
	modern.hear(t, "notifications/subscriptions/acknowledged")
	if _, stdout, stderr := inProcess(t, a.dir, a.env, "status"); !strings.Contains(stdout, "3 stdio") {
		t.Errorf("the status has no sessions of the clients:\n%s%s", stdout, stderr)
	}
	clients[0].say(t, strings.Repeat("x", 5<<20)+"\n")
	clients[0].hear(t, "the line is longer than 4194304 bytes")
	a.save(t, 2)
	for i, client := range append(clients, modern) {
		client.hear(t, "notifications/tools/list_changed")
		client.say(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"probe",`+attachModern+"}}\n")
		if got := client.hear(t, `"id":3`); !strings.Contains(got, "version 2") {
			t.Errorf("client %d got %s", i, got)
		}
	}
	clients[1].say(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait"}}`+"\n")
	a.site.wait(t, 1)
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	stopped := fmt.Sprintf("mcpd: the server (process %d) has stopped; start it with mcpd serve", a.cmd.Process.Pid)
	clients[0].stopped(t, stopped)
	modern.stopped(t, stopped)
	close(a.site.draining)
	if got := clients[1].hear(t, `"id":4`); !strings.Contains(got, "done waiting") {
		t.Errorf("the running call got %s", got)
	}
	clients[1].stopped(t, stopped)
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("the server exited with %v", err)
	}
}

// stopped requires that the verb exits with code 1 and a message, while its standard input
// is open.
func (s *stdioServer) stopped(t *testing.T, message string) {
	t.Helper()
	for s.lines.Scan() {
	}
	var status *exec.ExitError
	if err := s.cmd.Wait(); !errors.As(err, &status) || status.ExitCode() != exitFindings || !strings.Contains(s.log.String(), message) {
		t.Errorf("the verb exited with %v and\n%swant\n%s", err, &s.log, message)
	}
}

// At the end of standard input, running calls end with their results, and the server
// continues.
func TestAttach_inputEnds(t *testing.T) {
	t.Parallel()
	a := newAttachable(t)
	client := a.attach(t)
	client.say(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait"}}`+"\n")
	a.site.wait(t, 1)
	_ = client.in.Close()
	close(a.site.draining)
	if rest := client.end(t); !strings.Contains(rest, "done waiting") {
		t.Errorf("the client got %s", rest)
	}
	a.attach(t).end(t)
}

// Auth blocks that a reload adds end the connections of attached clients, with the reason.
func TestAttach_credentials(t *testing.T) {
	t.Parallel()
	a := newAttachable(t)
	client := a.attach(t)
	client.say(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"wait"}}`+"\n")
	a.site.wait(t, 1)
	if code, stdout, stderr := inProcess(t, a.dir, a.env, "key", "new", "ada"); code != exitOK {
		t.Fatalf("key new: %d\n%s%s", code, stdout, stderr)
	}
	save(t, filepath.Join(a.dir, "mcpd.hcl"), "auth \"api_key\" \"ops\" {}\n")
	client.stopped(t, "mcpd: the server disconnected the client: the auth blocks of the server require credentials")
	if code, _, stderr := inProcess(t, a.dir, a.env, "status"); code != exitOK {
		t.Errorf("the server: exit code %d\n%s", code, stderr)
	}
}

// The reasons of the last clients are kept, until the client asks for its own.
func TestDetachments(t *testing.T) {
	var d detachments
	for range maxDetachments + 1 {
		n := d.next()
		d.add(n, fmt.Sprint("reason ", n))
	}
	for _, test := range []struct {
		client uint64
		want   string
	}{{0, ""}, {1, ""}, {2, "reason 2"}, {2, ""}, {maxDetachments + 1, "reason 65"}, {maxDetachments + 2, ""}} {
		if got := d.take(test.client); got != test.want {
			t.Errorf("client %d: %q, want %q", test.client, got, test.want)
		}
	}
}

// The client is the user at the other end of the socket: the user of the server, or root.
func TestAttach_principal(t *testing.T) {
	o := &runningServer{env: env{process: process{uid: "1000", username: "ada"}}}
	for uid, want := range map[int]string{1000: "ada", -1: "ada", 0: "root"} {
		if p := o.attached(uid); p.ID != want || p.Kind != "local" || len(p.Scopes)+len(p.Groups) > 0 {
			t.Errorf("user %d is %+v, want %s", uid, p, want)
		}
	}
	o.env.process = process{uid: "0", username: "toor"}
	if p := o.attached(0); p.ID != "toor" {
		t.Errorf("the user of the server is %s", p.ID)
	}
}

// A server of an earlier version does not know attach.
func TestAttach_olderServer(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	socket, err := net.Listen("unix", filepath.Join(s.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	go func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadBytes('\n')
			_, _ = conn.Write([]byte(`{"control":1,"error":"unknown request; use status, fleet, reload, tokens, drop_tokens or history"}` + "\n"))
			_ = conn.Close()
		}
	}()
	if code, stdout, stderr := s.run(t, nil, "attach", "--control", "s"); code != exitFindings || stdout != "" || !strings.Contains(stderr, "the server is an older mcpd without this request; restart it with this mcpd") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
