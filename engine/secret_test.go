package engine_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// reader is a configuration and a tool that reads a secret in two legs.
const (
	readerConfig = "secret \"key\" {\n  env    = \"KEY\"\n  reveal = true\n}\n"
	reader       = `
tool "deploy" {
  input "service" { type = string }
  allow {
    secrets { names = ["key"] }
    ask { elicit = true }
  }
  run = <<JS
    const first = secrets.key;
    if (input.service === "throw") throw new ToolError("the key is " + first, { details: { key: first } });
    if (input.service.startsWith("long")) {
      const long = "x".repeat(Number(input.service.slice(4))) + first;
      log.info(long);
      throw new Error(long);
    }
    if (input.service === "fail") throw new Error(btoa("key:" + first));
    if (input.service === "leak") await elicit({ message: first, schema: { type: "object", properties: { ok: { type: "boolean" } } } });
    await elicit({ message: "Go on?", schema: { type: "object", properties: { ok: { type: "boolean" } } } });
    return [first, secrets.key];
  JS
}
`
)

// secretServer returns a server with a secret that has a value.
func secretServer(t *testing.T, value *string, log *bytes.Buffer, statePath string) *engine.Server {
	return server(t, engine.Options{
		Files: engine.Files{
			Tools:     files("deploy.hcl", reader),
			Config:    files("mcpd.hcl", readerConfig),
			LookupEnv: func(string) (string, bool) { return *value, *value != "" },
		}, StatePath: statePath,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// suspendAndResume suspends a call in one server, and resumes it in the next, where the secret has another
// value; "" for none. It returns the result and both logs.
func suspendAndResume(t *testing.T, later string) (call.Result, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	value, path := "correct-horse", filepath.Join(t.TempDir(), "state.db")
	first := secretServer(t, &value, log, path)
	ask := mustAsk(t, first.Execute(t.Context(), deployCall("a", nil)))
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	value = later
	return secretServer(t, &value, log, path).Execute(t.Context(), deployCall("a", respond(ask, `{}`))), log
}

func TestSecret_resume(t *testing.T) {
	got, log := suspendAndResume(t, "battery-staple")
	if got.Err != nil || string(got.Value) != `["battery-staple","battery-staple"]` {
		t.Errorf("got %s and %v", got.Value, got.Err)
	}
	if n := strings.Count(log.String(), `msg="script read secret" tool=deploy`); n != 2 {
		t.Errorf("%d readings are recorded, want 2:\n%s", n, log)
	}
	if strings.Contains(log.String(), "correct-horse") || strings.Contains(log.String(), "battery-staple") {
		t.Errorf("the log holds the value:\n%s", log)
	}
}

func TestSecret_resumeFails(t *testing.T) {
	got, log := suspendAndResume(t, "")
	if got.Err == nil || got.Err.Code != call.ExecutionError || !strings.Contains(log.String(), "restore secret") {
		t.Errorf("got %v; the log:\n%s", got.Err, log)
	}
}

func TestSecret_redactsMessages(t *testing.T) {
	var log bytes.Buffer
	value := "correct-horse"
	s := secretServer(t, &value, &log, "")
	for service, want := range map[string]string{
		"throw": "EXECUTION_ERROR: the key is [secret:key]",
		"fail":  "EXECUTION_ERROR: a2V5Om[secret:key]U=",
		"leak":  "EXECUTION_ERROR: the input request contains the value of a secret; remove it",
	} {
		got := s.Execute(t.Context(), deployCall(service, nil))
		if got.Err == nil || got.Err.Error() != want {
			t.Errorf("%s: got %v, want %s", service, got.Err, want)
		}
		if got.Err != nil && got.Err.Details != nil && string(got.Err.Details) != `{"key":"[secret:key]"}` {
			t.Errorf("%s: details are %s", service, got.Err.Details)
		}
	}
	if strings.Contains(log.String(), value) {
		t.Errorf("the log holds the value:\n%s", &log)
	}
}

// The message is truncated at every position.
func TestSecret_truncatedMessage(t *testing.T) {
	const most, value = 64 << 10, "correct-horse"
	var log bytes.Buffer
	secret := value
	s := secretServer(t, &secret, &log, "")
	for before := most - 2*len(value); before <= most; before++ {
		got := s.Execute(t.Context(), deployCall("long"+strconv.Itoa(before), nil))
		if got.Err == nil {
			t.Fatal(got)
		}
		for _, mark := range []string{"[secret:key]", " … [cut]"} {
			got.Err.Message = strings.ReplaceAll(got.Err.Message, mark, "")
		}
		if rest := strings.Trim(got.Err.Message, "x"); rest != "" || len(got.Err.Message) < most/2 {
			t.Errorf("after %d bytes, the caller sees %q", before, rest)
		}
	}
	filler := strings.Repeat("x", 20) // longer than call ids, which are random
	if strings.Contains(log.String(), filler+"c") || !strings.Contains(log.String(), filler) {
		t.Error("the log holds a part of the value, or nothing")
	}
}

// A panic value may contain anything.
func TestSecret_panic(t *testing.T) {
	var log bytes.Buffer
	value := "correct-horse"
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:     files("deploy.hcl", reader),
			Config:    files("mcpd.hcl", readerConfig),
			LookupEnv: func(string) (string, bool) { return value, true },
		},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Policies: []engine.Policy{func(in engine.PolicyInput) engine.Decision {
			if in.Args["service"] == "panic" {
				panic("the header is Bearer " + value)
			}
			return engine.Allow()
		}},
	})
	s.Execute(t.Context(), deployCall("throw", nil)) // reads the secret
	got := s.Execute(t.Context(), deployCall("panic", nil))
	if got.Err == nil || strings.Contains(got.Err.Error(), value) {
		t.Errorf("got %v", got.Err)
	}
	if said := log.String(); strings.Contains(said, value) || !strings.Contains(said, "panicked: the header is Bearer [secret:key]") {
		t.Errorf("the log:\n%s", said)
	}
}
