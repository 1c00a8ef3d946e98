package serve_test

import (
	"strings"
	"testing"
)

// TestAScriptsOwnErrorReachesItsClient: with its code and data where there is
// JSON-RPC, and as EXECUTION_ERROR where there is none.
func TestAScriptsOwnErrorReachesItsClient(t *testing.T) {
	front := frontOf(t, `
tool "teapot" {
  run = <<JS
    throw new RpcError(418, "short and stout", { handle: "here" });
  JS
}
`)
	url := listen(t, front)
	header, _ := post(t, url+"/mcp", initialize, nil)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	post(t, url+"/mcp", ready, session)
	modern := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "teapot"}
	teapot := oneCall{"teapot", "{}"}
	const wire = `{"jsonrpc":"2.0","id":1,"error":{"code":418,"message":"short and stout","data":{"handle":"here"}}}`
	for _, row := range []struct {
		name, path, body, want string
		header                 map[string]string
	}{
		{"modern", "/mcp", request(metaModern, teapot), wire, modern},
		{"legacy", "/mcp", request(metaAgent, teapot), wire, session},
		{"REST", "/mcp/execute", `{"tool":"teapot"}`, `{"error":"EXECUTION_ERROR","message":"short and stout"}`, nil},
	} {
		if _, answer := post(t, url+row.path, row.body, row.header); strings.TrimSpace(string(answer)) != row.want {
			t.Errorf("%s: %s", row.name, answer)
		}
	}
}
