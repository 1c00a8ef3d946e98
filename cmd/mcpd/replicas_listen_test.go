//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// noteConfig connects each replica to its process of the upstream server. FLEET_REPLICA is the number of the
// replica.
const noteConfig = `
secret "replica" { env = "FLEET_REPLICA" }

upstream "notes" {
  url   = %q
  offer = ["resources"]
  header "X-Replica" { value = secret.replica }
}
`

const noteURI = "lab://note"

// notes is an upstream server with a process for each replica. It has one resource, the number of its last
// change; all processes serve it, and one of them reports a change.
type notes struct {
	*httptest.Server
	processes [3]*mcp.Server
	number    atomic.Int64
}

func newNotes(t *testing.T) *notes {
	n := &notes{}
	for i := range n.processes {
		n.processes[i] = mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, &mcp.ServerOptions{
			Logger:             slog.New(slog.DiscardHandler), // of replicas that were killed
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		})
		n.processes[i].AddResource(&mcp.Resource{URI: noteURI, Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: noteURI, Text: strconv.FormatInt(n.number.Load(), 10)}}}, nil
		})
	}
	n.Server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		i, err := strconv.Atoi(r.Header.Get("X-Replica"))
		if err != nil || i < 0 || i >= len(n.processes) {
			return nil
		}
		return n.processes[i]
	}, nil))
	t.Cleanup(func() {
		n.CloseClientConnections()
		n.Close()
	})
	return n
}

// A subscriber is a client that listens to the resource, and reads it after each notification. It subscribes
// again whenever its stream ends.
type subscriber struct {
	*fleetClient
	// at returns the server to use next; nil while there is none.
	at func() *daemon
	// read is the newest number that it has read after a notification. news has room for one item.
	read atomic.Int64
	news chan<- struct{}
}

// startSubscribers starts a subscriber at each replica and one behind the proxy. stop ends them.
func (f *fleet) startSubscribers(c *fleetClient) (all []*subscriber, news <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	heard := make(chan struct{}, 1)
	var running sync.WaitGroup
	for i := range len(f.replicas) + 1 {
		s := &subscriber{fleetClient: c, news: heard, at: func() *daemon { return &daemon{url: f.front.URL, client: c.streams} }}
		if i < len(f.replicas) {
			s.at = func() *daemon {
				d := c.direct()[i]
				if d != nil {
					d.client = c.streams
				}
				return d
			}
		}
		all = append(all, s)
		running.Go(func() {
			for ctx.Err() == nil {
				if d := s.at(); d != nil {
					s.end("subscription", short(s.listen(ctx, d)))
				}
				s.wait(ctx)
			}
		})
	}
	return all, heard, func() {
		cancel()
		running.Wait()
	}
}

// wait is the time between two attempts.
func (s *subscriber) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pollPause):
	}
}

// listen subscribes, and returns when the stream ends.
func (s *subscriber) listen(ctx context.Context, d *daemon) error {
	err := d.subscribe(ctx, fmt.Sprintf(`{"notifications":{"resourceSubscriptions":[%q]}}`, noteURI), func(n *notice) error {
		switch {
		case n.Method == "notifications/subscriptions/acknowledged" && !slices.Contains(n.Params.Notifications.ResourceSubscriptions, noteURI):
			return errNotSubscribed
		case n.Method == "notifications/resources/updated" && n.Params.URI == noteURI:
			return s.readNote(ctx, d)
		}
		return nil
	})
	if ctx.Err() != nil {
		return errors.New("the test ended it")
	}
	return err
}

// readNote reads the resource until it can.
func (s *subscriber) readNote(ctx context.Context, d *daemon) error {
	for ctx.Err() == nil {
		_, body, err := d.modern("resources/read", fmt.Sprintf(`{"uri":%q}`, noteURI))
		if err != nil {
			return err // the stream ends, too
		}
		var a struct {
			Result struct{ Contents []struct{ Text string } }
		}
		if json.Unmarshal(body, &a) == nil && len(a.Result.Contents) == 1 {
			n, err := strconv.ParseInt(a.Result.Contents[0].Text, 10, 64)
			if err != nil {
				s.problem("the resource is %q", body)
			}
			s.read.Store(max(s.read.Load(), n))
			select {
			case s.news <- struct{}{}:
			default:
			}
			return nil
		}
		s.wait(ctx)
	}
	return nil
}

// update changes the resource at the process of one replica until all subscribers have seen the change. The
// process reports it again because the replica may not have subscribed yet.
func (n *notes) update(f *fleet, process int, all []*subscriber, news <-chan struct{}) {
	f.Helper()
	number, deadline := n.number.Add(1), time.Now().Add(patience)
	for {
		if err := n.processes[process].ResourceUpdated(f.Context(), &mcp.ResourceUpdatedNotificationParams{URI: noteURI}); err != nil {
			f.Errorf("report a change: %v", err)
			return
		}
		again := time.After(100 * time.Millisecond)
		for waiting := true; waiting; {
			missing := slices.IndexFunc(all, func(s *subscriber) bool { return s.read.Load() < number })
			if missing < 0 {
				return
			}
			if time.Now().After(deadline) {
				f.Errorf("subscriber %d has not seen change %d of process %d after %v", missing, number, process, patience)
				return
			}
			select {
			case <-news:
			case <-again:
				waiting = false
			}
		}
	}
}

// followed is an act that runs a task, and listens to it at any replica. It asks for the task itself only at the
// end of the test.
func (c *fleetClient) followed(id string) error {
	started, err := sendTo(c.front, "tools/call", fmt.Sprintf(`{"name":"job","arguments":{"id":%q,"ask":%v}}`, id, c.rand.IntN(2) == 0))
	if err != nil {
		return err
	}
	if failure := started.failure(); failure != "" {
		return errors.New(failure)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.follow(ctx, started.Result.TaskID, id) }()
	select {
	case err = <-ended:
		return err
	case <-c.late:
	}
	name := fmt.Sprintf(`{"taskId":%q}`, started.Result.TaskID)
	for until := time.Now().Add(patience); ; time.Sleep(pollPause) {
		a, err := sendTo(c.front, "tasks/get", name)
		status := a.Result.Status
		if err != nil || a.Error != nil {
			status = "unknown"
		}
		if slices.Contains(taskEnds, status) {
			break
		}
		if status != "unknown" || time.Now().After(until) {
			cancel()
			<-ended
			return fmt.Errorf("%w: followed task %s of %s is %s: %v", errUndecided, started.Result.TaskID, id, status, err)
		}
	}
	select {
	case err = <-ended:
	case <-time.After(patience):
		cancel()
		err = <-ended
		c.problem("task %s of %s has ended, and no stream reports it", started.Result.TaskID, id)
	}
	return err
}

// taskEnds are the statuses of tasks that have ended.
var taskEnds = []string{"completed", "failed", "cancelled"}

// follow listens to a task until it ends, and answers it. When a stream ends, it opens another one.
func (c *fleetClient) follow(ctx context.Context, task, id string) error {
	name := fmt.Sprintf(`{"taskId":%q`, task)
	for ctx.Err() == nil {
		at := c.front
		if all := c.direct(); c.rand.IntN(2) == 0 {
			at = all[c.rand.IntN(len(all))]
		}
		if at == nil {
			c.pause()
			continue
		}
		end := error(nil)
		err := (&daemon{url: at.url, client: c.streams}).subscribe(ctx, fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, task), func(n *notice) error {
			switch {
			case n.Method == "notifications/subscriptions/acknowledged" && !slices.Contains(n.Params.Notifications.TaskIDs, task):
				return errNotSubscribed
			case n.Method != "notifications/tasks":
				return nil
			}
			a := fleetAnswer{Result: n.Params.fleetResult}
			switch status := a.Result.Status; {
			case status == "input_required":
				for key := range a.Result.InputRequests {
					c.respond(ctx, name, key)
				}
				return nil
			case !slices.Contains(taskEnds, status):
				return nil
			case status == "completed" && a.Result.Result != nil && !a.Result.Result.IsError:
				c.keep(id+"-before", id+"-after")
			default:
				if status == "failed" && a.Result.StatusMessage == "" && a.Result.Error == nil {
					c.problem("task %s of %s failed without a reason", task, id)
				}
				end = taskError(&a)
			}
			return errTaskEnded
		})
		if errors.Is(err, errTaskEnded) {
			return end
		}
		c.end("stream of a task", short(err))
		c.pause()
	}
	return errUndecided
}

// respond answers a task until a replica has the answer, or the task is gone.
func (c *fleetClient) respond(ctx context.Context, name, key string) {
	for ctx.Err() == nil {
		a, err := sendTo(c.front, "tasks/update", fmt.Sprintf(`%s,"inputResponses":{%q:{"action":"accept","content":{}}}}`, name, key))
		if err == nil && (a.Error == nil || strings.Contains(a.Error.Message, "no such task")) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var (
	errTaskEnded     = errors.New("the task has ended")
	errNotSubscribed = errors.New("the replica did not accept the subscription")
)

// notice is a notification of a stream.
type notice struct {
	Method string
	Params struct {
		URI           string
		Notifications struct {
			ResourceSubscriptions []string
			TaskIDs               []string `json:"taskIds"`
		}
		fleetResult
	}
}

// subscribe sends subscriptions/listen, and calls hear with each notification until it returns an error or the
// stream ends.
func (d *daemon) subscribe(ctx context.Context, params string, hear func(*notice) error) error {
	request, err := d.modernRequest("subscriptions/listen", params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := d.client.Do(request.WithContext(ctx))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var n notice
		if err := json.Unmarshal(data, &n); err != nil {
			return fmt.Errorf("read %q: %w", data, err)
		}
		if err := hear(&n); err != nil {
			return err
		}
	}
	return errors.New("the stream ended")
}
