package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

// remote is a client of a running server.
type remote struct {
	client *http.Client
	base   string // URL without the routes
	socket string // path of the Unix socket; empty for TCP
	// credential is sent with each request, unless it is empty; from names its source.
	credential, from string
}

// remoteOf returns a client for a URL or for unix:PATH. It does not follow redirects,
// because the arguments of a call are only for the named server.
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

// maxAnswer is the maximum size of a response, in bytes.
const maxAnswer = 64 << 20

// callURL calls a tool of a running server over the REST API.
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

// baseOf returns a typed URL without the route.
func baseOf(typed string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(typed, "/"), "/mcp"), "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return base
}

// remoteTool is a tool in the list of a server.
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

// exchange sends one request and decodes the JSON response, whatever its status. Errors
// do not contain a password of the URL.
func (r remote) exchange(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("invalid server URL: %w", causeOf(err))
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	status, content, err := r.send(request)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s answered %s, which is not the REST API of mcpd", r.nameOf(request), status)
	}
	return nil
}

// send sends a request and returns the status and the body of the response. It returns
// a [*unauthorizedError] if authentication fails. Errors contain neither a password of the URL
// nor a credential.
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
		return "", nil, &unauthorizedError{server: r.nameOf(request), from: r.from}
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", nil, fmt.Errorf("read response of %s: %w", r.nameOf(request), err)
	}
	return response.Status, content, nil
}

// nameOf returns the address of a request for messages.
func (r remote) nameOf(request *http.Request) string {
	if r.socket != "" {
		return "unix:" + r.socket
	}
	return request.URL.Redacted()
}

// causeOf returns the error of a request without its URL.
func causeOf(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// revision is the MCP revision that the command line uses.
const revision = "2026-07-28"

// missingCapability is the MCP error code for an input request that the client does not
// support.
const missingCapability = -32021

// ask sends one MCP request to the server. name is the tool, prompt or URI; it may be
// empty.
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
		return reply{}, fmt.Errorf("invalid server URL: %w", causeOf(err))
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

// answered finds the response in a body: JSON, or the last event of a stream.
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
			code = "EXECUTION_ERROR" // as for a local call that asks
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

// answerData is the data that mcpd adds to an MCP error.
type answerData struct {
	Code, Message, Trace string
	Details              json.RawMessage
}

// keyVariable is the environment variable with the credential for the server.
const keyVariable = "MCPD_API_KEY"

// remote returns the server of --url with the credential. The credential is not a flag,
// since all users of a machine can see flags.
func (f *callFlags) remote(e env) (remote, error) {
	r := remoteOf(f.url)
	if err := f.setTLS(e, &r); err != nil {
		return r, err
	}
	if f.keyFile != "" {
		text, err := e.disk.readFile(f.keyFile)
		if err != nil {
			return r, usageError("--key-file: %v", err)
		}
		r.credential, r.from = strings.TrimSpace(string(text)), f.keyFile
	} else if text, _ := e.vars.lookup(keyVariable); text != "" {
		r.credential, r.from = strings.TrimSpace(text), keyVariable
	}
	if r.from != "" && (r.credential == "" || strings.ContainsFunc(r.credential, func(c rune) bool { return c <= ' ' || c > '~' })) {
		return r, usageError("%s does not hold an API key or token: it must be one line without spaces", r.from)
	}
	return r, nil
}

// setTLS applies --cert, --key and --cacert to the client of r.
func (f *callFlags) setTLS(e env, r *remote) error {
	if f.cert == "" && f.key == "" && f.caCert == "" {
		return nil
	}
	if (f.cert == "") != (f.key == "") {
		return usageError("--cert and --key belong together")
	}
	if !strings.HasPrefix(r.base, "https://") {
		return usageError("--cert, --key and --cacert need an https URL")
	}
	config := &tls.Config{}
	if f.cert != "" {
		cert, err := e.disk.readFile(f.cert)
		if err != nil {
			return usageError("--cert: %v", err)
		}
		key, err := e.disk.readFile(f.key)
		if err != nil {
			return usageError("--key: %v", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return usageError("--cert %s, --key %s: %v", f.cert, f.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if f.caCert != "" {
		text, err := e.disk.readFile(f.caCert)
		if err != nil {
			return usageError("--cacert: %v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return usageError("--cacert: %s has no PEM certificate", f.caCert)
		}
	}
	r.client.Transport = &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	return nil
}

// unauthorizedError is the error of a server that requires authentication.
type unauthorizedError struct{ server, from string }

// Error explains how to authenticate. It contains no credential.
func (t *unauthorizedError) Error() string {
	if t.from == "" {
		return fmt.Sprintf("%s requires authentication; pass an API key or an access token with --key-file, or set %s (mcpd key new creates a key; the identity provider issues tokens)", t.server, keyVariable)
	}
	return fmt.Sprintf("%s does not accept the credential from %s; mcpd key list shows the active keys, and the server logs why it rejects a token", t.server, t.from)
}

// unanswered returns the error of a verb that got no response, or failed to
// authenticate.
func (f *callFlags) unanswered(e env, err error) error {
	var refused *unauthorizedError
	if errors.As(err, &refused) {
		return printAnswer(e, answer{Error: "POLICY_DENIED", Message: refused.Error()}, f.raw)
	}
	return findingsError("%v", err)
}
