package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// listener receives notifications of a daemon.
type listener struct {
	heard chan string
	stop  func()
}

// cmdListen opens a stream, and returns when the subscription is active.
func cmdListen(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg || args[1] == "modern" && len(args) != 3 {
		ts.Fatalf("usage: listen NAME modern FILE, or listen NAME legacy [URI...]")
	}
	h := ts.Value(holderKey{}).(*holder)
	var l *listener
	var err error
	if args[1] == "modern" {
		l, err = h.daemon.listenModern(ts.ReadFile(args[2]))
	} else {
		l, err = h.daemon.listenLegacy(args[2:])
	}
	ts.Check(err)
	ts.Defer(l.stop)
	if h.listeners == nil {
		h.listeners = map[string]*listener{}
	}
	h.listeners[args[0]] = l
}

// cmdHeard requires the next notifications of a listener to be exactly these.
func cmdHeard(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: heard NAME notification...")
	}
	l := ts.Value(holderKey{}).(*holder).listeners[args[0]]
	for _, want := range args[1:] {
		select {
		case got, ok := <-l.heard:
			if !ok || got != want {
				ts.Fatalf("%s received %q, want %q", args[0], got, want)
			}
		case <-time.After(patience):
			ts.Fatalf("%s received nothing, want %q", args[0], want)
		}
	}
}

// listenModern opens a subscription of revision 2026-07-28.
func (d *daemon) listenModern(params string) (*listener, error) {
	request, err := d.modernRequest("subscriptions/listen", params)
	if err != nil {
		return nil, err
	}
	l, err := d.listenTo(request)
	if err == nil {
		<-l.heard // the acknowledgement
	}
	return l, err
}

// listenLegacy starts a session of revision 2025-11-25 with subscriptions.
func (d *daemon) listenLegacy(uris []string) (*listener, error) {
	const accept = "application/json, text/event-stream"
	begun, err := d.tell(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"script","version":"1"}}}`, http.Header{"Accept": {accept}})
	if err != nil {
		return nil, err
	}
	session := http.Header{"Mcp-Session-Id": begun["Mcp-Session-Id"], "Mcp-Protocol-Version": {"2025-11-25"}}
	request, err := http.NewRequest(http.MethodGet, d.url+"/mcp", nil)
	if err != nil {
		return nil, err
	}
	request.Header = session.Clone()
	request.Header.Set("Accept", "text/event-stream")
	messages := []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`}
	for i, uri := range uris {
		messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":%q}}`, i+2, uri))
	}
	session.Set("Accept", accept)
	for _, message := range messages {
		if _, err := d.tell(message, session); err != nil {
			return nil, err
		}
	}
	return d.listenTo(request)
}

// tell posts one message to /mcp and returns the header of the response.
func (d *daemon) tell(message string, header http.Header) (http.Header, error) {
	request, err := http.NewRequest(http.MethodPost, d.url+"/mcp", strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode >= 300 || strings.Contains(string(body), `"error"`)) {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return response.Header, err
}

// listenTo opens an event stream and reads it until the listener stops.
func (d *daemon) listenTo(request *http.Request) (*listener, error) {
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return nil, fmt.Errorf("%s: %s", response.Status, body)
	}
	l := &listener{heard: make(chan string, 100), stop: func() { _ = response.Body.Close() }}
	go func() {
		defer close(l.heard)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			var message struct {
				Method string
				Params struct{ URI string }
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if ok && json.Unmarshal([]byte(data), &message) == nil && message.Method != "" {
				said := strings.TrimPrefix(message.Method, "notifications/") + " " + message.Params.URI
				l.heard <- strings.TrimSpace(said)
			}
		}
	}()
	return l, nil
}
