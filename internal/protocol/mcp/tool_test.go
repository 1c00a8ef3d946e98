package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

func TestEntry_capability(t *testing.T) {
	for _, test := range []struct {
		name string
		info mcp.ToolInfo
		want string
	}{
		{
			"with everything",
			mcp.ToolInfo{
				Name: "t", Title: "T", Description: "Does <it> & \"more\".", HasDescription: true,
				InputSchema:  json.RawMessage("{\n  \"type\": \"object\"\n}"),
				OutputSchema: json.RawMessage(`{"type":"string"}`), TimeoutMS: 1500, Idempotent: true,
			},
			`{"name":"t","description":"Does <it> & \"more\".","input_schema":{"type":"object"},` +
				`"output_schema":{"type":"string"},"timeout_ms":1500,"idempotent":true}`,
		},
		{
			"with nothing",
			mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)},
			`{"name":"t","description":null,"input_schema":{"type":"object"},"output_schema":{},"timeout_ms":0,"idempotent":false}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool, err := mcp.NewTool(test.info)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(tool.Capability())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewTool_invalid(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	for _, test := range []struct {
		name string
		info mcp.ToolInfo
		want string
	}{
		{"no name", mcp.ToolInfo{InputSchema: object}, "needs a name"},
		{"no schema", mcp.ToolInfo{Name: "t"}, "input schema: "},
		{"a schema that is no object", mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`true`)}, "input schema: it must be an object"},
		{"a schema of another type", mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`{"type":"string"}`)}, `must be "object"`},
		{"an output schema that is broken", mcp.ToolInfo{Name: "t", InputSchema: object, OutputSchema: json.RawMessage(`{`)}, "output schema: "},
		{
			"an annotation in the wrong place",
			mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`{"type":"object","x-mcp-header":"A"}`)}, "x-mcp-header",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := mcp.NewTool(test.info)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}
