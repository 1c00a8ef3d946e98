//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
)

// fleetConfig is the mcpd.hcl of all replicas. The environment of each has its database.
const fleetConfig = `
server { name = "fleet" }

state {
  url = secret.database
  key = secret.state_key
  replica { listen = "127.0.0.1:0" }
}

secret "database" { env = "FLEET_DATABASE" }
secret "state_key" { env = "FLEET_KEY" }
`

// A fleet has three replicas with their state in one database. Clients reach them through a
// round-robin proxy, and each replica reaches the database through a link.
type fleet struct {
	*testing.T
	program, dir string
	database     *postgrestest.Server
	replicas     [3]*replica
	front        *httptest.Server
	turn         atomic.Uint64
	// whileAway is called while the database is away; nil for nothing. limits notes its crashes.
	whileAway func()
	limits    *limitWitness
}

// replica is a place in the fleet. Its processes come and go.
type replica struct {
	fleet *fleet
	name  string
	dir   string // of the files
	link  *databaseLink
	env   []string
	// url is the address of the running process; nil takes the replica out of the rotation.
	url atomic.Pointer[url.URL]
	// daemon is the running process. Only the goroutine of the test uses it.
	daemon *daemon
	// logs are the logs of earlier processes.
	logs []string
}

// newFleet starts three replicas that serve the tools in a file. config is what mcpd.hcl has in addition.
func newFleet(t *testing.T, tools string, config ...string) *fleet {
	t.Helper()
	f := newStoppedFleet(t, tools, config...)
	for _, r := range f.replicas {
		r.start()
	}
	return f
}

// newStoppedFleet returns a fleet whose replicas are not started.
func newStoppedFleet(t *testing.T, tools string, config ...string) *fleet {
	t.Helper()
	f := &fleet{T: t, program: buildDaemon(t), dir: t.TempDir(), database: postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))}
	if slower > 1 {
		// With the race detector, this binary is the mcpd that reports races.
		var err error
		if f.program, err = exec.LookPath("mcpd"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(f.dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"mcpd.hcl": fleetConfig + strings.Join(config, ""), "tools.d/fleet.hcl": tools} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range f.replicas {
		r := &replica{fleet: f, dir: f.dir, name: fmt.Sprintf("replica %d", i), link: newDatabaseLink(t, "127.0.0.1:"+f.database.Port)}
		database, err := url.Parse(f.database.URL("postgres", "sslmode=disable"))
		if err != nil {
			t.Fatal(err)
		}
		database.Host = r.link.listener.Addr().String()
		r.env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "FLEET_DATABASE="+database.String(), "FLEET_KEY=0123456789abcdef0123456789abcdef",
			fmt.Sprintf("FLEET_REPLICA=%d", i))
		f.replicas[i] = r
		t.Cleanup(func() { r.daemon.kill() })
	}
	f.front = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(f.next()) },
		Transport:    &http.Transport{DisableKeepAlives: true}, // a server that stops waits 5 s for connections without a request
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(f.front.Close)
	return f
}

// next returns the address of the next replica in the rotation.
func (f *fleet) next() *url.URL {
	for range f.replicas {
		if u := f.replicas[f.turn.Add(1)%uint64(len(f.replicas))].url.Load(); u != nil {
			return u
		}
	}
	return &url.URL{Scheme: "http", Host: "127.0.0.1:1"} // refuses connections
}

// after returns the replica after another one.
func (f *fleet) after(r *replica) *replica {
	return f.replicas[(slices.Index(f.replicas[:], r)+1)%len(f.replicas)]
}

// start starts a process of the replica, and puts it into the rotation. Like a service manager, it
// starts a process again that could not reach the database in time.
func (r *replica) start() {
	r.fleet.Helper()
	var d *daemon
	var err error
	for tries := 0; ; tries++ {
		d, err = startDaemon(r.fleet.program, r.dir, r.env, []string{"--grace", "3s"})
		if err == nil || tries == 3 || !strings.Contains(err.Error(), "open the state store") {
			break
		}
	}
	if err != nil {
		r.fleet.Fatalf("start %s: %v", r.name, err)
	}
	address, err := url.Parse(d.url)
	if err != nil {
		r.fleet.Fatal(err)
	}
	r.daemon = d
	r.url.Store(address)
}

// endOfLog matches no line.
var endOfLog = regexp.MustCompile(`a^`)

// stop ends the process by a signal, and takes the replica out of the rotation. It reports a
// process that had already ended, or that does not end cleanly. A call that waits for another
// replica may outlive the grace period.
func (r *replica) stop(signal syscall.Signal) {
	r.fleet.Helper()
	r.daemon.mu.Lock()
	ended := r.daemon.ended
	r.daemon.mu.Unlock()
	r.url.Store(nil)
	if ended {
		r.fleet.Errorf("%s exited by itself; its log:\n%s", r.name, strings.Join(r.daemon.lines, "\n"))
	}
	_ = r.daemon.cmd.Process.Signal(signal) // ended is reported above
	_, _ = r.daemon.waitFor(endOfLog)
	err := r.daemon.cmd.Wait()
	late := slices.ContainsFunc(r.daemon.lines, func(line string) bool { return strings.Contains(line, "the grace period of") })
	if signal != syscall.SIGKILL && !ended && err != nil && !late {
		r.fleet.Errorf("%s exited with %v; its log:\n%s", r.name, err, strings.Join(r.daemon.lines, "\n"))
	}
	r.logs = append(r.logs, r.daemon.lines...)
}

func (r *replica) signal(s syscall.Signal) {
	if err := r.daemon.cmd.Process.Signal(s); err != nil {
		r.fleet.Error(err)
	}
}

// defects are the lines that a process logs only because of a defect.
var defects = regexp.MustCompile(`DATA RACE|panic|fatal error|^goroutine \d`)

// stopAll stops all processes, and reports defects in their logs.
func (f *fleet) stopAll() {
	f.Helper()
	for _, r := range f.replicas {
		r.stop(syscall.SIGTERM)
		if first := slices.IndexFunc(r.logs, defects.MatchString); first >= 0 {
			f.Errorf("the log of %s: %s", r.name, strings.Join(r.logs[first:min(first+40, len(r.logs))], "\n"))
		}
	}
}

// logCounts returns how often each message is in the logs.
func (f *fleet) logCounts() string {
	message := regexp.MustCompile(`level=(WARN|ERROR) .*?msg=("[^"]*"|\S+)`)
	counts := map[string]int{}
	for _, r := range f.replicas {
		for _, line := range r.logs {
			if found := message.FindStringSubmatch(line); found != nil {
				counts[found[1]+" "+found[2]]++
			}
		}
	}
	var lines []string
	for text, n := range counts {
		lines = append(lines, fmt.Sprintf("%d × %s", n, text))
	}
	slices.SortFunc(lines, cmp.Compare[string])
	return strings.Join(lines, "\n")
}

// databaseLink forwards connections to the database. It can be cut, and it can hold what
// travels, as a network does that drops packets: all of it arrives after the partition.
type databaseLink struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	broken bool
	conns  map[net.Conn]bool
	// flow is closed while the link forwards.
	flow chan struct{}
}

func newDatabaseLink(t *testing.T, target string) *databaseLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &databaseLink{listener: listener, target: target, conns: map[net.Conn]bool{}, flow: make(chan struct{})}
	close(l.flow)
	l.running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			l.running.Go(func() { l.forward(from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		l.running.Wait()
	})
	return l
}

// cut ends all connections, and refuses further ones until the link is restored.
func (l *databaseLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	for c := range l.conns {
		_ = c.Close()
	}
}

// hold stops the flow until the link is restored.
func (l *databaseLink) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow = make(chan struct{})
}

func (l *databaseLink) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
	select {
	case <-l.flow:
	default:
		close(l.flow)
	}
}

// pass waits until the link forwards.
func (l *databaseLink) pass() {
	l.mu.Lock()
	flow := l.flow
	l.mu.Unlock()
	<-flow
}

// add reports whether a connection may exist.
func (l *databaseLink) add(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

// drop closes and forgets a connection.
func (l *databaseLink) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = c.Close()
	delete(l.conns, c)
}

func (l *databaseLink) forward(from net.Conn) {
	if !l.add(from) {
		return
	}
	defer l.drop(from)
	l.pass()
	to, err := net.Dial("tcp", l.target)
	if err != nil || !l.add(to) {
		return
	}
	defer l.drop(to)
	back := make(chan struct{})
	go func() {
		defer close(back)
		l.copy(from, to)
	}()
	l.copy(to, from)
	<-back
}

// copy copies until either end closes, and then closes both. What was read before is written.
func (l *databaseLink) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.pass()
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}
