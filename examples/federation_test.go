package examples_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

func TestTools_ofBothServers(t *testing.T) {
	var got []string
	for _, tool := range federated(t).Snapshot().Tools() {
		got = append(got, tool.Name()+": "+*tool.Metadata().Description)
	}
	want := []string{
		"crm_delete_customer: Deletes a customer permanently. Ask first.", "crm_list_customers: Lists all customers.",
		"list_orders: Lists the orders of a customer.", "remind: Sends a customer a reminder.",
	}
	got = append(got[1:3:3], got[4], got[5]) // next to those of the codeact block
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadmeProgram(t *testing.T) {
	text, err := os.ReadFile("federation/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(text), "code='\n")
	program, _, found := strings.Cut(program, "'\n```")
	if !found {
		t.Fatal("README.md shows no program")
	}
	if got := runCode(t, federated(t), program, "run"); string(got.Result) != `["Ada: 1900"]` {
		t.Errorf("the program returns %s", got.Result)
	}
}

func TestCode_deniedTool(t *testing.T) {
	server := federated(t)
	_, err := server.Call(t.Context(), "run_code", map[string]any{"code": `await crm.delete_customer({ id: "C-1" })`})
	if err == nil || !strings.Contains(err.Error(), `crm has no tool "delete_customer"`) {
		t.Errorf("error for the code: %v", err)
	}
	result, err := server.Call(t.Context(), "crm_delete_customer", map[string]any{"id": "C-1"})
	if err != nil || string(result.Value) != `"C-1 is deleted"` {
		t.Errorf("called directly: %s, %v", result.Value, err)
	}
}

func TestPlan(t *testing.T) {
	got := runCode(t, federated(t), `await remind({ customer: "C-1" })`, "plan")
	want := `"would remind C-1" [{"tool":"remind","outcome":"dry_run","arguments":{"customer":"C-1"}}]`
	if ran := string(got.Result) + " " + string(got.Calls); ran != want {
		t.Errorf("got %s, want %s", ran, want)
	}
}

func TestFederation_testBlocks(t *testing.T) {
	passes(t, load(t, "federation", engine.Options{Mode: engine.Offline}), 2)
}

// codeResult is the result of a program.
type codeResult struct{ Result, Calls json.RawMessage }

func runCode(t *testing.T, server *engine.Server, program, mode string) (told codeResult) {
	t.Helper()
	result, err := server.Call(t.Context(), "run_code", map[string]any{"code": program, "mode": mode})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result.Value, &told); err != nil {
		t.Fatal(err)
	}
	return told
}

// federated returns a server of the example, connected to the upstream server.
func federated(t *testing.T) *engine.Server {
	t.Helper()
	return load(t, "federation", engine.Options{
		Files: engine.Files{Vars: map[string]engine.VarValue{"crm_url": {Text: crm(t), Origin: "the test"}}},
	})
}

// crm runs the server of customers until the test ends.
func crm(t *testing.T) (url string) {
	t.Helper()
	server, err := engine.New(engine.Options{Name: "crm", Files: engine.Files{Tools: engine.Dir("federation/crm.d")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- serve.New(server, serve.Options{Address: "127.0.0.1:0", OnListen: func(a net.Addr) { listening <- a }}).Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case address := <-listening:
		return "http://" + address.String() + "/mcp"
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return ""
	}
}
