package examples_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestPad_perUserAndDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "mcpd.db")
	server := load(t, "notes", engine.Options{StatePath: path})
	passes(t, server, 5)
	got := []string{
		callAs(t, server, "ada", "add_note", `{"text":"buy milk"}`),
		callAs(t, server, "bob", "add_note", `{"text":"call Ada"}`),
		callAs(t, server, "ada", "add_note", `{"text":"buy bread"}`),
		callAs(t, server, "ada", "remove_note", `{"number":1}`),
		callAs(t, server, "ada", "remove_note", `{"number":1}`),
	}
	if err := server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	server = load(t, "notes", engine.Options{StatePath: path})
	got = append(got,
		callAs(t, server, "bob", "visits", `{}`), // closing ran the hooks of all calls
		callAs(t, server, "ada", "list_notes", `{}`),
		callAs(t, server, "bob", "list_notes", `{"begins":"buy"}`),
		callAs(t, server, "bob", "add_note", `{"text":"buy milk"}`),
	)
	want := []string{
		`1`, `1`, `2`, `"removed"`, `EXECUTION_ERROR: there is no note 1`,
		`{"add_note":3,"remove_note":1}`, `[{"number":2,"text":"buy bread"}]`, `[]`, `2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// callAs returns a tool's response to a user.
func callAs(t *testing.T, server *engine.Server, user, tool, arguments string) string {
	result := server.Execute(t.Context(), call.Request{
		Name: tool, Arguments: json.RawMessage(arguments),
		Caller: identity.Caller{Principal: identity.Principal{ID: user, Kind: identity.KindLocal}},
	})
	if result.Err != nil {
		return result.Err.Error()
	}
	return string(result.Value)
}
