package engine_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// faultyServers is a set of servers with the same fault, each at its own path. Even ones fail at the first
// request, odd ones at the first tool call.
type faultyServers struct {
	answer func(w http.ResponseWriter, r *http.Request, id string)

	mu    sync.Mutex
	tries map[string]int // number of sessions, by path
	tried *sync.Cond     // signals a new session
}

func newFaultyServers(answer func(w http.ResponseWriter, r *http.Request, id string)) *faultyServers {
	f := &faultyServers{answer: answer, tries: map[string]int{}}
	f.tried = sync.NewCond(&f.mu)
	return f
}

// await waits until many servers have had often sessions each.
func (f *faultyServers) await(often, many int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		found := 0
		for _, n := range f.tries {
			if n >= often {
				found++
			}
		}
		if found >= many {
			return
		}
		f.tried.Wait()
	}
}

func (f *faultyServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := read(r)
	late := strings.HasSuffix(r.URL.Path, "/late")
	if m.Method == "server/discover" {
		f.mu.Lock()
		f.tries[r.URL.Path]++
		f.tried.Broadcast()
		f.mu.Unlock()
	}
	if !late || m.Method == "tools/call" {
		f.answer(w, r, string(m.ID))
		return
	}
	respondHealthy(w, m, `[{"name":"work","inputSchema":{"type":"object"}}]`)
}

// message is a request of a client.
type message struct {
	ID     json.RawMessage
	Method string
}

func read(r *http.Request) (m message) {
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &m)
	return m
}

// respondHealthy responds like a server of revision 2025-11-25 with tools.
func respondHealthy(w http.ResponseWriter, m message, tools string) {
	result := ""
	switch {
	case m.Method == "" || m.Method == "server/discover":
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"faulty","version":"1"}}`
	case m.Method == "tools/list":
		result = `{"tools":` + tools + `}`
	default:
		result = `{"content":[]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func hangRequest(r *http.Request) { <-r.Context().Done() }

// startStream starts a streamed response.
func startStream(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
}

// writeRepeatedly writes a text repeatedly, until the client disconnects.
func writeRepeatedly(w http.ResponseWriter, r *http.Request, pause time.Duration, text string) {
	for tick := time.NewTicker(pause); ; {
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// answersThatFail are the faults of servers that respond.
var answersThatFail = map[string]func(w http.ResponseWriter, r *http.Request, id string){
	"hang at headers": func(_ http.ResponseWriter, r *http.Request, _ string) { hangRequest(r) },
	"hang at body": func(w http.ResponseWriter, r *http.Request, _ string) {
		startStream(w, "application/json")
		hangRequest(r)
	},
	"reset": func(w http.ResponseWriter, _ *http.Request, _ string) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	},
	"500": func(w http.ResponseWriter, _ *http.Request, _ string) {
		http.Error(w, "oops", http.StatusInternalServerError)
	},
	"garbage": func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, "<html>") },
	"endless SSE": func(w http.ResponseWriter, r *http.Request, _ string) {
		startStream(w, "text/event-stream")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
		}
	},
	"slow drip": func(w http.ResponseWriter, r *http.Request, _ string) {
		startStream(w, "text/event-stream")
		writeRepeatedly(w, r, 200*time.Millisecond, "d")
	},
	"wrong ids": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s0001,"result":{}}`, id)
	},
}

// changingServers is a set of servers, each at its own path, that list another tool each time and always
// send a change notification.
type changingServers struct {
	mu    sync.Mutex
	lists map[string]int
}

func (c *changingServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		startStream(w, "text/event-stream")
		writeRepeatedly(w, r, 100*time.Millisecond, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		return
	}
	m := read(r)
	c.mu.Lock()
	if m.Method == "tools/list" {
		c.lists[r.URL.Path]++
	}
	n := c.lists[r.URL.Path]
	c.mu.Unlock()
	tools := fmt.Sprintf(`[{"name":"work","description":"the %dth","inputSchema":{"type":"object"}},{"name":"work_%d","inputSchema":{"type":"object"}}]`, n, n)
	respondHealthy(w, m, tools)
}

// Arguments that make the test binary a server on stdio: one that crashes at a tool call, and one
// that does not.
const (
	crashing = "crash at a call"
	steady   = "answer a call"
)

func crash() { serveStdio(true) }

func serveStdio(fragile bool) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil || fragile && m.Method == "tools/call" {
			os.Exit(3)
		}
		answer := httptest.NewRecorder()
		if respondHealthy(answer, m, `[{"name":"work","inputSchema":{"type":"object"}}]`); m.ID == nil {
			continue
		}
		text := answer.Body.String()
		if answer.Code != http.StatusOK {
			text = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		}
		fmt.Println(text)
	}
}

// Arguments that make the test binary a set of hosts. They are separate processes, so that their
// cost is not measured.
const (
	hostsFail  = "hosts that fail"
	hostsDo    = "the same hosts, doing well"
	hostOfLabs = "a host of the official SDK"
)

// everyMode is the host that reports on all faulty hosts.
const everyMode = "all"

// failing are the faulty hosts, by fault.
type failing map[string]*faultyServers

// serveFaultyHosts serves until stdin is closed, and prints the URL of each host.
func serveFaultyHosts() {
	modes := failing{}
	hosts := map[string]string{
		"hang at connect": silentHost(), "expired certificate": expiredCertHost().URL,
		"changed definitions": serveHost(&changingServers{lists: map[string]int{}}), everyMode: serveHost(modes),
	}
	for mode, answer := range answersThatFail {
		modes[mode] = newFaultyServers(answer)
		hosts[mode] = serveHost(modes[mode])
	}
	hosts["refuse"] = refusingHost() // last, as another host would get its port
	printHosts(hosts)
}

// serveHealthyHosts is serveFaultyHosts with healthy hosts.
func serveHealthyHosts() {
	url := serveHost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respondHealthy(w, read(r), `[{"name":"work","inputSchema":{"type":"object"}}]`)
	}))
	hosts := map[string]string{"refuse": url, "hang at connect": url, "expired certificate": url, "changed definitions": url}
	for mode := range answersThatFail {
		hosts[mode] = url
	}
	printHosts(hosts)
}

// serveTestUpstream is serveFaultyHosts for [newTestUpstream].
func serveTestUpstream() {
	one := newTestUpstream()
	printHosts(map[string]string{"lab": serveHost(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, &mcp.StreamableHTTPOptions{Stateless: true}))})
}

func printHosts(hosts map[string]string) {
	_ = json.NewEncoder(os.Stdout).Encode(hosts)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// ServeHTTP returns the sessions of each host, after many of each mode have had enough sessions.
func (f failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var often, many int
	_, _ = fmt.Sscanf(r.URL.Path, "/%d/%d", &often, &many)
	tries := map[string]map[string]int{}
	for mode, m := range f {
		m.await(often, many)
		m.mu.Lock()
		tries[mode] = maps.Clone(m.tries)
		m.mu.Unlock()
	}
	_ = json.NewEncoder(w).Encode(tries)
}

// tried returns the sessions of each host of each mode, after many of each have had often sessions.
func tried(t *testing.T, hosts map[string]string, often, many int) (tries map[string]map[string]int) {
	t.Helper()
	r, err := http.Get(fmt.Sprintf("%s/%d/%d", hosts[everyMode], often, many))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&tries); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return tries
}

// startHosts runs the test binary as hosts until the test ends, and returns their URLs.
func startHosts(t *testing.T, kind string) (hosts map[string]string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(self, kind)
	program.Stderr = os.Stderr
	in, inErr := program.StdinPipe()
	out, outErr := program.StdoutPipe()
	if err := errors.Join(inErr, outErr, program.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := program.Wait(); err != nil {
			t.Error(err)
		}
	})
	if err := json.NewDecoder(out).Decode(&hosts); err != nil {
		t.Fatal(err)
	}
	return hosts
}

// serveHost returns the URL of a host, which runs until the process ends.
func serveHost(h http.Handler) (url string) { return httptest.NewServer(h).URL }

// newListener returns a listener, which is open until the process ends.
func newListener() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return l
}

// refusingHost returns the URL of a host that refuses connections.
func refusingHost() string {
	l := newListener()
	_ = l.Close()
	return "http://" + l.Addr().String()
}

// silentHost returns the URL of a host that accepts connections without a handshake.
func silentHost() string {
	l := newListener()
	go func() { // unreferenced listeners and connections are closed
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	return "https://" + l.Addr().String()
}

// expiredCertHost returns a host with an expired certificate.
func expiredCertHost() *httptest.Server {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	said := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, said, said, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	s.StartTLS()
	return s
}
