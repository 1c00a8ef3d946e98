package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/serve"
)

// TestMain starts a script worker when the executor starts this program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestProgram_servesGoAndFileTools(t *testing.T) {
	url := start(t)
	for _, test := range []struct{ name, request, want string }{
		{
			"a tool in Go",
			`{"tool":"track_order","arguments":{"id":"O-7"},"agent":{"agent_id":"ada"}}`,
			`200 {"result":{"principal":"anonymous","state":"O-7 is on its way to ada"}}`,
		},
		{
			"a tool in a file",
			`{"tool":"price_order","arguments":{"prices":[100,250]},"agent":{"agent_id":"ada"}}`,
			`200 {"result":{"total":350}}`,
		},
		{
			"the policy in Go covers the one",
			`{"tool":"track_order","arguments":{"id":"O-7"}}`,
			`403 {"error":"POLICY_DENIED","message":"say who you are"}`,
		},
		{
			"and the other",
			`{"tool":"price_order","arguments":{"prices":[1]}}`,
			`403 {"error":"POLICY_DENIED","message":"say who you are"}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			response, err := http.Post(url+"/mcp/execute", "application/json", strings.NewReader(test.request))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			got := response.Status[:3] + " " + strings.TrimSpace(string(body))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestExample(t *testing.T) {
	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: files}, Scripts: engine.Scripts{Executor: scripting.Inline()}, Policies: []engine.Policy{named}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	results, err := server.RunTests(t.Context(), nil)
	if err != nil || len(results) != 1 || len(results[0].Failures) > 0 {
		t.Errorf("got %+v, %v, want one test that passes", results, err)
	}
}

func TestProgram_length(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines >= 80 {
		t.Errorf("main.go has %d lines, README.md promises fewer than 80", lines)
	}
}

// start runs the program on a free port until the test ends.
func start(t *testing.T) (url string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	listening, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, self, serve.Options{Address: "127.0.0.1:0", OnListen: func(at net.Addr) { listening <- at }})
	}()
	select {
	case at := <-listening:
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return "http://" + at.String()
	case err := <-ended:
		stop()
		t.Fatal(err)
		return ""
	}
}
