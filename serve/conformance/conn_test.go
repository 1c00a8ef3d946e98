// Package conformance_test runs the scenarios of the official conformance
// suite, which supports only Streamable HTTP, over every transport.
package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is the timeout for operations that take milliseconds. No result
// depends on it.
const timeout = 2 * time.Minute

type object = map[string]any

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// conn is a client that sees all messages of its wire, in order.
type conn struct {
	*testing.T
	*wire
	ctx  context.Context
	era  era
	next int

	answers       map[int]message
	notifications []message // notifications that nextNotification has not returned yet
}

// connect returns a client that has sent nothing yet. It disconnects when the
// test ends.
func connect(t *testing.T, w *wire, e era) *conn {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(func() { cancel(); w.hang() })
	return &conn{T: t, wire: w, ctx: ctx, era: e, answers: map[int]message{}}
}

// everything is the client's default set of capabilities.
var everything = object{"sampling": object{}, "elicitation": object{}, "roots": object{}}

// initialize opens a legacy session.
func (c *conn) initialize(version string) object {
	c.Helper()
	m := c.await(c.post("initialize", object{
		"protocolVersion": version, "capabilities": everything, "clientInfo": object{"name": "wire", "version": "1"},
	}))
	c.notify("notifications/initialized", nil)
	return c.result(m)
}

// post sends a request unchanged, and returns its id.
func (c *conn) post(method string, params object) int {
	c.Helper()
	c.next++
	c.write(object{"jsonrpc": "2.0", "id": c.next, "method": method, "params": params})
	return c.next
}

// start sends a request, with the params that its era requires.
func (c *conn) start(method string, params object) int {
	c.Helper()
	params = maps.Clone(params)
	if params == nil {
		params = object{}
	}
	if c.era == modern {
		meta := object{metaVersion: modern, metaClient: object{"name": "wire", "version": "1"}, metaCapabilities: everything}
		if given, ok := params["_meta"].(object); ok {
			maps.Copy(meta, given)
		}
		params["_meta"] = meta
	}
	return c.post(method, params)
}

// notify sends a notification.
func (c *conn) notify(method string, params object) {
	c.Helper()
	m := object{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	c.write(m)
}

func (c *conn) write(m object) {
	c.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		c.Fatal(err)
	}
	if err := c.send(text); err != nil {
		c.Fatal(err)
	}
}

// ask sends a request and waits for its response.
func (c *conn) ask(method string, params object) message {
	c.Helper()
	return c.await(c.start(method, params))
}

// get is ask for a successful request; it returns the result.
func (c *conn) get(method string, params object) object {
	c.Helper()
	return c.result(c.ask(method, params))
}

// call calls a tool and returns its result.
func (c *conn) call(tool string, more object) object {
	c.Helper()
	params := object{"name": tool, "arguments": object{}}
	maps.Copy(params, more)
	return c.get("tools/call", params)
}

// askError is ask for a request that must fail; it returns the error.
func (c *conn) askError(method string, params object) *fault {
	c.Helper()
	m := c.ask(method, params)
	if m.Error == nil {
		c.Fatalf("%s did not fail: %s", method, m.Result)
	}
	return m.Error
}

func (c *conn) result(m message) object {
	c.Helper()
	if m.Error != nil {
		c.Fatalf("error %d %s %s", m.Error.Code, m.Error.Message, m.Error.Data)
	}
	var result object
	if err := json.Unmarshal(m.Result, &result); err != nil || result == nil {
		c.Fatalf("result: %s, %v", m.Result, err)
	}
	return result
}

// await waits for the response to a request, and stores notifications.
func (c *conn) await(id int) message {
	c.Helper()
	for {
		if m, ok := c.answers[id]; ok {
			delete(c.answers, id)
			return m
		}
		c.read()
	}
}

// nextNotification waits for the next notification of a method, and drops earlier ones.
func (c *conn) nextNotification(method string) object {
	c.Helper()
	for i := 0; ; i++ {
		for i >= len(c.notifications) {
			c.read()
		}
		if m := c.notifications[i]; m.Method == method {
			c.notifications = c.notifications[i+1:]
			return c.params(m)
		}
	}
}

// receivedParams returns the params of the received notifications of a method.
func (c *conn) receivedParams(method string) (params []object) {
	c.Helper()
	for _, m := range c.notifications {
		if m.Method == method {
			params = append(params, c.params(m))
		}
	}
	return params
}

func (c *conn) params(m message) object {
	c.Helper()
	params := object{}
	if m.Params != nil {
		if err := json.Unmarshal(m.Params, &params); err != nil {
			c.Fatalf("%s: %v", m.Params, err)
		}
	}
	return params
}

// read reads the next message, which must be valid in its era.
func (c *conn) read() {
	c.Helper()
	var text []byte
	select {
	case output, ok := <-c.inbox:
		if !ok {
			c.Fatal("the server closed the connection")
		}
		text = output
	case <-c.ctx.Done():
		c.Fatalf("timeout after %d notifications", len(c.notifications))
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		c.Fatalf("%s: %v", text, err)
	}
	if err := c.checkMessage(m); err != nil {
		c.Errorf("%v: %s", err, text)
	}
	if m.Method != "" {
		c.notifications = append(c.notifications, m)
		return
	}
	var id int
	if err := json.Unmarshal(m.ID, &id); err != nil {
		c.Fatalf("unexpected response: %s", text)
	}
	c.answers[id] = m
}

// checkMessage returns an error for an invalid message of the server.
func (c *conn) checkMessage(m message) error {
	var result map[string]json.RawMessage
	_ = json.Unmarshal(m.Result, &result)
	_, typed := result["resultType"]
	_, timed := result["ttlMs"]
	_, scoped := result["cacheScope"]
	switch {
	case m.JSONRPC != "2.0":
		return fmt.Errorf("JSON-RPC version %q", m.JSONRPC)
	case m.Method != "" && m.ID != nil && c.era == modern:
		return fmt.Errorf("a server must not send requests")
	case m.Method != "" && (m.Result != nil || m.Error != nil), m.Method == "" && (m.Result != nil) == (m.Error != nil):
		return fmt.Errorf("ambiguous message")
	case m.Result != nil && typed != (c.era == modern):
		return fmt.Errorf("result of the other era")
	case m.Result != nil && c.era == legacy && (timed || scoped):
		return fmt.Errorf("legacy result with cache hints")
	}
	return nil
}

// era is the last revision of one of the two eras of the protocol.
type era string

const (
	legacy era = "2025-11-25"
	modern era = "2026-07-28"
)

// line is a transport, as clients of one era use it.
type line struct {
	name string
	era  era
	// transport connects the client of the go-sdk, dial sends raw JSON-RPC.
	transport func(*testing.T, *site) mcp.Transport
	dial      func(*testing.T, *site, era) *wire
}

var lines = []line{
	{"Streamable HTTP", legacy, overStreamable, dialStreamable},
	{"Streamable HTTP", modern, overStreamable, dialStreamable},
	{"stdio", legacy, overStdio, dialStdio},
	{"stdio", modern, overStdio, dialStdio},
	{"WebSocket", legacy, overWebSocket, dialWebSocket},
	{"WebSocket", modern, overWebSocket, dialWebSocket},
	{"HTTP+SSE", legacy, overSSE, dialSSE},
	{"HTTP+SSE", modern, overSSE, dialSSE},
}

func overStreamable(_ *testing.T, s *site) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: s.client}
}

func overSSE(_ *testing.T, s *site) mcp.Transport {
	return &mcp.SSEClientTransport{Endpoint: s.url + "/sse", HTTPClient: s.client}
}

func overStdio(t *testing.T, s *site) mcp.Transport {
	output, input := pipes(t, s)
	return &mcp.IOTransport{Reader: output, Writer: input}
}

func overWebSocket(t *testing.T, s *site) mcp.Transport {
	return socket{dialWebSocket(t, s, legacy)}
}

// socket connects the client of the go-sdk, which does not support WebSocket,
// to a wire.
type socket struct{ *wire }

func (s socket) Connect(context.Context) (mcp.Connection, error) { return s, nil }
func (s socket) SessionID() string                               { return "" }
func (s socket) Close() error                                    { s.hang(); return nil }

func (s socket) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case text, ok := <-s.inbox:
		if !ok {
			return nil, io.EOF
		}
		return jsonrpc.DecodeMessage(text)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s socket) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return s.send(text)
}

var listenScenarios = []scenario{
	{"legacy client: list changes", legacyOnly, listChanges},
	{"go-sdk: list changes", both, clientListChanges},
	{"subscription: resource change", modernOnly, resourceChange},
}

// listens is the subscription part of the scenario server-stateless: two
// subscriptions of one client receive only their own notifications.
func listens(v *visit) {
	c := v.connect()
	tools, prompts := c.subscribe(object{"toolsListChanged": true}, nil), c.subscribe(object{"promptsListChanged": true}, nil)
	c.call("test_trigger_tool_change", nil)
	c.call("test_trigger_prompt_change", nil)
	for c.receivedParams("notifications/tools/list_changed") == nil || c.receivedParams("notifications/prompts/list_changed") == nil {
		c.read()
	}
	for _, notified := range c.receivedParams("notifications/tools/list_changed") {
		v.same("subscription to tools", notified["_meta"], tools)
	}
	for _, notified := range c.receivedParams("notifications/prompts/list_changed") {
		v.same("subscription to prompts", notified["_meta"], prompts)
	}
}

// subscribe opens a subscription, which must be acknowledged first, and returns
// the _meta of its notifications.
func (c *conn) subscribe(to, meta object) string {
	c.Helper()
	id := c.start("subscriptions/listen", object{"notifications": to, "_meta": meta})
	c.read()
	last := c.notifications[len(c.notifications)-1]
	acknowledged := c.params(last)
	tag, _ := acknowledged["_meta"].(object)
	if last.Method != "notifications/subscriptions/acknowledged" || tag[metaSubscription] != float64(id) {
		c.Fatalf("first notification: %s %s", last.Method, last.Params)
	}
	return fmt.Sprintf(`{%q: %d}`, metaSubscription, id)
}

func listChanges(v *visit) {
	c := v.connect()
	v.connect().call("test_trigger_tool_change", nil)
	v.same("params", c.nextNotification("notifications/tools/list_changed"), `{}`)
	v.connect().call("test_trigger_prompt_change", nil)
	v.same("params", c.nextNotification("notifications/prompts/list_changed"), `{}`)
}

// clientListChanges changes the lists until the client is notified: a modern
// client subscribes at some time after it has connected.
func clientListChanges(v *visit) {
	tools, prompts := make(chan struct{}, 1), make(chan struct{}, 1)
	ring := func(bell chan struct{}) {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
	session := v.session(&mcp.ClientOptions{
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { ring(tools) },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { ring(prompts) },
	})
	for tool, bell := range map[string]chan struct{}{"test_trigger_tool_change": tools, "test_trigger_prompt_change": prompts} {
		for received := false; !received; {
			if _, err := session.CallTool(v.ctx, &mcp.CallToolParams{Name: tool}); err != nil {
				v.Fatal(err)
			}
			select {
			case <-bell:
				received = true
			default:
			}
		}
	}
}

func resourceChange(v *visit) {
	c := v.connect()
	meta := c.subscribe(object{"resourceSubscriptions": []string{watched}}, nil)
	touch(v, "Watch this.", "Watch that.")
	defer touch(v, "Watch that.", "Watch this.")
	v.same("notification", c.nextNotification("notifications/resources/updated"), `{"uri": "`+watched+`", "_meta": `+meta+`}`)
}
