package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

func TestLogRedactor_otherLoggers(t *testing.T) {
	const value = "correct/horse battery"
	var log bytes.Buffer
	var redactor engine.LogRedactor
	logger := redactor.Logger(slog.New(slog.NewTextHandler(&log, nil)))
	logger.Info(value)
	if !strings.Contains(log.String(), value) {
		t.Errorf("before the server exists, the log has %s", &log)
	}
	log.Reset()
	server(t, engine.Options{
		Files: engine.Files{
			Config:    files("mcpd.hcl", readerConfig),
			Tools:     files("deploy.hcl", reader),
			LookupEnv: func(string) (string, bool) { return value, true },
		}, LogRedactor: &redactor,
	})
	for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte("x" + value)), hex.EncodeToString([]byte(value)), url.QueryEscape(value)} {
		for _, logger := range []*slog.Logger{logger, redactor.Logger(slog.New(slog.NewJSONHandler(&log, nil)))} {
			logger.Warn(form, "text", form, "error", errors.New(form), "list", []string{form})
		}
		if strings.Contains(log.String(), form) || strings.Count(log.String(), "[secret:key]") != 8 {
			t.Errorf("the log shows %s:\n%s", form, &log)
		}
		log.Reset()
	}
	if _, err := engine.New(engine.Options{Name: "second", LogRedactor: &redactor}); err == nil || err.Error() != "new server: the redactor belongs to another server" {
		t.Errorf("a second server accepts the redactor: %v", err)
	}
}

// leakingTool is a script, a policy and a hook that output a secret together with a value of the caller.
const leakingTool = `
tool "leak" {
  input "note" {
    type      = string
    sensitive = true
  }
  allow {
    secrets { names = ["key"] }
  }
  run = <<JS
    log.info("the key is " + secrets.key, { at: "the key is " + secrets.key });
    throw new ToolError("the key is " + secrets.key, { details: { at: "the key is " + secrets.key } });
  JS
}
hook "logs" {
  on = ["error"]
  allow {
    secrets { names = ["key"] }
  }
  run = <<JS
    function fails() { throw new Error("x".repeat(65500) + secrets.key); }
    fails();
  JS
}
`

// A caller who knows the start of a secret must not learn the rest of it from messages, details,
// logs or hook errors.
func TestRedact_overlappingValues(t *testing.T) {
	const value = "sk_live_Correct4HorseBattery9Staple77Q"
	var log bytes.Buffer
	s := server(t, engine.Options{
		Files: engine.Files{
			Tools:     files("leak.hcl", leakingTool),
			Config:    files("mcpd.hcl", readerConfig),
			LookupEnv: func(string) (string, bool) { return value, true },
		},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	for _, note := range []string{"sk_live_", "the key is sk_live_", "is sk_", value, "Staple77Q", "something else"} {
		got := s.Execute(t.Context(), toolCall("leak", `{"note":"`+note+`"}`))
		if got.Err == nil || len(got.Err.Details) == 0 {
			t.Fatalf("%s: got %v", note, got.Err)
		}
		wantNoPart(t, note+": the message", got.Err.Message, value)
		wantNoPart(t, note+": the details", string(got.Err.Details), value)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantNoPart(t, "the log", log.String(), value)
	if said := log.String(); strings.Count(said, "xxx … [cut]") != 6 || strings.Count(said, "level=INFO msg=") < 6 {
		t.Errorf("the log lacks failures of the hook or lines of the script: %.3000s", said)
	}
}

// wantNoPart checks that a text contains no four bytes of a value, except those that callers send.
func wantNoPart(t *testing.T, what, text, value string) {
	t.Helper()
	for at := len("sk_live_"); at+4 <= len(value)-len("Staple77Q"); at++ {
		if strings.Contains(text, value[at:at+4]) {
			t.Errorf("%s holds %q", what, value[at:at+4])
			return
		}
	}
}
