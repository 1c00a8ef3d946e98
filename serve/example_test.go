package serve_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// Handler mounts all routes in the mux of a program. A program that has no other routes calls Run
// instead.
func ExampleFront_Handler() {
	tools := fstest.MapFS{"add.hcl": {Mode: 0o644, Data: []byte(`
tool "add" {
  input "a" { type = number }
  input "b" { type = number }
  run = "return input.a + input.b"
}
`)}}
	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: tools}, Front: serve.Checks{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	front := serve.New(server, serve.Options{})
	defer front.Shutdown(context.Background()) // closes the engine too
	handler, err := front.Handler()
	if err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(handler)
	defer web.Close()

	response, err := http.Post(web.URL+"/mcp/execute", "application/json", strings.NewReader(`{"tool": "add", "arguments": {"a": 2, "b": 3}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Println(strings.TrimSpace(string(body)), err)
	// Output: {"result":5} <nil>
}

// Run serves until its context ends, and then shuts down. OnListen gets the bound address.
func ExampleFront_Run() {
	server, err := engine.New(engine.Options{Name: "shop", Front: serve.Checks{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	front := serve.New(server, serve.Options{
		Address: "127.0.0.1:0",
		OnListen: func(address net.Addr) {
			fmt.Println("listening over", address.Network())
			cancel() // a program cancels the context at a signal
		},
	})
	fmt.Println(front.Run(ctx))
	// Output:
	// listening over tcp
	// <nil>
}

// With Checks, a load fails if the front could not serve the files. Here other machines could call
// every tool without authentication.
func ExampleChecks() {
	config := fstest.MapFS{"mcpd.hcl": {Mode: 0o644, Data: []byte(`
listen {
  address = "0.0.0.0:8080"
}
`)}}
	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Config: config}, Front: serve.Checks{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close(context.Background())
	report, err := server.Load(context.Background())
	fmt.Println(err != nil)
	for _, problem := range report.Problems {
		fmt.Println(problem.Range, problem.Summary)
	}
	// Output:
	// true
	// mcpd.hcl:3:13 "0.0.0.0:8080" is not a loopback address, and there is no authentication with TLS: anyone who reaches it could call every tool
}
