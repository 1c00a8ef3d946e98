package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/serve"
)

const conversationTools = `
tool "asks" {
  timeout = "5m"
  allow {
    ask {
      elicit = true
      sample = true
      roots  = true
    }
  }
  input "what" { type = string }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const message = { role: "user", content: { type: "text", text: "a name?" } };
    switch (input.what) {
      case "form": return (await elicit("who", { message: "who?", schema })).content.name;
      case "sample": return (await sample("name", { messages: [message], maxTokens: 10 })).content.text;
      case "roots": return (await roots("roots")).map(r => r.uri).join();
      case "all": {
        const got = await ask({ a: elicit.form({ message: "who?", schema }), b: sample.message({ messages: [message], maxTokens: 10 }), c: roots.list() });
        return [got.a.content.name, got.b.content.text, got.c.length].join(" ");
      }
      case "twice": {
        const first = (await elicit("first", { message: "who?", schema })).content.name;
        return first + (await elicit("second", { message: "after " + first + "?", schema })).content.name;
      }
    }
  JS
}
tool "wipe" {
  timeout = "5m"
  input "disk" { type = string }
  run = "return 'wiped ' + input.disk;"
}
policy "wipes_are_approved" {
  tools             = ["wipe"]
  requires_approval = "args.disk != 'scratch'"
  reason            = "all is lost"
}
tool "wait" {
  timeout = "5m"
  run     = "await new Promise(done => setTimeout(done, 300_000));"
}
`

// conversation is a call with the client's answers to its input requests.
type conversation struct {
	name string
	oneCall
	// action is the client's action, "decline" or "cancel"; "" accepts.
	action string
}

var conversations = []conversation{
	{"form", oneCall{"asks", `{"what":"form"}`}, ""},
	{"form declined", oneCall{"asks", `{"what":"form"}`}, "decline"},
	{"form cancelled", oneCall{"asks", `{"what":"form"}`}, "cancel"},
	{"sample", oneCall{"asks", `{"what":"sample"}`}, ""},
	{"roots", oneCall{"asks", `{"what":"roots"}`}, ""},
	{"all at once", oneCall{"asks", `{"what":"all"}`}, ""},
	{"one after the other", oneCall{"asks", `{"what":"twice"}`}, ""},
	{"approval", oneCall{"wipe", `{"disk":"sda"}`}, ""},
	{"approval declined", oneCall{"wipe", `{"disk":"sda"}`}, "decline"},
	{"no approval needed", oneCall{"wipe", `{"disk":"scratch"}`}, ""},
}

// answerTo returns the client's response to a request of the server.
func (c conversation) answerTo(method string, params json.RawMessage) string {
	switch {
	case method == "sampling/createMessage":
		return `{"role":"assistant","content":{"type":"text","text":"Bob"},"model":"m-1","stopReason":"endTurn"}`
	case method == "roots/list":
		return `{"roots":[{"uri":"file:///a","name":"a"},{"uri":"file:///b"}]}`
	case c.action != "":
		return fmt.Sprintf(`{"action":%q}`, c.action)
	}
	content := `{"name":"Ann"}`
	var form struct {
		RequestedSchema struct {
			Properties map[string]struct{ Type string }
		}
	}
	if json.Unmarshal(params, &form) == nil && form.RequestedSchema.Properties["name"].Type == "" {
		filled := map[string]any{} // the form of an approval
		for name, property := range form.RequestedSchema.Properties {
			filled[name] = map[string]any{"boolean": true, "string": "x"}[property.Type]
		}
		encoded, _ := json.Marshal(filled) // plain data always encodes
		content = string(encoded)
	}
	return `{"action":"accept","content":` + content + `}`
}

// converse makes a call and answers its input requests. asked are the requests,
// ordered within each round.
type converse func(c conversation) (asked []string, o outcome)

// askClient is a client that talks, and cancels its running call.
type askClient struct {
	talk   converse
	start  func(c oneCall)
	cancel func(reason string)
}

// askClients are the clients of all transports and eras.
var askClients = []struct {
	name string
	open func(*testing.T, *serve.Front) askClient
}{
	{"REST", restAskClient},
	{"legacy HTTP", legacyAskClient(openHTTPWire)}, {"modern HTTP", modernAskClient(openHTTPWire, true)},
	{"legacy HTTP+SSE", legacyAskClient(openSSEWire)}, {"modern HTTP+SSE", modernAskClient(openSSEWire, false)},
	{"legacy WebSocket", legacyAskClient(openSocketWire)}, {"modern WebSocket", modernAskClient(openSocketWire, false)},
	{"legacy stdio", legacyAskClient(openStdioWire)}, {"modern stdio", modernAskClient(openStdioWire, false)},
}

// normalizedRequest returns a request of the server in a comparable form.
func normalizedRequest(t *testing.T, method string, params json.RawMessage) string {
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	return method + " " + normal(t, params, map[string]string{})
}

func requestOf(c oneCall) mcptest.Request {
	return mcptest.Request{Method: "tools/call", Name: c.tool, Params: fmt.Sprintf(`"name":%q,"arguments":%s`, c.tool, c.args)}
}

// cancelledBy returns the notification that cancels a request.
func cancelledBy(id int, reason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":%q}}`, id, reason)
}

// legacyAskClient receives requests during its calls.
func legacyAskClient(open func(*testing.T, *serve.Front) *wire) func(*testing.T, *serve.Front) askClient {
	return func(t *testing.T, front *serve.Front) askClient {
		w, id := open(t, front), 0
		w.answer(0, strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{},"sampling":{},"roots":{}}`, 1))
		w.send(ready)
		start := func(c oneCall) {
			id++
			w.send(messageOf(id, requestOf(c), metaAgent))
		}
		return askClient{start: start, cancel: func(reason string) { w.send(cancelledBy(id, reason)) }, talk: func(c conversation) (asked []string, o outcome) {
			start(c.oneCall)
			for {
				message := w.next()
				var m struct {
					ID     json.RawMessage
					Method string
					Params json.RawMessage
				}
				decode(t, message, &m)
				switch {
				case m.Method != "" && m.ID != nil:
					asked = append(asked, normalizedRequest(t, m.Method, m.Params))
					w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, c.answerTo(m.Method, m.Params)))
				case m.Method == "" && string(m.ID) == fmt.Sprint(id):
					return asked, read(t, message)
				}
			}
		}}
	}
}

// modernAskClient receives input requests in results, and repeats its calls. It
// cancels by closing the connection if there is no other way.
func modernAskClient(open func(*testing.T, *serve.Front) *wire, closes bool) func(*testing.T, *serve.Front) askClient {
	meta := strings.Replace(metaModern, `Capabilities":{}`, `Capabilities":{"elicitation":{},"sampling":{},"roots":{}}`, 1)
	return func(t *testing.T, front *serve.Front) askClient {
		w, id := open(t, front), 0
		talk := func(c conversation) (asked []string, o outcome) {
			for more := ""; ; {
				id++
				message := w.answer(id, messageOf(id, requestOf(c.oneCall), meta+more))
				var m struct {
					Result struct {
						ResultType    string
						InputRequests map[string]struct {
							Method string
							Params json.RawMessage
						}
						RequestState string
					}
				}
				if decode(t, message, &m); m.Result.ResultType != "input_required" {
					return asked, read(t, message)
				}
				answers := map[string]json.RawMessage{}
				for key, r := range m.Result.InputRequests {
					asked = append(asked, normalizedRequest(t, r.Method, r.Params))
					answers[key] = json.RawMessage(c.answerTo(r.Method, r.Params))
				}
				encoded, err := json.Marshal(answers)
				if err != nil {
					t.Fatal(err)
				}
				more = fmt.Sprintf(`,"inputResponses":%s,"requestState":%q`, encoded, m.Result.RequestState)
			}
		}
		start := func(c oneCall) {
			id++
			w.send(messageOf(id, requestOf(c), meta))
		}
		cancel := func(reason string) { w.send(cancelledBy(id, reason)) }
		if closes {
			cancel = func(string) { w.close() }
		}
		return askClient{talk, start, cancel}
	}
}

// restAskClient receives input requests in responses, as a modern client does.
func restAskClient(t *testing.T, front *serve.Front) askClient {
	url := listen(t, front)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	body := func(c oneCall, more string) string {
		return fmt.Sprintf(`{"tool":%q,"arguments":%s,"agent":%s,"can":["form","sample","roots","approval"]%s}`, c.tool, c.args, agentClaim, more)
	}
	return askClient{
		talk: func(c conversation) (asked []string, o outcome) {
			for more := ""; ; {
				_, answer := post(t, url+"/mcp/execute", body(c.oneCall, more), nil)
				var m struct {
					Ask *struct {
						Requests []struct {
							Key, Method string
							Params      json.RawMessage
						}
						State string
					}
				}
				if decode(t, answer, &m); m.Ask == nil {
					return asked, readREST(t, answer)
				}
				answers := map[string]json.RawMessage{}
				for _, r := range m.Ask.Requests {
					asked = append(asked, normalizedRequest(t, r.Method, r.Params))
					answers[r.Key] = json.RawMessage(c.answerTo(r.Method, r.Params))
				}
				encoded, err := json.Marshal(answers)
				if err != nil {
					t.Fatal(err)
				}
				more = fmt.Sprintf(`,"state":%q,"answers":%s`, m.Ask.State, encoded)
			}
		},
		start: func(c oneCall) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp/execute", strings.NewReader(body(c, "")))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			done := make(chan bool)
			go func() {
				defer close(done)
				if response, err := http.DefaultClient.Do(r); err == nil {
					response.Body.Close()
					t.Error("the call got a response")
				}
			}()
			t.Cleanup(func() { <-done })
		},
		cancel: func(string) { cancel() },
	}
}

// TestConversations_sameOnEveryTransport runs clients of all transports and
// eras with forms, sampling, roots, approvals and a cancelled call. Input
// requests, outcomes, hook events, audit records and spans are the same, except
// for [mayDiffer] and the way to cancel.
func TestConversations_sameOnEveryTransport(t *testing.T) {
	type record struct {
		Name    string
		Asked   []string
		Outcome outcome
		Events  []string
	}
	type all struct {
		Records      []record
		Audit, Spans []string
	}
	var want all
	for i, open := range askClients {
		t.Run(open.name, func(t *testing.T) {
			v := newEvidence(t, conversationTools)
			var got all
			t.Run("calls", func(t *testing.T) { // the client ends before the server
				client := open.open(t, v.serve())
				for _, c := range conversations {
					asked, outcome := client.talk(c)
					slices.Sort(asked)
					got.Records = append(got.Records, record{c.name, asked, outcome, v.take()})
				}
				client.start(oneCall{"wait", `{}`})
				v.until(t, func(events []string) bool { return len(events) == 1 })
				client.cancel("no more")
				v.until(t, func(events []string) bool { return len(events) == 2 })
				got.Records = append(got.Records, record{Name: "cancelled", Events: v.take()})
			})
			v.close()
			got.Audit, got.Spans = v.records(), v.spans()
			closes := open.name == "REST" || open.name == "modern HTTP"
			for _, lines := range [][]string{got.Records[len(got.Records)-1].Events, got.Audit} {
				lines[len(lines)-1] = withoutCancelSource(t, lines[len(lines)-1], closes)
			}
			if i == 0 {
				want = got
				checkConversations(t, got.Records[0].Outcome, len(got.Audit), len(got.Spans))
				for _, r := range got.Records[:len(conversations)] {
					if r.Outcome.Code == "INVALID_INPUT" || r.Name != "no approval needed" && len(r.Asked) == 0 {
						t.Errorf("%s: asked %q, %+v", r.Name, r.Asked, r.Outcome)
					}
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s and %s differ (-first +this)\n%s", askClients[0].name, open.name, diff)
			}
		})
	}
}

// checkConversations makes sure that there was something to compare.
func checkConversations(t *testing.T, first outcome, records, spans int) {
	t.Helper()
	if first.Value != "Ann" && first.Value != `"Ann"` || records <= len(conversations) || spans <= len(conversations) {
		t.Errorf("%+v, %d records, %d spans", first, records, spans)
	}
}

// withoutCancelSource checks the record of a cancelled call, and removes the source:
// a notification with a reason, or else a closed connection.
func withoutCancelSource(t *testing.T, line string, closes bool) string {
	t.Helper()
	output := `"cancel_reason":"no more","cancelled_by":"client",`
	if closes {
		output = `"cancel_reason":"the connection was closed","cancelled_by":"connection",`
	}
	before, after, found := strings.Cut(line, output)
	if !found {
		t.Errorf("%s lacks %s", line, output)
	}
	return before + after
}

// until waits until the events since the last take are as wanted.
func (v *evidence) until(t *testing.T, want func(events []string) bool) {
	t.Helper()
	timeout := time.After(testTimeout)
	for {
		v.mu.Lock()
		is, notified := want(v.events), v.changed
		v.mu.Unlock()
		if is {
			return
		}
		select {
		case <-notified:
		case <-timeout:
			t.Fatal("the calls did not end")
		}
	}
}

// TestAsk_sideEffectsOnce counts the side effects of a script that posts and
// asks in turn, for clients of the official SDK: three, in the era that carries
// the state and in the era with requests on the connection.
func TestAsk_sideEffectsOnce(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			var posts atomic.Int64
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, "%s#%d", strings.TrimPrefix(r.URL.Path, "/"), posts.Add(1))
			}))
			defer api.Close()
			host := strings.TrimPrefix(api.URL, "http://")
			url := listen(t, frontOf(t, fmt.Sprintf(`
tool "deploy" {
  timeout = "10s"
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
    const seen = [await post("plan")];
    seen.push((await elicit({ message: "first", schema })).content.name, await post("deploy"));
    seen.push((await elicit({ message: "second", schema })).content.name, await post("finish"));
    return seen.join(" ");
  JS
}
`, host, host)))
			client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message}}, nil
				},
			})
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy"})
			if err != nil {
				t.Fatal(err)
			}
			const want = "plan#1 first deploy#2 second finish#3"
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != want || posts.Load() != 3 {
				t.Errorf("got %+v after %d posts, want %s", result.Content[0], posts.Load(), want)
			}
		})
	}
}

// TestApproval_goSDK: users approve or decline with the official SDK. If a
// client cannot ask its user, the call is denied.
func TestApproval_goSDK(t *testing.T) {
	url := listen(t, frontOf(t, `
tool "wipe" {
  input "disk" { type = string }
  run = "return 'wiped ' + input.disk"
}
policy "ask" {
  requires_approval = "args.disk != 'scratch'"
  reason            = "All of the disk is lost"
}
`))
	const shown = "All of the disk is lost\n\nTool: wipe\nArguments: {\"disk\":\"sda\"}"
	const unasked = "the call needs the approval of a user, and the client does not support it: All of the disk is lost"
	for _, test := range []struct{ action, disk, want string }{
		{"accept", "sda", "wiped sda"}, {"decline", "sda", "the user did not approve the call"},
		{"cancel", "sda", "the user did not approve the call"}, {"", "sda", unasked}, {"", "scratch", "wiped scratch"},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
			var options mcp.ClientOptions
			if test.action != "" {
				options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if r.Params.Message != shown {
						t.Errorf("%s: message to the user: %q", version, r.Params.Message)
					}
					return &mcp.ElicitResult{Action: test.action}, nil
				}
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &options)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "wipe", Arguments: map[string]any{"disk": test.disk}})
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != test.want || result.IsError == (test.want[:5] == "wiped") {
				t.Errorf("%s, %q: got %+v, want %s", version, test.action, result.Content[0], test.want)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
