// Package notes shows values that outlive their call. See README.md.
package notes

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/examples/exampletest"
	"github.com/mcpd/mcpd/identity"
)

func TestPad_perUserAndDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "mcpd.db")
	server := start(t, path)
	exampletest.Passes(t, server, 5)
	got := []string{
		execute(t, server, "ada", "add_note", `{"text":"buy milk"}`),
		execute(t, server, "bob", "add_note", `{"text":"call Ada"}`),
		execute(t, server, "ada", "add_note", `{"text":"buy bread"}`),
		execute(t, server, "ada", "remove_note", `{"number":1}`),
		execute(t, server, "ada", "remove_note", `{"number":1}`),
	}
	if err := server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	server = start(t, path)
	got = append(got,
		execute(t, server, "bob", "visits", `{}`), // closing ran the hooks of all calls
		execute(t, server, "ada", "list_notes", `{}`),
		execute(t, server, "bob", "list_notes", `{"begins":"buy"}`),
		execute(t, server, "bob", "add_note", `{"text":"buy milk"}`),
	)
	want := []string{
		`1`, `1`, `2`, `"removed"`, `EXECUTION_ERROR: there is no note 1`,
		`{"add_note":3,"remove_note":1}`, `[{"number":2,"text":"buy bread"}]`, `[]`, `2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func start(t *testing.T, path string) *engine.Server {
	t.Helper()
	return exampletest.Load(t, engine.Options{Name: "example", Files: engine.Files{Tools: engine.Dir("tools.d")}, StatePath: path})
}

// execute returns a tool's response to a user.
func execute(t *testing.T, server *engine.Server, user, tool, arguments string) string {
	result := server.Execute(t.Context(), call.Request{
		Name: tool, Arguments: json.RawMessage(arguments),
		Caller: identity.Caller{Principal: identity.Principal{ID: user, Kind: identity.KindLocal}},
	})
	if result.Err != nil {
		return result.Err.Error()
	}
	return string(result.Value)
}
