package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer is the most bytes of a server's answer that call reads.
const maxAnswer = 64 << 20

// callURL calls a tool of a running server over the REST wire.
func callURL(ctx context.Context, e env, f *callFlags, tool string, pairs []string) error {
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(f.url, "/"), "/mcp"), "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	schema, err := remoteSchema(ctx, base, tool)
	if err != nil {
		return findings("%v", err)
	}
	arguments, err := argumentsOf(f.args, pairs, schema)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"tool": tool, "arguments": arguments, "agent": map[string]any{"agent_id": "mcpd-call"}})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	var a answer
	if err := exchange(ctx, http.MethodPost, base+"/mcp/execute", body, &a); err != nil {
		return findings("%v", err)
	}
	return printAnswer(e, a, f.raw)
}

// remoteSchema returns the input schema of a tool, or nil when the server lists no such tool.
func remoteSchema(ctx context.Context, base, tool string) (json.RawMessage, error) {
	var capabilities struct {
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := exchange(ctx, http.MethodGet, base+"/mcp/capabilities", nil, &capabilities); err != nil {
		return nil, err
	}
	for _, listed := range capabilities.Tools {
		if listed.Name == tool {
			return listed.InputSchema, nil
		}
	}
	return nil, nil
}

// exchange sends one request and decodes the JSON answer, whatever its status.
func exchange(ctx context.Context, method, target string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", target, err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s answered %s, which is not the REST wire of mcpd", target, response.Status)
	}
	return nil
}
