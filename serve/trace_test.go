package serve_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

const failingTools = `
tool "throws" {
  input "pin" {
    type      = string
    sensitive = true
  }
  run = <<JS
    function inner() {
      throw new Error("not today"); // 4711
    }
    inner();
  JS
}
tool "unfit" {
  output "n" { type = integer }
  run = "return { n: 'x' };"
}
tool "fine" {
  run = "return 1;"
}
`

// TestTracesForOtherMachinesAreWarnedOf listens on all addresses and on loopback.
func TestTracesForOtherMachinesAreWarnedOf(t *testing.T) {
	for address, warned := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false} {
		log := &synced{}
		s, err := engine.New(engine.Options{
			Name: "test", Logger: slog.New(slog.NewTextHandler(log, nil)),
			Config: fstest.MapFS{"mcpd.hcl": {Data: []byte("server {\n  expose_traces = true\n}\n"), Mode: 0o644}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		err = serve.New(s, serve.Options{Address: address, InsecureListen: true, OnListen: func(net.Addr) { stop() }}).Run(ctx)
		stop()
		if got := strings.Contains(log.String(), "callers from other machines are told where bodies fail"); err != nil || got != warned {
			t.Errorf("%s: warned %v, %v\n%s", address, got, err, log)
		}
	}
}

// TestTracesReachCallersOnEveryTransportWhereTheyAreExposed makes the same calls
// with traces and without.
func TestTracesReachCallersOnEveryTransportWhereTheyAreExposed(t *testing.T) {
	// The caller's own sensitive value stands in a line of the file.
	const thrown = "at inner (tools.d/t.hcl:9:13)\n  9 |       throw new Error(\"not today\"); // [sensitive]\n    |             ^^^\nat body (tools.d/t.hcl:11:5)"
	want := map[bool][]outcome{
		false: {{Code: "EXECUTION_ERROR", Message: "not today"}, {Code: "EXECUTION_ERROR", Message: "the tool's result does not fit its output schema: /n must be an integer, not a string"}, {Value: "1"}, {Code: "INVALID_INPUT"}},
		true: {
			{Code: "EXECUTION_ERROR", Message: "not today", Trace: thrown, NamesFile: true},
			{Code: "EXECUTION_ERROR", Message: "the tool's result does not fit its output schema: /n must be an integer, not a string", Trace: "at unfit (tools.d/t.hcl:14:6)", NamesFile: true},
			{Value: "1"}, {Code: "INVALID_INPUT"},
		},
	}
	for _, open := range transports {
		for exposed, wanted := range want {
			t.Run(open.name, func(t *testing.T) {
				config := ""
				if exposed {
					config = "server {\n  expose_traces = true\n}\n"
				}
				s, err := engine.New(engine.Options{
					Name: "test", Front: serve.Checks{},
					Tools:  fstest.MapFS{"t.hcl": {Data: []byte(failingTools), Mode: 0o644}},
					Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
				})
				if err != nil {
					t.Fatal(err)
				}
				client := open.connect(t, frontFor(t, s))
				got := []outcome{client(oneCall{"throws", `{"pin":"4711"}`}), client(oneCall{"unfit", `{}`}), client(oneCall{"fine", `{}`}), client(oneCall{"throws", `{"pin":1}`})}
				got[3].Message = "" // which says what is wrong with the arguments
				if diff := cmp.Diff(wanted, got); diff != "" {
					t.Errorf("exposed %v (-want +got)\n%s", exposed, diff)
				}
			})
		}
	}
}
