package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/serve"
)

// metaTasks is that of a modern client which knows tasks and can be asked.
var metaTasks = strings.Replace(metaModern, `Capabilities":{}`, `Capabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)

// task is a task on the wire.
type task struct {
	ID            string `json:"taskId"`
	Status        string
	StatusMessage string
	TTL           int `json:"ttlMs"`
	InputRequests map[string]json.RawMessage
	Result        json.RawMessage
	Error         *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// taskClient is a client that knows tasks.
type taskClient struct {
	*testing.T
	url string
}

// send makes a request and returns the whole answer.
func (c taskClient) send(method, name, params string) []byte {
	c.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, method, metaTasks, params)
	_, answer := post(c.T, c.url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name})
	return answer
}

// call makes a call that is to be answered with a task.
func (c taskClient) call(tool, args string) task {
	c.Helper()
	return c.callWith(tool, args, "")
}

// callWith is call with more params, each after a comma.
func (c taskClient) callWith(tool, args, more string) task {
	c.Helper()
	var wire struct {
		Result struct {
			ResultType string
			task
		}
	}
	answer := c.send("tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args)+more)
	if decode(c.T, answer, &wire); wire.Result.ResultType != "task" || wire.Result.Status != "working" {
		c.Fatalf("%s is no task: %s", tool, answer)
	}
	return wire.Result.task
}

// get returns a task as it is now.
func (c taskClient) get(id string) task {
	c.Helper()
	var wire struct{ Result task }
	decode(c.T, c.send("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)), &wire)
	return wire.Result
}

// answer gives all that is asked the same answer.
func (c taskClient) answer(of task, content string) []byte {
	c.Helper()
	responses := map[string]json.RawMessage{}
	for key := range of.InputRequests {
		responses[key] = json.RawMessage(`{"action":"accept","content":` + content + `}`)
	}
	encoded, err := json.Marshal(responses)
	if err != nil {
		c.Fatal(err)
	}
	return c.send("tasks/update", of.ID, fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, of.ID, encoded))
}

// until subscribes to a task and returns it when it has one of some statuses.
func (c taskClient) until(id string, statuses ...string) task {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{%s,"notifications":{"taskIds":[%q]}}}`, metaTasks, id)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/mcp", strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var told struct {
			Method string
			Params task
		}
		if ok && json.Unmarshal([]byte(data), &told) == nil && told.Method == "notifications/tasks" && slices.Contains(statuses, told.Params.Status) {
			return told.Params
		}
	}
	c.Fatalf("the stream ended before %s was %v: %v", id, statuses, lines.Err())
	return task{}
}

// durable returns a front whose state stands in a file, and how to shut it down.
func durable(t *testing.T, path, tools string, hooks ...engine.Hook) (c taskClient, stop func()) {
	t.Helper()
	s, err := engine.New(engine.Options{
		Name: "test", Extensions: []engine.Extension{sqlite.New()}, Hooks: hooks, Front: serve.Checks{}, StatePath: path,
		Tools: fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := serve.New(s, serve.Options{Grace: 1})
	handler, err := front.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	stop = func() {
		_ = front.Shutdown(context.Background()) // calls may be cut off
		server.Close()
	}
	t.Cleanup(stop)
	return taskClient{t, server.URL}, stop
}
