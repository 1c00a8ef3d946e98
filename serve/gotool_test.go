package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// TestGoTool_detachedHTTP1: the function blocks its goroutine, so the
// connection cannot serve another request.
func TestGoTool_detachedHTTP1(t *testing.T) {
	url := listen(t, newFront(t, &hookLog{}))
	for tool, closes := range map[string]bool{"go_stuck": true, "go_add": false} {
		args := `{"a":1,"b":2}`
		if tool == "go_stuck" {
			args = `{}`
		}
		response, text := toMCP(t, http.DefaultClient, url, oneCall{tool, args})
		if response.StatusCode != http.StatusOK || response.Close != closes || response.ContentLength != int64(len(text)) {
			t.Errorf("%s: status %d, closes %v, %d bytes of %d", tool, response.StatusCode, response.Close, len(text), response.ContentLength)
		}
	}
}

// TestGoTool_http2: a stream would only end with the function, and its
// connection serves other requests too.
func TestGoTool_http2(t *testing.T) {
	handler, err := newFront(t, &hookLog{}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	response, text := toMCP(t, server.Client(), server.URL, oneCall{"go_stuck", `{}`})
	if response.ProtoMajor != 2 || read(t, text).Code != "TIMEOUT" {
		t.Errorf("over %s: %s", response.Proto, text)
	}
}

// toMCP makes a call, and returns the response with its whole body.
func toMCP(t *testing.T, client *http.Client, url string, c oneCall) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(request(metaModern, c)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {c.tool},
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, text
}

// adaState are objects of "ada": a suspended task, and the state of a suspended
// call.
type adaState struct{ task, state string }

const askCall = `"name":"asks","arguments":{}`

// ownIDs match members that differ in all responses.
var ownIDs = regexp.MustCompile(`"(call_id|request_id|mcpd/call)":"[^"]*"`)

// asked has "ada" make a call that asks, inline and as a task.
func (m *matrix) asked(at site, ada http.Header) adaState {
	m.t.Helper()
	call := mcptest.Request{Method: "tools/call", Name: "asks", Params: askCall}
	inPlace := m.inPlace(at, call, ada)
	state := decoded[struct{ Result struct{ RequestState string } }](m.t, inPlace).Result.RequestState
	made := decoded[struct{ Result task }](m.t, m.modern(at, call, ada).text).Result.ID
	if state == "" || made == "" {
		m.t.Fatalf("response %s, task %q", inPlace, made)
	}
	m.until(at, made, "input_required", ada)
	return adaState{made, state}
}

// until waits until a task is notified with a status, and returns the
// notification.
func (m *matrix) until(at site, id, status string, credential http.Header) string {
	m.t.Helper()
	r := mcptest.Request{Method: "subscriptions/listen", Params: fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, id)}
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	response, events := m.open(ctx, at, http.MethodPost, "/mcp", messageOf(1, r, metaMatrix), joined(modernHeaders(r), credential))
	defer response.Body.Close()
	for {
		notified := events()
		if notified == nil {
			m.t.Fatalf("the stream ended before the task is %s", status)
		}
		if strings.Contains(string(notified), `"status":"`+status+`"`) {
			return string(notified)
		}
	}
}

// answersTo returns the responses for a state and a task.
func answersTo(name string) string {
	return fmt.Sprintf(`"inputResponses":{"who":{"action":"accept","content":{"name":%q}}}`, name)
}

// reaches returns, by method, requests for one of her objects and for an
// unknown one: other principals get the same response to both. A method without
// an object has one request, and its response shows nothing of hers.
func reaches(h adaState) map[string][]mcptest.Request {
	const ref = `"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"a","value":""}`
	pair := func(method, real, never string, params string) []mcptest.Request {
		return []mcptest.Request{
			{Method: method, Name: real, Params: fmt.Sprintf(params, real)}, {Method: method, Name: never, Params: fmt.Sprintf(params, never)},
		}
	}
	const never = "never-was"
	unnamed := func(requests []mcptest.Request) []mcptest.Request {
		for i := range requests {
			requests[i].Name = ""
		}
		return requests
	}
	all := map[string][]mcptest.Request{
		"tools/call":           pair("tools/call", "private", never, `"name":%q,"arguments":{}`),
		"resources/read":       pair("resources/read", "test://private", "test://never-was", `"uri":%q`),
		"prompts/get":          pair("prompts/get", "private", never, `"name":%q`),
		"completion/complete":  unnamed(pair("completion/complete", "private", never, ref)),
		"tasks/get":            pair("tasks/get", h.task, never, `"taskId":%q`),
		"tasks/cancel":         pair("tasks/cancel", h.task, never, `"taskId":%q`),
		"tasks/update":         pair("tasks/update", h.task, never, `"taskId":%q,`+answersTo("nobody")),
		"subscriptions/listen": unnamed(pair("subscriptions/listen", h.task, never, `"notifications":{"resourceSubscriptions":["test://private"],"taskIds":[%q]}`)),
	}
	for _, method := range []string{"server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		all[method] = []mcptest.Request{{Method: method}}
	}
	return all
}

// TestState_otherPrincipal: others cannot access tasks, suspended calls, or
// what policies hide, and cannot learn whether they exist.
func TestState_otherPrincipal(t *testing.T) {
	m := newMatrix(t, otherCallerBlocks())
	ada := m.corp.token(nil)
	for _, at := range m.sites() {
		h := m.asked(at, ada)
		bodies := m.traces().Bodies
		known := reaches(h)
		for _, r := range mcptest.Requests() {
			if r.Modern && len(known[r.Method]) == 0 {
				t.Errorf("no requests for %s", r.Method)
			}
		}
		for name, credential := range m.otherCallers() {
			for method, requests := range known {
				var answers []string
				for _, r := range requests {
					text := m.modern(at, r, credential).text
					if r.Params == "" && (strings.Contains(text, `"name":"private"`) || strings.Contains(text, "told")) {
						t.Errorf("%s by %s shows private data to %s: %s", method, at.name, name, text)
					}
					answers = append(answers, anonymized(text, h.task))
				}
				if diff := cmp.Diff(answers[0], answers[len(answers)-1]); diff != "" {
					t.Errorf("%s by %s shows existence to %s (-hers +unknown)\n%s", method, at.name, name, diff)
				}
			}
			m.checkForeignState(at, h.state, name, credential)
		}
		if got := m.traces().Bodies; got != bodies {
			t.Errorf("by %s: others ran %d scripts", at.name, got-bodies)
		}
		m.checkUnaffected(at, h, ada)
	}
}

// anonymized returns a response without the requested names, and without
// generated ids.
func anonymized(text, task string) string {
	text = strings.NewReplacer(task, "X", "test://private", "X", "test://never-was", "X", "private", "X", "never-was", "X").Replace(text)
	return ownIDs.ReplaceAllString(text, `"$1":"-"`)
}

// checkForeignState sends the state of a call with a response as another principal,
// inline and as a task, which must fail.
func (m *matrix) checkForeignState(at site, state, name string, credential http.Header) {
	m.t.Helper()
	r := mcptest.Request{Method: "tools/call", Name: "asks", Params: fmt.Sprintf(`%s,"requestState":%q,%s`, askCall, state, answersTo("nobody"))}
	if got := m.inPlace(at, r, credential); !strings.Contains(got, "belongs to another caller") {
		m.t.Errorf("by %s: %s continued the call of another: %s", at.name, name, got)
	}
	made := decoded[struct{ Result task }](m.t, m.modern(at, r, credential).text).Result.ID
	if notified := m.until(at, made, "failed", credential); strings.Contains(notified, "told") {
		m.t.Errorf("by %s: a task of %s continued the call of another: %s", at.name, name, notified)
	}
}

// inPlace makes an inline call, and returns the response.
func (m *matrix) inPlace(at site, r mcptest.Request, credential http.Header) string {
	m.t.Helper()
	plain := strings.Replace(metaMatrix, `,"extensions":{"io.modelcontextprotocol/tasks":{}}`, "", 1)
	return m.send(at, http.MethodPost, "/mcp", messageOf(1, r, plain), joined(modernHeaders(r), credential)).text
}

// checkUnaffected checks that her objects are unaffected.
func (m *matrix) checkUnaffected(at site, h adaState, ada http.Header) {
	m.t.Helper()
	r := mcptest.Request{Method: "tools/call", Name: "asks", Params: fmt.Sprintf(`%s,"requestState":%q,%s`, askCall, h.state, answersTo("Ann"))}
	if got := m.inPlace(at, r, ada); !strings.Contains(got, "told Ann") {
		m.t.Errorf("by %s: her call ended with %s", at.name, got)
	}
	update := mcptest.Request{Method: "tasks/update", Name: h.task, Params: fmt.Sprintf(`"taskId":%q,%s`, h.task, answersTo("Ann"))}
	m.modern(at, update, ada)
	if notified := m.until(at, h.task, "completed", ada); !strings.Contains(notified, "told Ann") {
		m.t.Errorf("by %s: her task ended with %s", at.name, notified)
	}
}
