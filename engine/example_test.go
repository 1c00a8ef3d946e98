package engine_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// newExample returns a server of an example, with trusted files.
func newExample(o engine.Options) *engine.Server {
	o.Name, o.Scripts.Executor = "shop", scripting.Inline()
	server, err := engine.New(o)
	if err != nil {
		log.Fatal(err)
	}
	return server
}

// double is a tool file.
var double = fstest.MapFS{"double.hcl": {Data: []byte(`
tool "double" {
  input "n" { type = integer }
  run = "return input.n * 2"
}
`), Mode: 0o644}}

// Isolation: scripts run in worker processes, which the program starts from its own binary.
func Example_isolation() {
	main := func() {
		if len(os.Args) == 2 && os.Args[1] == "worker" {
			if err := worker.Main(os.Stdin, os.Stdout); err != nil {
				log.Fatal(err)
			}
			return
		}
		self, err := os.Executable()
		if err != nil {
			log.Fatal(err)
		}
		bodies, err := worker.NewExecutor(worker.Options{}, self, "shop", "worker")
		if err != nil {
			log.Fatal(err)
		}
		server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: engine.Dir("tools.d")}, Scripts: engine.Scripts{Executor: bodies}})
		if err != nil {
			log.Fatal(err)
		}
		defer server.Close(context.Background())
	}
	_ = main
}

// A Go tool gets its schemas from the types of its function.
func ExampleAddTool() {
	server := newExample(engine.Options{})
	defer server.Close(context.Background())
	type order struct {
		ID string `json:"id" jsonschema:"the number of the order"`
	}
	track := func(_ context.Context, agent identity.Agent, in order) (string, error) {
		return in.ID + " is on its way", nil
	}
	if err := engine.AddTool(server, engine.ToolOptions{Name: "track_order"}, track); err != nil {
		log.Fatal(err)
	}
	result, err := server.Call(context.Background(), "track_order", order{ID: "O-7"})
	fmt.Println(string(result.Value), err)
	// Output: "O-7 is on its way" <nil>
}

// Tool files and Go tools work together: Tools is an embed.FS, engine.Dir or any other fs.FS.
func ExampleServer_Load() {
	server := newExample(engine.Options{Files: engine.Files{Tools: double}})
	defer server.Close(context.Background())
	if _, err := server.Load(context.Background()); err != nil {
		log.Fatal(err) // a diag.List with all errors and their positions
	}
	result, err := server.Call(context.Background(), "double", map[string]int{"n": 21})
	fmt.Println(string(result.Value), err)
	// Output: 42 <nil>
}

// A reload publishes changed files. After an error, the previous snapshot keeps serving.
func ExampleServer_Reload() {
	folder := fstest.MapFS{}
	server := newExample(engine.Options{Files: engine.Files{Tools: folder}})
	defer server.Close(context.Background())
	for _, script := range []string{"return 'one'", "return 'two", "return 'three'"} {
		folder["count.hcl"] = &fstest.MapFile{Data: fmt.Appendf(nil, "tool \"count\" {\n  run = %q\n}\n", script), Mode: 0o644}
		_, err := server.Reload(context.Background(), engine.Change{Paths: []string{"count.hcl"}})
		result, _ := server.Call(context.Background(), "count", nil)
		fmt.Println(string(result.Value), err != nil)
	}
	// Output:
	// "one" false
	// "one" true
	// "three" false
}

// A load reports all errors of all files, with their positions.
func ExampleReport_Shown() {
	server := newExample(engine.Options{Files: engine.Files{Tools: fstest.MapFS{"double.hcl": {Data: []byte(`
tool "double" {
  desciption = "Doubles a number."
  input "n" { type = integer }
  run = "return input.n * 2"
}
`), Mode: 0o644}}}})
	defer server.Close(context.Background())
	report, err := server.Load(context.Background())
	if err == nil {
		log.Fatal("the file has an error")
	}
	if err := (diag.Printer{Sources: report.Shown()}).Print(os.Stdout, report.Problems); err != nil {
		log.Fatal(err)
	}
	// Output:
	// tools.d/double.hcl:3:3: error: a tool block has no argument "desciption" [unknown-argument]
	//   3 |   desciption = "Doubles a number."
	//     |   ^^^^^^^^^^
	//     = did you mean "description"?
}

// Execute runs a call of an authenticated caller. The error has a code, and details for programs.
func ExampleServer_Execute() {
	server := newExample(engine.Options{Files: engine.Files{Tools: double}})
	defer server.Close(context.Background())
	for _, arguments := range []string{`{"n": 21}`, `{"n": "many"}`} {
		result := server.Execute(context.Background(), call.Request{
			Name: "double", Arguments: []byte(arguments),
			Caller: identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindKey}},
		})
		if result.Err != nil {
			fmt.Println(result.Err.Code, string(result.Err.DetailsJSON()))
			continue
		}
		fmt.Println(string(result.Value))
	}
	// Output:
	// 42
	// INVALID_INPUT [{"path":"/n","message":"must be an integer, not a string"}]
}

// The caller of a Go tool gets TIMEOUT after its timeout, so the function should return when its
// context ends.
func ExampleToolOptions() {
	server := newExample(engine.Options{})
	defer server.Close(context.Background())
	wait := func(ctx context.Context, _ identity.Agent, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if err := engine.AddTool(server, engine.ToolOptions{Name: "wait", Timeout: 20 * time.Millisecond}, wait); err != nil {
		log.Fatal(err)
	}
	result, _ := server.Call(context.Background(), "wait", nil)
	fmt.Println(result.Err.Code)
	// Output: TIMEOUT
}

// Limits in files bound the calls and the results of a tool.
func ExampleServer_Call_limits() {
	server := newExample(engine.Options{Files: engine.Files{Tools: fstest.MapFS{"report.hcl": {Data: []byte(`
tool "report" {
  input "lines" { type = integer }
  limits {
    timeout = "5s"
    output  = "1KiB"
  }
  run = "return 'line '.repeat(input.lines)"
}
limit "few_reports" {
  tools = ["report"]
  rate  = "2/h"
}
`), Mode: 0o644}}}})
	defer server.Close(context.Background())
	for _, lines := range []int{1, 1000, 1} {
		result, err := server.Call(context.Background(), "report", map[string]int{"lines": lines})
		if err != nil {
			fmt.Println(result.Err.Code, result.Err.Limited)
			continue
		}
		fmt.Println(string(result.Value))
	}
	// Output:
	// "line "
	// EXECUTION_ERROR false
	// POLICY_DENIED true
}

// A LogRedactor removes the secrets of a server from loggers that exist before the server.
func ExampleLogRedactor() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	var redactor engine.LogRedactor
	logger := redactor.Logger(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime})))
	server := newExample(engine.Options{
		Files: engine.Files{
			Config:    fstest.MapFS{"mcpd.hcl": {Data: []byte("secret \"crm_key\" {\n  env = \"CRM_KEY\"\n}\n"), Mode: 0o644}},
			LookupEnv: func(string) (string, bool) { return "correct horse battery", true },
		},
		LogRedactor: &redactor,
	})
	defer server.Close(context.Background())
	if _, err := server.Load(context.Background()); err != nil {
		log.Fatal(err)
	}
	logger.Info("dial database", "password", "correct horse battery")
	// Output: level=INFO msg="dial database" password=[secret:crm_key]
}

// A Go policy decides by the caller, the tool and its arguments.
func ExamplePolicy() {
	small := func(in engine.PolicyInput) engine.Decision {
		if in.Args["n"].(int64) > 100 {
			return engine.Deny("at most 100")
		}
		return engine.Allow()
	}
	server := newExample(engine.Options{Files: engine.Files{Tools: double}, Policies: []engine.Policy{small}})
	defer server.Close(context.Background())
	_, err := server.Call(context.Background(), "double", map[string]int{"n": 101})
	fmt.Println(err)
	// Output: POLICY_DENIED: at most 100
}

// A Go hook runs at the start and at the end of each call.
func ExampleHook() {
	seen := func(_ context.Context, event call.Event) { fmt.Println(event.Phase, event.Tool) }
	server := newExample(engine.Options{Files: engine.Files{Tools: double}, Hooks: []engine.Hook{seen}})
	defer server.Close(context.Background())
	if _, err := server.Call(context.Background(), "double", map[string]int{"n": 1}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// start double
	// end double
}

// A module offers Go functions to scripts; a file grants it by name.
func ExampleNewHostFunc() {
	type article struct{ Name string }
	count := func(_ context.Context, _ engine.HostCall, in article) (int, error) { return len(in.Name), nil }
	server := newExample(engine.Options{
		Scripts: engine.Scripts{Modules: []engine.HostModule{{Name: "stock", Functions: []engine.HostFunc{engine.NewHostFunc("count", count)}}}},
		Files: engine.Files{Tools: fstest.MapFS{"lamps.hcl": {Data: []byte(`
tool "lamps" {
  allow {
    module "stock" {}
  }
  run = "return await modules.stock.count({ Name: 'lamp' })"
}
`), Mode: 0o644}}},
	})
	defer server.Close(context.Background())
	result, err := server.Call(context.Background(), "lamps", nil)
	fmt.Println(string(result.Value), err)
	// Output: 4 <nil>
}

// State: a script stores values with kv grants. They are in memory unless StatePath is set.
func ExampleOptions_state() {
	server := newExample(engine.Options{Files: engine.Files{Tools: fstest.MapFS{"visit.hcl": {Data: []byte(`
tool "visit" {
  allow {
    kv "visits" {}
  }
  run = "return await kv.visits.incr('all')"
}
`), Mode: 0o644}}}})
	defer server.Close(context.Background())
	for range 2 {
		result, err := server.Call(context.Background(), "visit", nil)
		fmt.Println(string(result.Value), err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// The tools of another MCP server are offered as crm_NAME while it is reachable.
func ExampleNewUpstream() {
	crm, err := engine.NewUpstream("crm", "http://127.0.0.1:9/mcp", "the command line")
	if err != nil {
		log.Fatal(err)
	}
	server := newExample(engine.Options{Upstreams: []engine.Upstream{crm}, Extensions: []engine.Extension{federation.New()}, Mode: engine.Offline})
	defer server.Close(context.Background())
	if _, err := server.Load(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(server.Status().Upstreams[0].Name)
	// Output: crm
}

// Metrics and traces: the OTEL_* variables configure the span exporter, and Metrics serves
// Prometheus.
func ExampleServer_Metrics() {
	server := newExample(engine.Options{
		Files:      engine.Files{Tools: double, LookupEnv: os.LookupEnv},
		Extensions: []engine.Extension{telemetry.New(telemetry.Options{ReadFile: os.ReadFile, Console: os.Stderr})},
	})
	defer server.Close(context.Background())
	if _, err := server.Call(context.Background(), "double", map[string]int{"n": 1}); err != nil {
		log.Fatal(err)
	}
	scrape := httptest.NewRecorder()
	server.Metrics().ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "mcpd_calls_total") {
			fmt.Print(line)
		}
	}
	// Output: mcpd_calls_total{kind="tool",name="double",outcome="ok",via="client"} 1
}
