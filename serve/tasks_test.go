package serve_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// TestATaskGoesOnAfterARestart counts what a body does that posts, asks, posts,
// asks and posts, as a task whose server is shut down while it waits, twice.
func TestATaskGoesOnAfterARestart(t *testing.T) {
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
	c, stop := durable(t, path, tools, legs.hook)
	made := c.call("deploy", "{}")
	if made.TTL != 3*60*60*1000 {
		t.Errorf("it is kept for %d ms", made.TTL)
	}
	for i, name := range []string{"Ann", "Bob"} {
		asked := c.until(made.ID, "input_required")
		stop()
		c, stop = durable(t, path, tools, legs.hook)
		if diff := cmp.Diff(asked, c.get(made.ID)); diff != "" {
			t.Fatalf("the restart changed the task (-before +after)\n%s", diff)
		}
		if refused := c.answer(asked, `{"name":7}`); !strings.Contains(string(refused), `"code":-32602,"message":"the answer to `) {
			t.Errorf("an answer that does not fit: %s", refused)
		}
		if i > 0 && len(asked.InputRequests["name-2"]) == 0 {
			t.Errorf("the second question stands under a key that was used: %v", asked.InputRequests)
		}
		c.answer(asked, fmt.Sprintf(`{"name":%q}`, name))
	}
	got := c.until(made.ID, "completed")
	if want := "plan#1 Ann deploy#2 Bob finish#3"; !strings.Contains(string(got.Result), want) || posts.Load() != 3 {
		t.Errorf("got %s after %d posts, want %s", got.Result, posts.Load(), want)
	}
	stop()
	c, _ = durable(t, path, tools)
	if diff := cmp.Diff(got, c.get(made.ID)); diff != "" {
		t.Errorf("the restart changed the result (-before +after)\n%s", diff)
	}
	leg := []string{"start deploy client tester", "end deploy client tester"}
	if diff := cmp.Diff(append(append(append([]string(nil), leg...), leg...), leg...), legs.take()); diff != "" {
		t.Errorf("the hooks of the legs (-want +got)\n%s", diff)
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

// running returns a hook that tells when a call begins and how it ended.
func running() (hook engine.Hook, began chan bool, ended chan string) {
	began, ended = make(chan bool, 10), make(chan string, 10)
	return func(_ context.Context, e call.Event) {
		switch e.Phase {
		case call.Start:
			began <- true
		case call.Failed:
			ended <- e.Err.Message
		default:
			ended <- ""
		}
	}, began, ended
}

func TestATaskThatRunsAtTheShutdownHasFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "state.db")
	hook, began, ended := running()
	c, stop := durable(t, path, endlessTask, hook)
	made := c.call("stuck", "{}")
	<-began
	stop()
	if message := <-ended; message != "the call was canceled" {
		t.Errorf("the leg ended with %q", message)
	}
	c, _ = durable(t, path, endlessTask)
	got := c.get(made.ID)
	const reason = "the server was stopped while the task ran, and what it did is not known; check before you make the call again"
	if got.Status != "failed" || got.StatusMessage != reason || got.Error == nil || got.Error.Code != -32603 || got.Error.Message != reason {
		t.Errorf("got %+v", got)
	}
}

func TestACancelledTaskStopsItsScript(t *testing.T) {
	hook, began, ended := running()
	c := taskClient{t, listen(t, frontOf(t, endlessTask, hook))}
	made := c.call("stuck", "{}")
	<-began
	if ack := c.send("tasks/cancel", made.ID, fmt.Sprintf(`"taskId":%q`, made.ID)); !strings.Contains(string(ack), `"result":{"resultType":"complete"`) {
		t.Errorf("the cancellation is answered with %s", ack)
	}
	if message := <-ended; message != "the call was canceled" {
		t.Errorf("the leg ended with %q", message)
	}
	if got := c.get(made.ID); got.Status != "cancelled" || got.Result != nil || got.Error != nil {
		t.Errorf("got %+v", got)
	}
}

// TestAToolThatRunsAsATaskOnlyTellsOtherClientsWhatTheyLack, and one that may
// run as a task runs in line for them.
func TestAToolThatRunsAsATaskOnlyTellsOtherClientsWhatTheyLack(t *testing.T) {
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
					want = outcome{} // an error of the protocol, with other data
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

// TestACallHasTheSameOutcomeAsATask: the value, the code and the message.
func TestACallHasTheSameOutcomeAsATask(t *testing.T) {
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
		t.Errorf("only %d calls went on as tasks", asTasks)
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

func TestErrorsOfTheProtocolFailATask(t *testing.T) {
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

// TestNobodyKeepsTooManyTasks starts one more than a principal may have.
func TestNobodyKeepsTooManyTasks(t *testing.T) {
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
