package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// remote is a server that runs.
type remote struct {
	client *http.Client
	base   string // what stands before the routes
	socket string // the path of its socket; empty when it has an address
	// credential is sent with each request, unless it is empty; from says where
	// it was read.
	credential, from string
}

// remoteOf returns the server that a person names, by a URL or by unix:PATH. Its
// client goes nowhere but where it is sent: the arguments of a call are for the
// server that the user has named.
func remoteOf(typed string) remote {
	r := remote{client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	var onSocket bool
	if r.socket, onSocket = strings.CutPrefix(typed, "unix:"); !onSocket {
		r.base, r.socket = baseOf(typed), ""
		return r
	}
	r.base = "http://localhost"
	r.client.Transport = &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.socket)
		},
	}
	return r
}

// maxAnswer is the most bytes of a server's answer that call reads.
const maxAnswer = 64 << 20

// callURL calls a tool of a running server over the REST wire.
func callURL(ctx context.Context, e env, f *callFlags, tool string, pairs []string) error {
	server, err := f.remote(e)
	if err != nil {
		return err
	}
	tools, err := server.tools(ctx)
	if err != nil {
		return f.unanswered(e, err)
	}
	var schema json.RawMessage
	for _, listed := range tools {
		if listed.Name == tool {
			schema = listed.InputSchema
		}
	}
	arguments, err := argumentsOf(f.args, pairs, schema)
	if err != nil {
		return err
	}
	answers, err := answersOf(e, f.answers)
	if err != nil {
		return err
	}
	request := map[string]any{
		"tool": tool, "arguments": arguments, "agent": map[string]any{"agent_id": "mcpd-call"}, "can": answers.can(),
	}
	for {
		a, err := server.execute(ctx, request)
		if err != nil {
			return f.unanswered(e, err)
		}
		if a.Ask == nil {
			answers.tellUnused(e)
			return printAnswer(e, a, f.raw)
		}
		responses, err := answers.to(a.Ask.Requests)
		if err != nil {
			return err
		}
		request["state"], request["answers"] = a.Ask.State, responses
	}
}

func (r remote) execute(ctx context.Context, request map[string]any) (a answer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return a, fmt.Errorf("encode request: %w", err)
	}
	return a, r.exchange(ctx, http.MethodPost, "/mcp/execute", body, &a)
}

// baseOf returns what stands before the routes in a URL that a person types.
func baseOf(typed string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(typed, "/"), "/mcp"), "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return base
}

// remoteTool is what a server says of a tool.
type remoteTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func (r remote) tools(ctx context.Context) ([]remoteTool, error) {
	var capabilities struct {
		Tools []remoteTool `json:"tools"`
	}
	err := r.exchange(ctx, http.MethodGet, "/mcp/capabilities", nil, &capabilities)
	return capabilities.Tools, err
}

// exchange sends one request and decodes the JSON answer, whatever its status.
// No password in the URL shows in the error.
func (r remote) exchange(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("this is no URL of a server: %w", causeOf(err))
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	status, content, err := r.send(request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s answered %s, which is not the REST wire of mcpd", r.nameOf(request), status)
	}
	return nil
}

// send sends a request and returns the status and the body of the answer. A server
// that does not know who calls is a [*turnedAway]. Neither a password in the URL nor
// a credential shows in the error.
func (r remote) send(request *http.Request) (status string, content []byte, err error) {
	if r.credential != "" {
		request.Header.Set("Authorization", "Bearer "+r.credential)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return "", nil, fmt.Errorf("no server answers at %s: %w", r.nameOf(request), causeOf(err))
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return "", nil, &turnedAway{server: r.nameOf(request), from: r.from}
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", nil, fmt.Errorf("read answer of %s: %w", r.nameOf(request), err)
	}
	return response.Status, content, nil
}

// nameOf returns what people call the place that a request goes to.
func (r remote) nameOf(request *http.Request) string {
	if r.socket != "" {
		return "unix:" + r.socket
	}
	return request.URL.Redacted()
}

// causeOf returns an error of a request without the URL in it.
func causeOf(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// revision is that of MCP which the command line speaks.
const revision = "2026-07-28"

// missingCapability is the code of the error of MCP that says that the client
// cannot be asked what a body asks.
const missingCapability = -32021

// ask sends one request of MCP to the server. name is what the request is of;
// it may be empty.
func (r remote) ask(ctx context.Context, method, name string, params map[string]any) (reply, error) {
	const meta = "io.modelcontextprotocol/"
	params["_meta"] = map[string]any{
		meta + "protocolVersion": revision, meta + "clientInfo": map[string]string{"name": "mcpd", "version": version()},
		meta + "clientCapabilities": struct{}{},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return reply{}, fmt.Errorf("encode request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+"/mcp", bytes.NewReader(body))
	if err != nil {
		return reply{}, fmt.Errorf("this is no URL of a server: %w", causeOf(err))
	}
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {revision}, "Mcp-Method": {method},
	}
	if name != "" {
		request.Header.Set("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte(name))+"?=")
	}
	status, content, err := r.send(request)
	if err != nil {
		return reply{}, err
	}
	got, err := answered(content)
	if err != nil {
		return reply{}, fmt.Errorf("%s answered %s, which is not MCP %s", r.nameOf(request), status, revision)
	}
	return got, nil
}

// answered finds the answer to a request in a body: JSON, or the last event of
// a stream.
func answered(body []byte) (r reply, err error) {
	for line := range strings.Lines(string(body)) {
		if data, ok := strings.CutPrefix(line, "data:"); ok && strings.Contains(data, `"jsonrpc"`) {
			body = []byte(data)
		}
	}
	var message struct {
		Result json.RawMessage
		Error  *struct {
			Code    int
			Message string
			Data    answerData
		}
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return reply{}, err
	}
	switch {
	case message.Error != nil:
		code := "INVALID_INPUT"
		if message.Error.Code == missingCapability {
			code = "EXECUTION_ERROR" // as a call that asks fails without a server
		}
		failed := answer{Error: cmp.Or(message.Error.Data.Code, code), Message: cmp.Or(message.Error.Data.Message, message.Error.Message), Trace: message.Error.Data.Trace}
		if details := message.Error.Data.Details; string(details) != "null" {
			failed.Details = details
		}
		return reply{failed: failed}, nil
	case message.Result == nil:
		return reply{}, errors.New("neither a result nor an error")
	}
	return reply{result: message.Result}, nil
}

// answerData is what mcpd adds to an error of MCP.
type answerData struct {
	Code, Message, Trace string
	Details              json.RawMessage
}

// keyVariable names the variable that holds what proves to a server who calls.
const keyVariable = "MCPD_API_KEY"

// remote returns the server of --url, and what proves to it who calls. That is
// no argument of a verb: all users of a machine can see those.
func (f *callFlags) remote(e env) (remote, error) {
	r := remoteOf(f.url)
	if f.keyFile != "" {
		text, err := e.disk.readFile(f.keyFile)
		if err != nil {
			return r, usage("--key-file: %v", err)
		}
		r.credential, r.from = strings.TrimSpace(string(text)), f.keyFile
	} else if text, _ := e.vars.lookup(keyVariable); text != "" {
		r.credential, r.from = strings.TrimSpace(text), keyVariable
	}
	if r.from != "" && (r.credential == "" || strings.ContainsFunc(r.credential, func(c rune) bool { return c <= ' ' || c > '~' })) {
		return r, usage("%s holds no API key or token, which is one line without spaces", r.from)
	}
	return r, nil
}

// turnedAway is the error of a server that does not know who calls.
type turnedAway struct{ server, from string }

// Error says what to do. It holds no credential.
func (t *turnedAway) Error() string {
	if t.from == "" {
		return fmt.Sprintf("%s wants to know who calls, and no credential was sent; name the file of an API key with --key-file, or set %s (mcpd key new makes keys)", t.server, keyVariable)
	}
	return fmt.Sprintf("%s does not accept the credential of %s; mcpd key list tells which keys of its file are active", t.server, t.from)
}

// unanswered returns the error of a verb whose server gave no answer, or none to
// this caller.
func (f *callFlags) unanswered(e env, err error) error {
	var refused *turnedAway
	if errors.As(err, &refused) {
		return printAnswer(e, answer{Error: "POLICY_DENIED", Message: refused.Error()}, f.raw)
	}
	return findings("%v", err)
}
