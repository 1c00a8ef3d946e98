package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

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
