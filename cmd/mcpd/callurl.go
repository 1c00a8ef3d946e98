package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

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

// execute makes one leg of a call.
func (r remote) execute(ctx context.Context, request map[string]any) (a answer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return a, fmt.Errorf("encode request: %w", err)
	}
	return a, r.exchange(ctx, http.MethodPost, "/mcp/execute", body, &a)
}

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

// tools returns the tools that the server lists.
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
