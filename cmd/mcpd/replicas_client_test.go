//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// fleetTools are the tools that the clients call. Each effect is a request to the witness.
const fleetTools = `
tool "effect" {
  timeout = "30s"
  input "id" { type = string }
  allow {
    http "witness" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = "await http.witness.post('http://%[1]s/' + input.id); return input.id;"
}

tool "asks" {
  timeout     = "30s"
  ask_timeout = "2m"
  input "id" { type = string }
  allow {
    ask { elicit = true }
    http "witness" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    await http.witness.post("http://%[1]s/" + input.id + "-before");
    await elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
    await http.witness.post("http://%[1]s/" + input.id + "-after");
    return input.id;
  JS
}

tool "approved" {
  timeout     = "30s"
  ask_timeout = "2m"
  input "id" { type = string }
  allow {
    http "witness" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = "await http.witness.post('http://%[1]s/' + input.id + '-after'); return input.id;"
}

policy "needs_approval" {
  tools             = ["approved"]
  requires_approval = "true"
  reason            = "It has an effect"
}

tool "job" {
  timeout     = "30s"
  ask_timeout = "1m"
  task        = "required"
  task_ttl    = "90s"
  input "id" { type = string }
  input "ask" { type = bool }
  allow {
    ask { elicit = true }
    http "witness" {
      hosts            = [%[1]q]
      methods          = ["POST"]
      private_networks = true
    }
  }
  run = <<JS
    await http.witness.post("http://%[1]s/" + input.id + "-before");
    if (input.ask) await elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
    await http.witness.post("http://%[1]s/" + input.id + "-after");
    return input.id;
  JS
}

tool "count" {
  timeout = "30s"
  input "by" { type = integer }
  allow {
    kv "counters" { scope = "server" }
  }
  run = "return await kv.counters.incr('all', input.by);"
}
`

// witness counts effects.
type witness struct {
	*httptest.Server

	mu      sync.Mutex
	effects map[string]int
}

func newWitness() *witness {
	w := &witness{effects: map[string]int{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects[strings.TrimPrefix(r.URL.Path, "/")]++
	}))
	return w
}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.effects)
}

// promises records what clients received.
type promises struct {
	mu sync.Mutex
	// kept are the effects of calls with a result.
	kept map[string]bool
	// numbers are the results of count, and tried is the number of its calls.
	numbers map[string]string
	tried   int
	// ends counts how acts ended.
	ends     map[string]int
	problems []string
}

func (p *promises) problem(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

func (p *promises) end(act, how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends[act+": "+how]++
}

func (p *promises) keep(effects ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range effects {
		p.kept[id] = true
	}
}

// fleetClient is a client of the fleet, with one act at a time.
type fleetClient struct {
	*promises
	name  string
	rand  *rand.Rand
	front *daemon
	// streams has no timeout.
	streams *http.Client
	// direct returns the replicas themselves, without the proxy; nil for one that does not run.
	direct func() []*daemon
	// over is closed when acts need not be repeated until they succeed. late is closed when those
	// that have started must have ended.
	over, late <-chan struct{}
	acts       int
	// limited is the act of clients that share a limit; nil for others.
	limited func(id string) error
	// session is the session of 2025-11-25; empty before it is open.
	session string
}

// fleetAnswer is a response of any method.
type fleetAnswer struct {
	Result fleetResult
	Error  *struct{ Message string }
}

// fleetResult is a result of any method, and the parameters of a notification of a task.
type fleetResult struct {
	ResultType    string
	RequestState  string
	InputRequests map[string]json.RawMessage
	Content       []struct{ Text string }
	IsError       bool
	TaskID        string `json:"taskId"`
	Status        string
	StatusMessage string
	Result        *struct {
		Content []struct{ Text string }
		IsError bool
	}
	Error *struct{ Message string }
}

// errUndecided is the error of an act that the end of the test stopped.
var errUndecided = errors.New("undecided")

// sendTo sends one request. The error is that of the way to the replica.
func sendTo(d *daemon, method, params string) (a fleetAnswer, err error) {
	status, body, err := d.modern(method, params)
	if err != nil {
		return a, err
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimPrefix(line, []byte("data: "))
		if bytes.HasPrefix(line, []byte("{")) {
			if err := json.Unmarshal(line, &a); err != nil {
				return a, fmt.Errorf("read %q: %w", line, err)
			}
		}
	}
	if a.Error == nil && status != http.StatusOK {
		return a, fmt.Errorf("status %d", status)
	}
	return a, nil
}

// failure returns why a response is no result; empty if it is one.
func (a *fleetAnswer) failure() string {
	switch {
	case a.Error != nil:
		return a.Error.Message
	case a.Result.IsError:
		return a.text()
	}
	return ""
}

func (a *fleetAnswer) text() string {
	if len(a.Result.Content) == 0 {
		return ""
	}
	return a.Result.Content[0].Text
}

type fleetAct struct {
	weight int
	name   string
	do     func(id string) error
}

// step makes one act and retries it, as a new act, until it succeeds.
func (c *fleetClient) step() {
	acts := []fleetAct{{4, "call", c.call}, {4, "ask", func(id string) error { return c.converse("asks", "sure", id) }},
		{2, "approval", func(id string) error { return c.converse("approved", "approval", id) }}, {1, "task", c.task}, {1, "followed task", c.followed}, {2, "count", c.counts},
		{3, "call in a session", func(id string) error { return c.legacy("effect", id) }}, {2, "ask in a session", func(id string) error { return c.legacy("asks", id) }}}
	if c.limited != nil {
		acts = append(acts, fleetAct{16, "limited call", c.limited})
	}
	total := 0
	for _, act := range acts {
		total += act.weight
	}
	pick := c.rand.IntN(total)
	for _, act := range acts {
		if pick -= act.weight; pick < 0 {
			c.until(act.name, act.do)
			return
		}
	}
}

// until repeats an act until it succeeds.
func (c *fleetClient) until(name string, act func(id string) error) {
	for {
		c.acts++
		err := act(fmt.Sprintf("%s-%d", c.name, c.acts))
		if err == nil {
			c.end(name, "done")
			return
		}
		c.end(name, short(err))
		if isClosed(c.over) {
			return
		}
		c.pause()
	}
}

// pause is the time between two requests of a client that retries or polls.
func (c *fleetClient) pause() {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-c.late:
	}
}

func (c *fleetClient) call(id string) error {
	a, err := sendTo(c.front, "tools/call", fmt.Sprintf(`{"name":"effect","arguments":{"id":%q}}`, id))
	if err != nil {
		return err
	}
	if failure := a.failure(); failure != "" {
		return errors.New(failure)
	}
	c.keep(id)
	return nil
}

// legacyPost sends a message as a client of 2025-11-25. The next replica gets it, whichever has the session.
func (c *fleetClient) legacyPost(message string) (*http.Response, error) {
	header := http.Header{"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}}
	if c.session != "" {
		header["Mcp-Session-Id"] = []string{c.session}
	}
	request, err := c.front.request(http.MethodPost, "/mcp", []byte(message), header)
	if err != nil {
		return nil, err
	}
	response, err := c.front.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		c.session = "" // MCP demands that the client initializes anew
		return nil, errors.New("the session is gone")
	}
	return nil, fmt.Errorf("status %d: %s", response.StatusCode, text)
}

// initialize opens a session.
func (c *fleetClient) initialize() error {
	response, err := c.legacyPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	c.session = response.Header.Get("Mcp-Session-Id")
	if response, err = c.legacyPost(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err == nil {
		_ = response.Body.Close()
	}
	return err
}

// legacy calls a tool in the session, and answers what it asks, at another replica.
func (c *fleetClient) legacy(tool, id string) error {
	if c.session == "" {
		if err := c.initialize(); err != nil {
			c.session = ""
			return err
		}
	}
	response, err := c.legacyPost(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"id":%q}}}`, c.acts, tool, id))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := bytes.TrimPrefix(lines.Bytes(), []byte("data: "))
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		var m struct {
			fleetAnswer
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("read %q: %w", line, err)
		}
		if m.Method == "elicitation/create" {
			answered, err := c.legacyPost(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, m.ID))
			if err != nil {
				return err
			}
			_ = answered.Body.Close()
			continue
		}
		if failure := m.failure(); failure != "" {
			return errors.New(failure)
		}
		if m.text() != id {
			c.problem("the call of %s in a session has the result %q", id, m.text())
		}
		if tool == "asks" {
			c.keep(id+"-before", id+"-after")
		} else {
			c.keep(id)
		}
		return nil
	}
	return fmt.Errorf("the stream ended: %v", lines.Err())
}

// counts increments the counter that all clients share. No two calls may get the same number.
func (c *fleetClient) counts(id string) error {
	c.mu.Lock()
	c.tried++
	c.mu.Unlock()
	a, err := sendTo(c.front, "tools/call", `{"name":"count","arguments":{"by":1}}`)
	if err != nil {
		return err
	}
	if failure := a.failure(); failure != "" {
		return errors.New(failure)
	}
	c.mu.Lock()
	other, twice := c.numbers[a.text()]
	c.numbers[a.text()] = id
	c.mu.Unlock()
	if twice {
		c.problem("the counter gave %s to %s and to %s", a.text(), other, id)
	}
	return nil
}

// hopeless are the errors of a request state that no retry changes.
var hopeless = []string{"its effects are unknown", "no longer stored", "has expired", "was canceled"}

// converse calls a tool that needs an answer. The answer goes to any replica, and sometimes to
// several at once. All results must be equal.
func (c *fleetClient) converse(tool, key, id string) error {
	call := fmt.Sprintf(`{"name":%q,"arguments":{"id":%q}`, tool, id)
	asked, err := sendTo(c.front, "tools/call", call+"}")
	if err != nil {
		return err
	}
	if failure := asked.failure(); failure != "" {
		return errors.New(failure)
	}
	if asked.Result.RequestState == "" {
		return fmt.Errorf("%s did not ask", tool)
	}
	answer := fmt.Sprintf(`%s,"inputResponses":{%q:{"action":"accept","content":{}}},"requestState":%q}`, call, key, asked.Result.RequestState)
	targets := []*daemon{c.front}
	switch c.rand.IntN(4) {
	case 0:
		targets = append(targets, c.front)
	case 1:
		targets = slices.DeleteFunc(c.direct(), func(d *daemon) bool { return d == nil })
	}
	ends := make([]error, len(targets))
	var all sync.WaitGroup
	for i, target := range targets {
		all.Go(func() { ends[i] = c.answer(target, answer, id) })
	}
	all.Wait()
	if slices.Contains(ends, nil) {
		c.keep(id + "-after")
		if tool == "asks" {
			c.keep(id + "-before")
		}
		return nil
	}
	return ends[0]
}

// answer sends an answer until it has a result, or an error that no retry changes. Further
// requests go to the proxy.
func (c *fleetClient) answer(target *daemon, params, id string) error {
	for {
		a, err := sendTo(target, "tools/call", params)
		if err == nil {
			err = errors.New(a.failure())
			switch failure := a.failure(); {
			case failure == "" && a.Result.ResultType == "complete":
				if a.text() != id {
					c.problem("the answer of %s has the result %q", id, a.text())
				}
				return nil
			case failure == "":
				c.problem("the answer of %s is asked for again: %+v", id, a.Result)
				return nil
			case slices.ContainsFunc(hopeless, func(h string) bool { return strings.Contains(failure, h) }):
				return err
			}
		}
		c.end("retry of an answer", short(err))
		if isClosed(c.late) {
			return fmt.Errorf("%w: %w", errUndecided, err)
		}
		target = c.front
		c.pause()
	}
}

// short returns an error without the parts that differ each time.
func short(err error) string {
	if strings.Contains(err.Error(), "Post \"") || strings.HasPrefix(err.Error(), "status 502") {
		return "no response"
	}
	return err.Error()
}

// task runs a task, answers it twice, or cancels it. Some clients poll one replica, and the others
// poll all in turn.
func (c *fleetClient) task(id string) error {
	asks, cancels, polled := c.rand.IntN(2) == 0, c.rand.IntN(8) == 0, c.rand.IntN(6)
	started, err := sendTo(c.front, "tools/call", fmt.Sprintf(`{"name":"job","arguments":{"id":%q,"ask":%v}}`, id, asks))
	if err != nil {
		return err
	}
	if failure := started.failure(); failure != "" {
		return errors.New(failure)
	}
	name := fmt.Sprintf(`{"taskId":%q`, started.Result.TaskID)
	if cancels {
		_, _ = sendTo(c.front, "tasks/cancel", name+"}") // the task may have ended
	}
	for {
		target := c.front
		if all := c.direct(); polled < len(all) && all[polled] != nil {
			target = all[polled]
		}
		a, err := sendTo(target, "tasks/get", name+"}")
		switch status := a.Result.Status; {
		case err != nil || a.Error != nil:
			if a.Error != nil && strings.Contains(a.Error.Message, "no such task") {
				c.problem("task %s of %s is gone", started.Result.TaskID, id)
				return nil
			}
		case status == "completed":
			if a.Result.Result == nil || a.Result.Result.IsError {
				return taskError(&a)
			}
			c.keep(id+"-before", id+"-after")
			return nil
		case status == "cancelled" && cancels:
			return nil
		case status == "failed":
			if a.Result.StatusMessage == "" && a.Result.Error == nil {
				c.problem("task %s of %s failed without a reason", started.Result.TaskID, id)
			}
			return taskError(&a)
		case status == "input_required":
			var all sync.WaitGroup
			for range 1 + c.rand.IntN(2) {
				all.Go(func() {
					for key := range a.Result.InputRequests {
						_, _ = sendTo(c.front, "tasks/update", fmt.Sprintf(`%s,"inputResponses":{%q:{"action":"accept","content":{}}}}`, name, key)) // repeated if it fails
					}
				})
			}
			all.Wait()
		case status != "working":
			c.problem("task %s of %s is %q", started.Result.TaskID, id, status)
			return nil
		}
		if isClosed(c.late) {
			return fmt.Errorf("%w: task %s of %s is %s: %v", errUndecided, started.Result.TaskID, id, a.Result.Status, err)
		}
		c.pause()
	}
}

func taskError(a *fleetAnswer) error {
	switch {
	case a.Result.Error != nil:
		return errors.New(a.Result.Error.Message)
	case a.Result.Result != nil && len(a.Result.Result.Content) > 0:
		return errors.New(a.Result.Result.Content[0].Text)
	}
	return errors.New(a.Result.StatusMessage)
}
