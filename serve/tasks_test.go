package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/serve"
)

// TestTask_restart counts the side effects of a script that posts and asks in
// turn, as a task, while its server is restarted twice.
func TestTask_restart(t *testing.T) {
	var posts atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s#%d", strings.TrimPrefix(r.URL.Path, "/"), posts.Add(1))
	}))
	defer api.Close()
	host := strings.TrimPrefix(api.URL, "http://")
	tools := fmt.Sprintf(`
tool "deploy" {
  timeout  = "10s"
  task     = "required"
  task_ttl = "3h"
  allow {
    http "api" {
      hosts            = [%q]
      methods          = ["POST"]
      private_networks = true
    }
    ask { elicit = true }
  }
  run = <<JS
    const post = async (step) => (await http.api.post("http://%s/" + step)).text();
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const ask = async (message) => (await elicit("name", { message, schema })).content.name;
    return [await post("plan"), await ask("who?"), await post("deploy"), await ask("who else?"), await post("finish")].join(" ");
  JS
}
`, host, host)
	path := filepath.Join(t.TempDir(), "state", "state.db")
	legs := &hookLog{}
	c, stop := newStoredTasks(t, path, tools, legs.hook)
	made := c.call("deploy", "{}")
	if made.TTL != 3*60*60*1000 {
		t.Errorf("TTL = %d ms", made.TTL)
	}
	for i, name := range []string{"Ann", "Bob"} {
		asked := c.until(made.ID, "input_required")
		stop()
		c, stop = newStoredTasks(t, path, tools, legs.hook)
		if diff := cmp.Diff(asked, c.get(made.ID)); diff != "" {
			t.Fatalf("the restart changed the task (-before +after)\n%s", diff)
		}
		if refused := c.answer(asked, `{"name":7}`); !strings.Contains(string(refused), `"code":-32602,"message":"the answer to `) {
			t.Errorf("invalid response: %s", refused)
		}
		if i > 0 && len(asked.InputRequests["name-2"]) == 0 {
			t.Errorf("the second request reuses a key: %v", asked.InputRequests)
		}
		c.answer(asked, fmt.Sprintf(`{"name":%q}`, name))
	}
	got := c.until(made.ID, "completed")
	if want := "plan#1 Ann deploy#2 Bob finish#3"; !strings.Contains(string(got.Result), want) || posts.Load() != 3 {
		t.Errorf("got %s after %d posts, want %s", got.Result, posts.Load(), want)
	}
	stop()
	c, _ = newStoredTasks(t, path, tools)
	if diff := cmp.Diff(got, c.get(made.ID)); diff != "" {
		t.Errorf("the restart changed the result (-before +after)\n%s", diff)
	}
	leg := []string{"start deploy client tester", "end deploy client tester"}
	if diff := cmp.Diff(append(append(append([]string(nil), leg...), leg...), leg...), legs.take()); diff != "" {
		t.Errorf("hook events of the legs (-want +got)\n%s", diff)
	}
}

const endlessTask = `
tool "stuck" {
  timeout = "5m"
  task    = "optional"
  run = <<JS
    await new Promise(done => setTimeout(done, 300_000));
  JS
}
`

// running returns a hook that signals the start of a call and its end.
func running() (hook engine.Hook, started chan bool, ended chan string) {
	started, ended = make(chan bool, 10), make(chan string, 10)
	return func(_ context.Context, e call.Event) {
		switch e.Phase {
		case call.Start:
			started <- true
		case call.Failed:
			ended <- e.Err.Message
		default:
			ended <- ""
		}
	}, started, ended
}

func TestTask_shutdown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "state.db")
	hook, started, ended := running()
	c, stop := newStoredTasks(t, path, endlessTask, hook)
	made := c.call("stuck", "{}")
	<-started
	stop()
	if message := <-ended; message != "the call was canceled" {
		t.Errorf("the leg ended with %q", message)
	}
	c, _ = newStoredTasks(t, path, endlessTask)
	got := c.get(made.ID)
	const reason = "the server was stopped while the task ran, and its effects are unknown; check them before you repeat the call"
	if got.Status != "failed" || got.StatusMessage != reason || got.Error == nil || got.Error.Code != -32603 || got.Error.Message != reason {
		t.Errorf("got %+v", got)
	}
}

func TestTask_cancelled(t *testing.T) {
	hook, started, ended := running()
	c := taskClient{t, listen(t, frontOf(t, endlessTask, hook))}
	made := c.call("stuck", "{}")
	<-started
	if ack := c.send("tasks/cancel", made.ID, fmt.Sprintf(`"taskId":%q`, made.ID)); !strings.Contains(string(ack), `"result":{"resultType":"complete"`) {
		t.Errorf("response to the cancellation: %s", ack)
	}
	if message := <-ended; message != "the call was canceled" {
		t.Errorf("the leg ended with %q", message)
	}
	if got := c.get(made.ID); got.Status != "cancelled" || got.Result != nil || got.Error != nil {
		t.Errorf("got %+v", got)
	}
}

// TestTask_clientWithoutTasks: a tool that requires tasks fails with the
// missing capability, and a tool with optional tasks runs inline.
func TestTask_clientWithoutTasks(t *testing.T) {
	front := frontOf(t, `
tool "may" {
  task = "optional"
  run  = "return 'in line'"
}
tool "must" {
  task = "required"
  run  = "return 'never'"
}
policy "hidden" {
  tools    = ["hidden"]
  deny     = "true"
  reason   = "nobody may know"
  disclose = "hide"
}
tool "hidden" {
  task = "required"
  run  = "return 'never'"
}
`)
	const message = "the tool runs as a task only, and its client does not support tasks"
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			call := transport.connect(t, front)
			for args, want := range map[string]outcome{
				"may":    {Value: "in line"},
				"hidden": {Code: "TOOL_NOT_FOUND", Message: `no tool named "hidden"`},
				"must":   {Code: "EXECUTION_ERROR", Message: message},
			} {
				if strings.HasPrefix(transport.name, "modern") && args == "must" {
					want = outcome{} // a protocol error, with other data
				}
				if got := call(callOf(args)); got != want {
					t.Errorf("%s: got %+v, want %+v", args, got, want)
				}
			}
		})
	}
	_, answer := post(t, listen(t, front)+"/mcp", request(metaModern, callOf("must")), map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "must",
	})
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"` + message + `","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	if strings.TrimSpace(string(answer)) != want {
		t.Errorf("got %s", answer)
	}
}

func callOf(tool string) oneCall { return oneCall{tool, "{}"} }

// TestTask_sameOutcome compares the value, the code and the message.
func TestTask_sameOutcome(t *testing.T) {
	tools := regexp.MustCompile(`(?m)^tool "[a-z]+" \{$`).ReplaceAllString(outcomeTools, "$0\n  task = \"optional\"")
	front := frontOf(t, tools)
	inLine, c := overModern(t, front), taskClient{t, listen(t, front)}
	asTasks := 0
	for _, call := range distinct(outcomeCalls()) {
		answer := c.send("tools/call", call.tool, fmt.Sprintf(`"name":%q,"arguments":%s`, call.tool, call.args))
		var made struct {
			Result struct {
				ResultType string
				task
			}
		}
		if decode(t, answer, &made); made.Result.ResultType == "task" {
			asTasks++
			ended := c.until(made.Result.ID, "completed", "failed")
			answer = fmt.Appendf(nil, `{"result":%s}`, ended.Result)
		}
		if diff := cmp.Diff(inLine(call), read(t, answer)); diff != "" {
			t.Errorf("%s %s (-in line +as a task)\n%s", call.tool, call.args, diff)
		}
	}
	if asTasks < 20 {
		t.Errorf("only %d calls ran as tasks", asTasks)
	}
}

func distinct(calls []oneCall) (some []oneCall) {
	for _, c := range calls {
		if !slices.Contains(some, c) && len(some) < 60 {
			some = append(some, c)
		}
	}
	return some
}

func TestTask_rpcError(t *testing.T) {
	c := taskClient{t, listen(t, frontOf(t, `
tool "teapot" {
  task = "optional"
  run = <<JS
    throw new RpcError(418, "short and stout", { handle: "here" });
  JS
}
tool "bare" {
  task = "optional"
  run = <<JS
    throw new RpcError(418, "short and stout");
  JS
}
`))}
	for tool, want := range map[string]string{"teapot": `{"handle":"here"}`, "bare": ""} {
		got := c.until(c.call(tool, "{}").ID, "failed")
		if got.Error == nil || got.Error.Code != 418 || got.Error.Message != "short and stout" || string(got.Error.Data) != want || got.Result != nil {
			t.Errorf("%s: got %+v", tool, got)
		}
	}
}

// TestTask_limit starts one task over the limit of a principal.
func TestTask_limit(t *testing.T) {
	c := taskClient{t, listen(t, frontOf(t, `
tool "asks" {
  timeout = "1m"
  task    = "optional"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    return await elicit({ message: "?", schema: { type: "object", properties: {} } });
  JS
}
`))}
	for range 1000 {
		c.call("asks", "{}")
	}
	answer := c.send("tools/call", "asks", `"name":"asks","arguments":{}`)
	if got := read(t, answer); got.Code != "EXECUTION_ERROR" || !strings.HasPrefix(got.Message, "the server has no room for more tasks; try again in ") {
		t.Errorf("got %+v", got)
	}
}

// metaTasks is the _meta of a modern client with tasks and elicitation.
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

// taskClient is a client with tasks.
type taskClient struct {
	*testing.T
	url string
}

// send makes a request and returns the whole response.
func (c taskClient) send(method, name, params string) []byte {
	c.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, method, metaTasks, params)
	_, answer := post(c.T, c.url+"/mcp", body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name})
	return answer
}

// call makes a call and fails if the response is not a task.
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
		c.Fatalf("%s returned no task: %s", tool, answer)
	}
	return wire.Result.task
}

// get returns the present state of a task.
func (c taskClient) get(id string) task {
	c.Helper()
	var wire struct{ Result task }
	decode(c.T, c.send("tasks/get", id, fmt.Sprintf(`"taskId":%q`, id)), &wire)
	return wire.Result
}

// answer answers all input requests with the same content.
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

// until subscribes to a task and returns it when it has one of the statuses.
func (c taskClient) until(id string, statuses ...string) task {
	c.Helper()
	got, err := c.listen(id, func(got task) bool { return slices.Contains(statuses, got.Status) })
	if err != nil {
		c.Fatalf("%s was not %v: %v", id, statuses, err)
	}
	return got
}

// listen subscribes to a task and returns it once stop returns true for a notification.
func (c taskClient) listen(id string, stop func(task) bool) (task, error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{%s,"notifications":{"taskIds":[%q]}}}`, metaTasks, id)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return task{}, err
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return task{}, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var notified struct {
			Method string
			Params task
		}
		if ok && json.Unmarshal([]byte(data), &notified) == nil && notified.Method == "notifications/tasks" && stop(notified.Params) {
			return notified.Params, nil
		}
	}
	return task{}, fmt.Errorf("the stream ended: %v", lines.Err())
}

// newStoredTasks returns a front with its state in a file, and its shutdown function.
func newStoredTasks(t *testing.T, path, tools string, hooks ...engine.Hook) (c taskClient, stop func()) {
	t.Helper()
	s, err := engine.New(engine.Options{
		Name: "test", Extensions: []engine.Extension{sqlite.New()}, Hooks: hooks, Front: serve.Checks{}, StatePath: path,
		Files: engine.Files{Tools: fstest.MapFS{"t.hcl": {Data: []byte(tools), Mode: 0o644}}},
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
		_ = front.Shutdown(context.Background()) // calls may be cancelled
		server.Close()
	}
	t.Cleanup(stop)
	return taskClient{t, server.URL}, stop
}

// TestTask_askFirst: the first input request belongs to the call, the second to
// the task.
func TestTask_askFirst(t *testing.T) {
	c := taskClient{t, listen(t, frontOf(t, `
tool "asks" {
  task      = "required"
  ask_first = true
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const ask = async () => (await elicit("name", { message: "Who?", schema })).content.name;
    return [await ask(), await ask()].join(" and ");
  JS
}
`))}
	var asked struct {
		Result struct{ ResultType, RequestState string }
	}
	answer := c.send("tools/call", "asks", `"name":"asks","arguments":{}`)
	if decode(t, answer, &asked); asked.Result.ResultType != "input_required" || asked.Result.RequestState == "" {
		t.Fatalf("got %s", answer)
	}
	made := c.callWith("asks", "{}", fmt.Sprintf(
		`,"requestState":%q,"inputResponses":{"name":{"action":"accept","content":{"name":"Ann"}}}`, asked.Result.RequestState))
	c.answer(c.until(made.ID, "input_required"), `{"name":"Bob"}`)
	if got := c.until(made.ID, "completed"); !strings.Contains(string(got.Result), `"Ann and Bob"`) {
		t.Errorf("got %s", got.Result)
	}
}
