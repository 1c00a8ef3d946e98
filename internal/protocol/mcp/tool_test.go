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
			"all fields",
			mcp.ToolInfo{
				Name: "t", Title: "T", Description: "Does <it> & \"more\".", HasDescription: true,
				InputSchema:  json.RawMessage("{\n  \"type\": \"object\"\n}"),
				OutputSchema: json.RawMessage(`{"type":"string"}`), TimeoutMS: 1500, Idempotent: true,
			},
			`{"name":"t","description":"Does <it> & \"more\".","input_schema":{"type":"object"},` +
				`"output_schema":{"type":"string"},"timeout_ms":1500,"idempotent":true}`,
		},
		{
			"no fields",
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
		{"schema not an object", mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`true`)}, "input schema: it must be an object"},
		{"schema of another type", mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`{"type":"string"}`)}, `must be "object"`},
		{"invalid output schema", mcp.ToolInfo{Name: "t", InputSchema: object, OutputSchema: json.RawMessage(`{`)}, "output schema: "},
		{
			"misplaced annotation",
			mcp.ToolInfo{Name: "t", InputSchema: json.RawMessage(`{"type":"object","x-mcp-header":"A"}`)}, "x-mcp-header",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := mcp.NewTool(test.info)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}
