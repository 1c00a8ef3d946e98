package telemetry_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/serve"
)

// Package serve answers /metrics once the engine has the extension.
func Example() {
	server, err := engine.New(engine.Options{
		Name: "shop",
		Files: engine.Files{
			Tools:     fstest.MapFS{"add.hcl": {Data: []byte(`tool "add" { run = "return 1 + 1" }`), Mode: 0o644}},
			LookupEnv: os.LookupEnv, // OTEL_EXPORTER_OTLP_ENDPOINT and its like
		},
		Scripts:    engine.Scripts{Executor: scripting.Inline()},
		Extensions: []engine.Extension{telemetry.New(telemetry.Options{ReadFile: os.ReadFile})},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close(context.Background())
	handler, err := serve.New(server, serve.Options{}).Handler()
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(handler)
	defer site.Close()
	if _, err := server.Call(context.Background(), "add", nil); err != nil {
		log.Fatal(err)
	}
	response, err := http.Get(site.URL + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "mcpd_calls_total") {
			fmt.Println(lines.Text())
		}
	}
	// Output: mcpd_calls_total{kind="tool",name="add",outcome="ok",via="client"} 1
}
