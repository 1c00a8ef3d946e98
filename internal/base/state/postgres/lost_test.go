package postgres

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
)

// lossyLink forwards connections to the database, and loses one of them when it is armed.
type lossyLink struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu sync.Mutex
	// losing is what happens to the next request.
	losing loss
	away   bool
	conns  map[net.Conn]bool
}

type loss int

const (
	lossNone loss = iota
	lossOfRequest
	lossOfResponse
	// lossOfAll is lossOfResponse, and the database is away from then on.
	lossOfAll
)

// newLossyLink returns a link and the URL of the database behind it, for one connection at a time.
func newLossyLink(t *testing.T, database string) (*lossyLink, string) {
	t.Helper()
	u, err := url.Parse(database)
	check(t, err)
	l := &lossyLink{target: u.Host, conns: map[net.Conn]bool{}}
	l.listener, err = net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	l.running.Go(func() {
		for {
			c, err := l.listener.Accept()
			if err != nil {
				return
			}
			l.running.Go(func() { l.forward(c) })
		}
	})
	t.Cleanup(func() {
		l.listener.Close()
		l.setAway(true)
		l.running.Wait()
	})
	u.Host = l.listener.Addr().String()
	options := u.Query()
	options.Set("pool_max_conns", "1")
	u.RawQuery = options.Encode()
	return l, u.String()
}

// lose loses the next request, or its response.
func (l *lossyLink) lose(what loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.losing = what
}

// setAway ends all connections and refuses others, or accepts them again.
func (l *lossyLink) setAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
	for c := range l.conns {
		c.Close()
	}
}

// next returns what happens to a request.
func (l *lossyLink) next() loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.losing
	l.losing = lossNone
	return now
}

func (l *lossyLink) forward(client net.Conn) {
	defer client.Close()
	l.mu.Lock()
	away := l.away
	l.conns[client] = true
	l.mu.Unlock()
	server, err := net.Dial("tcp", l.target)
	if away || err != nil {
		return
	}
	defer server.Close()
	lost := make(chan struct{}) // closed when responses are dropped
	var dropped sync.Once
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil {
				return
			}
			select {
			case <-lost:
				return // the request has been executed
			default:
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			break
		}
		what := l.next()
		if what == lossOfRequest {
			break
		}
		if what != lossNone {
			dropped.Do(func() { close(lost) })
		}
		if what == lossOfAll {
			l.mu.Lock()
			l.away = true
			l.mu.Unlock()
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			break
		}
	}
	server.Close()
	<-done
}

// suspended returns a task of a replica that waits for answers, and whose statements are prepared.
func suspended(t *testing.T, s *store) state.Task {
	t.Helper()
	task, err := s.CreateTask(state.Task{Owner: ann, TTL: time.Hour})
	check(t, err)
	task, err = s.UpdateTask(ann, task.ID, ask)
	check(t, err)
	return task
}

// A lost connection during a commit does not make a change of a task uncertain: the store reads the
// task again.
func TestUpdateTask_connectionLostDuringCommit(t *testing.T) {
	for name, lost := range map[string]struct {
		what    loss
		changes int
	}{"request": {lossOfRequest, 2}, "response": {lossOfResponse, 1}} {
		t.Run(name, func(t *testing.T) {
			link, behind := newLossyLink(t, newURL(t))
			a := opened(t, state.Database{URL: behind}, state.Options{}, hooks{frozen: true, noListen: true, noPoll: true})
			task := suspended(t, a)
			changes := 0
			got, err := a.UpdateTask(ann, task.ID, func(task *state.Task) error {
				if changes++; changes == 1 {
					link.lose(lost.what)
				}
				return resume(task)
			})
			if err != nil || got.Status != state.Working || changes != lost.changes {
				t.Errorf("%s after %d changes, %v", got.Status, changes, err)
			}
			if got, err := a.UpdateTask(ann, task.ID, finish); err != nil || got.Status != state.Completed {
				t.Errorf("the end of the task: %s, %v", got.Status, err)
			}
			check(t, a.beat())
			if got, err := a.Task(ann, task.ID); err != nil || got.Status != state.Completed {
				t.Errorf("later: %s, %v", got.Status, err)
			}
			wantUsage(t, a)
		})
	}
}

// A task that was started by a commit whose result did not arrive runs nowhere, and fails.
func TestUpdateTask_failsUnstarted(t *testing.T) {
	database := newURL(t)
	link, behind := newLossyLink(t, database)
	a := opened(t, state.Database{URL: behind}, state.Options{}, hooks{frozen: true, noListen: true, noPoll: true})
	b := opened(t, state.Database{URL: database}, state.Options{}, hooks{frozen: true})
	task := suspended(t, a)
	if _, err := a.UpdateTask(ann, task.ID, func(task *state.Task) error {
		link.lose(lossOfAll)
		return resume(task)
	}); err == nil {
		t.Error("no error without a database")
	}
	link.setAway(false)
	check(t, a.beat())
	if got, err := b.Task(ann, task.ID); err != nil || got.Status != state.Failed || got.Message == "" {
		t.Errorf("the task is %s, %q, %v", got.Status, got.Message, err)
	}
	wantUsage(t, b)
}
