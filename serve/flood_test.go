package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
	"github.com/mcpd/mcpd/serve"
)

// largeResult is the size of the result of the tool "large", in bytes.
const largeResult = 3 << 20

// victims is the number of the client's calls during an attack.
func victims() int {
	if testing.Short() {
		return 30
	}
	return 113
}

// attackers is the number of an attack's connections: few, or 10,000 with
// MCPD_LONG.
func attackers(few int) int {
	if os.Getenv("MCPD_LONG") != "" {
		return 10_000
	}
	return few
}

// flooded is a server under attack.
type flooded struct {
	*daemon
	t       *testing.T
	address string

	mu   sync.Mutex
	open []net.Conn // of the attack
}

// floodSite runs a server with two tools and auth blocks.
func floodSite(t *testing.T, auths string) *flooded {
	t.Helper()
	tools := fmt.Sprintf("tool \"small\" {\n  timeout = \"1m\"\n  run = \"return 1\"\n}\n\ntool \"large\" {\n  timeout = \"1m\"\n  run = \"return 'x'.repeat(1024).repeat(%d)\"\n}\n", largeResult/1024)
	s, err := engine.New(engine.Options{
		Name: "test", Logger: slog.New(slog.DiscardHandler), Front: serve.Checks{},
		Files: engine.Files{
			Tools:  fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}},
			Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(auths), Mode: 0o644}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	front := serve.New(s, serve.Options{Address: "127.0.0.1:0", Grace: time.Second, OnListen: func(a net.Addr) { listening <- a }})
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- front.Run(ctx) }()
	f := &flooded{t: t, daemon: &daemon{stop: stop, ended: ended}}
	select {
	case at := <-listening:
		f.address, f.url = at.String(), "http://"+at.String()
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.stop()
		stop()
		<-ended
	})
	return f
}

// dial opens a connection of the attack, from an address of the loopback
// network.
func (f *flooded) dial(from string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
	c, err := d.Dial("tcp", f.address)
	if err != nil {
		return nil // a rejected connection does no harm
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, c)
	return c
}

// stop ends the attack.
func (f *flooded) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.open {
		_ = c.Close()
	}
	f.open = nil
}

// attack opens n connections, 32 at a time.
func (f *flooded) attack(n int, one func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 32 {
		group.Go(func() {
			for i := range next {
				one(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

// begin sends a request with the first part of its body, and reads nothing.
func (f *flooded) begin(from, path, key string, length int, body []byte) {
	if c := f.dial(from); c != nil {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(c, f.head(path, key, length)); err == nil {
			_, _ = c.Write(body)
		}
	}
}

// ask pipelines requests on one connection, and reads nothing.
func (f *flooded) ask(from, path, key, body string) {
	if c := f.dial(from); c != nil {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, strings.Repeat(f.head(path, key, len(body))+body, asked))
	}
}

func (f *flooded) head(path, key string, length int) string {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", path, f.address, length)
	if key != "" {
		head += "X-Api-Key: " + key + "\r\n"
	}
	if path == "/mcp" {
		head += "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: large\r\n"
	}
	return head + "\r\n"
}

// checkVictim has a client call the tool over its own connections, and fails unless
// 99 % of the calls succeed. With MCPD_LONG it also compares their time with
// quiet.
func (f *flooded) checkVictim(tool, key string, quiet time.Duration) time.Duration {
	f.t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	var failed []string
	var times []time.Duration
	calls := victims()
	if tool == "large" {
		calls /= 5
	}
	for i := range calls {
		if i%4 == 0 {
			client.CloseIdleConnections()
		}
		started := time.Now()
		if problem := f.call(client, tool, key); problem != "" {
			failed = append(failed, problem)
		}
		times = append(times, time.Since(started))
	}
	slices.Sort(times)
	p99 := times[len(times)*99/100]
	if len(failed)*100 > calls {
		f.t.Errorf("%d of %d calls failed, the first with %s", len(failed), calls, failed[0])
	}
	if quiet > 0 {
		f.t.Logf("p99 of %s: %s quiet, %s under attack", tool, quiet, p99)
		if os.Getenv("MCPD_LONG") != "" && p99 > 2*quiet+5*time.Millisecond {
			f.t.Errorf("p99 %s, without the attack %s", p99, quiet)
		}
	}
	return p99
}

// call calls the tool, and returns its error.
func (f *flooded) call(client *http.Client, tool, key string) string {
	r, err := http.NewRequest(http.MethodPost, f.url+"/mcp/execute", strings.NewReader(`{"tool":"`+tool+`"}`))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	answer, err := client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	if answer.StatusCode != http.StatusOK || tool == "large" && len(text) < largeResult {
		return fmt.Sprintf("%d %.200s", answer.StatusCode, text)
	}
	return ""
}

// scene is an attacker and a victim.
type scene struct {
	name     string
	auths    string
	from     []string // the addresses of the attack; the victim is at 127.0.0.1
	attacker string   // the key of the attack
	victim   string   // the key of the victim
	usual    bool     // also without MCPD_LONG
}

// scenes returns all scenes; none may affect the victim.
func scenes(t *testing.T) []scene {
	keys, path := validKeys(t, "ann", "mallory")
	demanded := fmt.Sprintf("auth \"api_key\" \"people\" {\n  file = %q\n}\n", path)
	many := []string{}
	for i := 2; i < 66; i++ {
		many = append(many, fmt.Sprintf("127.0.0.%d", i))
	}
	here, there := []string{"127.0.0.1"}, []string{"127.0.0.2"}
	all := []scene{
		{name: "other principal at the same address", auths: demanded, from: here, attacker: keys["mallory"], victim: keys["ann"], usual: true},
		{name: "unknown key at the same address", auths: demanded, from: here, attacker: unknownKey(), victim: keys["ann"]},
		{name: "no credential at the same address", auths: demanded + "auth \"anonymous\" \"all\" {}\n", from: here, victim: keys["ann"]},
	}
	if runtime.GOOS == "linux" { // elsewhere the loopback network has one address
		all = append(all,
			scene{name: "other address", from: there, usual: true},
			scene{name: "64 other addresses", from: many, usual: true},
			scene{name: "principal at another address", auths: demanded, from: there, attacker: keys["mallory"], victim: keys["ann"]},
		)
	}
	return all
}

// usual returns the scenes to run: all with MCPD_LONG, one with -short.
func usual(t *testing.T) []scene {
	all := scenes(t)
	if os.Getenv("MCPD_LONG") == "" {
		all = slices.DeleteFunc(all, func(s scene) bool { return !s.usual })
	}
	if testing.Short() {
		all = all[:1]
	}
	return all
}

// TestFlood_unfinishedBodies holds bodies of 4 MiB open without their last
// byte, and then ever smaller ones.
func TestFlood_unfinishedBodies(t *testing.T) {
	for _, s := range usual(t) {
		t.Run(s.name, func(t *testing.T) {
			if os.Getenv("MCPD_LONG") == "" { // 10,000 connections need most of the usual limit of open files
				t.Parallel() // mostly waits for the attackers
			}
			f := floodSite(t, s.auths)
			quiet := f.checkVictim("small", s.victim, 0)
			body := bytes.Repeat([]byte(" "), 4<<20)
			send := func(i, length int) {
				f.begin(s.from[i%len(s.from)], "/mcp/execute", s.attacker, length, body[:length-1])
			}
			f.attack(attackers(63), func(i int) { send(i, len(body)) })
			for i := range 3 * 20 { // one after another, to fill the remaining budget
				send(i, len(body)>>(i/3))
			}
			f.checkVictim("small", s.victim, quiet)
			f.checkVictim("large", s.victim, 0)
		})
	}
}

// TestFlood_idleConnections holds connections open with nothing or half a
// header.
func TestFlood_idleConnections(t *testing.T) {
	for _, s := range usual(t) {
		t.Run(s.name, func(t *testing.T) {
			f := floodSite(t, s.auths)
			quiet := f.checkVictim("small", s.victim, 0)
			f.attack(attackers(1100), func(i int) {
				if c := f.dial(s.from[i%len(s.from)]); c != nil && i%2 == 0 {
					_, _ = io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: "+f.address+"\r\n")
				}
			})
			f.checkVictim("small", s.victim, quiet)
		})
	}
}

// TestFlood_openStreams opens HTTP+SSE streams, which count as in use.
func TestFlood_openStreams(t *testing.T) {
	for _, s := range usual(t) {
		t.Run(s.name, func(t *testing.T) {
			f := floodSite(t, s.auths)
			quiet := f.checkVictim("small", s.victim, 0)
			f.attack(attackers(1600), func(i int) {
				c := f.dial(s.from[i%len(s.from)])
				if c == nil {
					return
				}
				head := "GET /sse HTTP/1.1\r\nHost: " + f.address + "\r\nAccept: text/event-stream\r\n"
				if s.attacker != "" {
					head += "X-Api-Key: " + s.attacker + "\r\n"
				}
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				_, _ = io.WriteString(c, head+"\r\n")
				_, _ = bufio.NewReader(c).ReadString('\n') // the status
			})
			f.checkVictim("small", s.victim, quiet)
		})
	}
}

// unread are the ways to request large results without reading them. Each
// connection requests several, because the first may fit into the buffers of
// the system.
var unread = map[string]func(f *flooded, from, key string){
	"rest": func(f *flooded, from, key string) {
		f.ask(from, "/mcp/execute", key, `{"tool":"large"}`)
	},
	"streamable": func(f *flooded, from, key string) {
		f.ask(from, "/mcp", key, request(metaModern, oneCall{"large", "{}"}))
	},
	"sse": func(f *flooded, from, key string) {
		stream := f.dial(from)
		if stream == nil {
			return
		}
		_ = stream.SetDeadline(time.Now().Add(time.Minute))
		head := "GET /sse HTTP/1.1\r\nHost: " + f.address + "\r\nAccept: text/event-stream\r\n"
		if key != "" {
			head += "X-Api-Key: " + key + "\r\n"
		}
		_, _ = io.WriteString(stream, head+"\r\n")
		endpoint, lines := "", bufio.NewReaderSize(stream, 512)
		if status, _ := lines.ReadString('\n'); !strings.Contains(status, " 200 ") {
			return
		}
		for endpoint == "" {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			endpoint, _ = strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !strings.HasPrefix(endpoint, "/") {
				endpoint = ""
			}
		}
		f.ask(from, endpoint, key, request(metaModern, oneCall{"large", "{}"}))
	},
	"websocket": func(f *flooded, from, key string) {
		dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) {
			if c := f.dial(from); c != nil {
				return c, nil
			}
			return nil, net.ErrClosed
		}}
		header := http.Header{}
		if key != "" {
			header.Set("X-Api-Key", key)
		}
		socket, _, err := dialer.Dial("ws://"+f.address+"/ws", header)
		if err != nil {
			return
		}
		for i := range asked {
			text := strings.Replace(request(metaModern, oneCall{"large", "{}"}), `"id":1`, fmt.Sprintf(`"id":%d`, i), 1)
			_ = socket.WriteMessage(websocket.TextMessage, []byte(text))
		}
	},
}

// asked is the number of large results per connection.
const asked = 3

// TestFlood_unreadAnswers requests large results and reads none. The victim
// reads equally large ones, and the memory of the server stays within its
// limit.
func TestFlood_unreadAnswers(t *testing.T) {
	all, few := usual(t), 40
	if os.Getenv("MCPD_LONG") == "" {
		all = all[:1]
	}
	if testing.Short() {
		few = 12 // the race detector needs no full budget
	}
	for transport, ask := range unread {
		for _, s := range all {
			t.Run(transport+"/"+s.name, func(t *testing.T) {
				f := floodSite(t, s.auths)
				f.checkVictim("small", s.victim, 0)
				before := heldBytes()
				f.attack(min(attackers(few), 900), func(i int) { ask(f, s.from[i%len(s.from)], s.attacker) })
				// Running calls hold more until their responses have budget. The heap
				// includes the attacker's.
				for running := true; running; {
					f.checkVictim("small", s.victim, 0)
					running = callsRunning()
					held := max(heldBytes(), before) - before
					if t.Logf("%d MiB in use", held>>20); held <= httpguard.DefaultBudget {
						break
					} else if !running {
						t.Errorf("%d MiB in use without a running call", held>>20)
					}
				}
				f.checkVictim("large", s.victim, 0)
			})
		}
	}
}

// heldBytes returns the size of live memory.
func heldBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// callsRunning reports whether a call is running, or a goroutine of the server
// works on its response. Goroutines that wait for a client do not count.
func callsRunning() bool {
	stacks := make([]byte, 64<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		state, calls, _ := bytes.Cut(stack, []byte("\n"))
		waits := bytes.Contains(state, []byte("[IO wait")) || bytes.Contains(state, []byte("[select")) || bytes.Contains(state, []byte("[chan receive")) || bytes.Contains(state, []byte("[sync.Cond.Wait"))
		if bytes.Contains(calls, []byte("engine.(*Server).Execute")) || !waits && bytes.Contains(calls, []byte("mcpd/internal/protocol/")) {
			return true
		}
	}
	return false
}
