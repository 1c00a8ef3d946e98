package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const flushedTools = `
tool "wait" {
  timeout = "1m"
  allow {
    http "site" {
      hosts            = ["%[1]s"]
      private_networks = true
    }
  }
  input "by" { type = string }
  run = <<JS
    progress(1, 2);
    return (await http.site.get("http://%[1]s/call")).text() + " " + input.by;
  JS
}
hook "tell" {
  on      = ["end"]
  timeout = "1m"
  allow {
    http "site" {
      hosts            = ["%[1]s"]
      private_networks = true
    }
  }
  run = <<JS
    await http.site.get("http://%[1]s/hook");
    await http.site.get("http://%[1]s/told");
  JS
}
`

// externalSite is the site that tools and hooks call. It answers calls once the process
// drains, and hooks once all clients have their responses.
type externalSite struct {
	*httptest.Server
	called             chan struct{}
	draining, answered chan struct{}
	told               atomic.Int64
}

func newExternalSite(t *testing.T) *externalSite {
	o := &externalSite{called: make(chan struct{}, 2), draining: make(chan struct{}), answered: make(chan struct{})}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/call":
			o.called <- struct{}{}
			hold(r, o.draining)
		case "/hook":
			hold(r, o.answered)
		case "/told":
			o.told.Add(1)
		}
		fmt.Fprint(w, "done")
	}))
	t.Cleanup(o.Close)
	return o
}

// wait waits for this number of calls.
func (o *externalSite) wait(t *testing.T, calls int) {
	t.Helper()
	deadline := time.After(patience)
	for range calls {
		select {
		case <-o.called:
		case <-deadline:
			t.Fatal("a call never arrived")
		}
	}
}

// hold waits for a channel, or until the client of r disconnects.
func hold(r *http.Request, until <-chan struct{}) {
	select {
	case <-until:
	case <-r.Context().Done():
	}
}

// A stream of each kind is open and a call on each transport is in flight. The process
// ends the streams, completes the calls, runs their hooks and exits with 0 within the
// grace period.
func TestShutdown_drainsEveryTransport(t *testing.T) {
	t.Parallel()
	site := newExternalSite(t)
	d := startWith(t, fmt.Sprintf(flushedTools, strings.TrimPrefix(site.URL, "http://")), "--grace", "20s")

	standing := d.standingStream(t)
	subscription := d.stream(t, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`, "")
	idle, working := d.socket(t), d.socket(t)
	call := d.stream(t, "tools/call", `"name":"wait","arguments":{"by":"SSE"}`, `"progressToken":1,`)
	if err := working.WriteMessage(websocket.TextMessage, modernMessage("tools/call", `"name":"wait","arguments":{"by":"WebSocket"}`, "")); err != nil {
		t.Fatal(err)
	}
	site.wait(t, 2)

	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := d.waitFor(regexp.MustCompile("shutting down")); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(standing); err != nil || strings.Contains(string(rest), "data: {") {
		t.Errorf("the GET stream ended with %q, %v", rest, err)
	}
	if rest, err := io.ReadAll(subscription); err != nil || !strings.Contains(string(rest), `"id":1,"result":`) {
		t.Errorf("the subscription ended with %q, %v", rest, err)
	}
	goesAway(t, "the idle socket", idle)

	close(site.draining)
	if rest, err := io.ReadAll(call); err != nil || !strings.Contains(string(rest), `"text":"done SSE"`) {
		t.Errorf("the call on SSE ended with %q, %v", rest, err)
	}
	if _, answer, err := working.ReadMessage(); err != nil || !strings.Contains(string(answer), `"text":"done WebSocket"`) {
		t.Errorf("the call on the socket ended with %q, %v", answer, err)
	}
	goesAway(t, "the socket of the call", working)
	if told := site.told.Load(); told != 0 {
		t.Errorf("%d hooks completed too early", told)
	}

	close(site.answered)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("mcpd exited with %v", err)
	}
	if told := site.told.Load(); told != 2 {
		t.Errorf("the hooks of %d calls completed, want 2", told)
	}
}

// startWith starts a daemon for one tool file. It is killed if it hangs.
func startWith(t *testing.T, tools string, flags ...string) *daemon {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools.d", "t.hcl"), []byte(tools), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := startDaemon(buildDaemon(t), dir, append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	failsafe := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	t.Cleanup(func() { failsafe.Stop() })
	return d
}

// standingStream returns the open GET stream of a legacy session.
func (d *daemon) standingStream(t *testing.T) io.Reader {
	t.Helper()
	session := d.send(t, http.MethodPost, http.Header{"Accept": {"application/json, text/event-stream"}},
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := io.ReadAll(session.Body); err != nil {
		t.Fatal(err)
	}
	return d.send(t, http.MethodGet, http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": session.Header["Mcp-Session-Id"]}, "").Body
}

// stream returns the stream of a modern request, after its first event.
func (d *daemon) stream(t *testing.T, method, params, meta string) io.Reader {
	t.Helper()
	header := http.Header{
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method},
	}
	if method == "tools/call" {
		header.Set("Mcp-Name", "wait")
	}
	response := d.send(t, http.MethodPost, header, string(modernMessage(method, params, meta)))
	events := bufio.NewReader(response.Body)
	for line := ""; !strings.HasPrefix(line, "data: {"); {
		var err error
		if line, err = events.ReadString('\n'); err != nil {
			t.Fatalf("%s has no first event: %v", method, err)
		}
	}
	return events
}

func (d *daemon) send(t *testing.T, method string, header http.Header, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, d.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %v", method, response, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func (d *daemon) socket(t *testing.T) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}}
	socket, _, err := dialer.Dial("ws"+strings.TrimPrefix(d.url, "http")+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket
}

func goesAway(t *testing.T, what string, socket *websocket.Conn) {
	t.Helper()
	if _, text, err := socket.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("%s ended with %q, %v", what, text, err)
	}
}

// modernMessage returns a request of revision 2026-07-28.
func modernMessage(method, params, meta string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{%s`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params, meta)
}
