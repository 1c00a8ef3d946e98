package serve_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestUsersOfAllErasApproveCalls with the official SDK, or refuse to; a client that
// cannot ask its user has the call denied.
func TestUsersOfAllErasApproveCalls(t *testing.T) {
	url := listen(t, frontOf(t, `
tool "wipe" {
  input "disk" { type = string }
  run = "return 'wiped ' + input.disk"
}
policy "ask" {
  requires_approval = "args.disk != 'scratch'"
  reason            = "All of the disk is lost"
}
`))
	const shown = "All of the disk is lost\n\nTool: wipe\nArguments: {\"disk\":\"sda\"}"
	const unasked = "the call needs the approval of a user, and the client cannot be asked for it: All of the disk is lost"
	for _, test := range []struct{ action, disk, want string }{
		{"accept", "sda", "wiped sda"}, {"decline", "sda", "the user did not approve the call"},
		{"cancel", "sda", "the user did not approve the call"}, {"", "sda", unasked}, {"", "scratch", "wiped scratch"},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
			var options mcp.ClientOptions
			if test.action != "" {
				options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if r.Params.Message != shown {
						t.Errorf("%s: the user is shown %q", version, r.Params.Message)
					}
					return &mcp.ElicitResult{Action: test.action}, nil
				}
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &options)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "wipe", Arguments: map[string]any{"disk": test.disk}})
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(*mcp.TextContent); !ok || text.Text != test.want || result.IsError == (test.want[:5] == "wiped") {
				t.Errorf("%s, %q: got %+v, want %s", version, test.action, result.Content[0], test.want)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
