package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/engine"
)

func TestSensitiveVariablesStayOutOfMessagesAndLogs(t *testing.T) {
	log := &logBuffer{}
	s := server(t, engine.Options{
		Logger: log.logger(),
		Config: files("mcpd.hcl", `
variable "pin" {
  type      = string
  default   = "hunter2"
  sensitive = true
}
`),
		Tools: files("tools.hcl", `
tool "throws" {
  run = <<JS
    console.log("the pin", vars.pin);
    log.warn("fields", { pin: vars.pin });
    throw new ToolError("no " + vars.pin, { details: { pin: vars.pin } });
  JS
}
tool "denied" { run = "return 1" }
policy "tells" {
  tools  = ["denied"]
  deny   = "vars.pin != ''"
  reason = <<CEL
    "ask for " + vars.pin
  CEL
}
hook "tells" {
  on  = ["error"]
  run = <<JS
    log.info("a hook with " + vars.pin);
    throw new Error("a hook without " + vars.pin);
  JS
}
`)})
	for tool, want := range map[string]string{"throws": "no [sensitive]", "denied": "ask for [sensitive]"} {
		_, err := s.Call(t.Context(), tool, nil)
		failure, ok := errors.AsType[*engine.CallError](err)
		if !ok || failure.Message != want || strings.Contains(string(failure.Details), "hunter2") {
			t.Errorf("%s: the caller gets %v", tool, err)
		}
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	for _, want := range []string{"the pin [sensitive]", "a hook with [sensitive]", "a hook without [sensitive]"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the log holds the value:\n%s", text)
	}
}
