package engine_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// faulty are servers that fail in the same way, each at a path of its own. Those of even
// numbers fail from the first request on, the others do well until a tool is called.
type faulty struct {
	answer func(w http.ResponseWriter, r *http.Request, id string)

	mu    sync.Mutex
	tries map[string]int // how often a conversation has begun, by path
	tried *sync.Cond     // there is one more
}

func newFaulty(answer func(w http.ResponseWriter, r *http.Request, id string)) *faulty {
	f := &faulty{answer: answer, tries: map[string]int{}}
	f.tried = sync.NewCond(&f.mu)
	return f
}

// await waits until so many of them were tried so often.
func (f *faulty) await(often, many int) {
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

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	well(w, m, `[{"name":"work","inputSchema":{"type":"object"}}]`)
}

// message is what a client sends.
type message struct {
	ID     json.RawMessage
	Method string
}

func read(r *http.Request) (m message) {
	text, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(text, &m)
	return m
}

// well answers as a server of revision 2025-11-25 does that offers tools.
func well(w http.ResponseWriter, m message, tools string) {
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

func hangs(r *http.Request) { <-r.Context().Done() }

// streams begins an answer that is a stream.
func streams(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
}

// every writes something over and over, until the client has gone.
func every(w http.ResponseWriter, r *http.Request, pause time.Duration, text string) {
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

// answers are the ways in which servers fail that answer at all.
var answersThatFail = map[string]func(w http.ResponseWriter, r *http.Request, id string){
	"hang at headers": func(_ http.ResponseWriter, r *http.Request, _ string) { hangs(r) },
	"hang at body": func(w http.ResponseWriter, r *http.Request, _ string) {
		streams(w, "application/json")
		hangs(r)
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
		streams(w, "text/event-stream")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
		}
	},
	"slow drip": func(w http.ResponseWriter, r *http.Request, _ string) {
		streams(w, "text/event-stream")
		every(w, r, 200*time.Millisecond, "d")
	},
	"wrong ids": func(w http.ResponseWriter, _ *http.Request, id string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s0001,"result":{}}`, id)
	},
}

// restless is a server that lists another tool each time, and always says so.
type restless struct {
	mu    sync.Mutex
	lists int
}

func (c *restless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		streams(w, "text/event-stream")
		every(w, r, 100*time.Millisecond, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		return
	}
	m := read(r)
	c.mu.Lock()
	if m.Method == "tools/list" {
		c.lists++
	}
	tools := fmt.Sprintf(`[{"name":"work","description":"the %dth","inputSchema":{"type":"object"}},{"name":"work_%d","inputSchema":{"type":"object"}}]`, c.lists, c.lists)
	c.mu.Unlock()
	well(w, m, tools)
}

// crashing is the first argument by which the test's own binary is a program that ends when
// a tool is called.
const crashing = "crash at a call"

func crash() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.Method == "tools/call" {
			os.Exit(3)
		}
		answer := httptest.NewRecorder()
		if well(answer, m, `[{"name":"work","inputSchema":{"type":"object"}}]`); m.ID == nil {
			continue
		}
		text := answer.Body.String()
		if answer.Code != http.StatusOK {
			text = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		}
		fmt.Println(text)
	}
}

// refusing returns the URL of a host that refuses connections.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}

// deaf returns the URL of a host that takes connections and shakes no hands.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "https://" + l.Addr().String()
}

// expired returns the URL of a host whose certificate has expired.
func expired(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	said := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, said, said, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
