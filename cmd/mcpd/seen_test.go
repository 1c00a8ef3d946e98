package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
)

// TestALogInJSONHoldsNoCharacterThatIsNotSeen, and reads as what was said.
func TestALogInJSONHoldsNoCharacterThatIsNotSeen(t *testing.T) {
	const said = "a\u202egpj.exe\x07\u200b\x7f\U000e0041é \"\\u202e\""
	var out bytes.Buffer
	logger, err := (&logging{format: "json"}).logger(env{stderr: &out}, &slog.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	logger.Info(said, "tool", said)
	line := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if bytes.ContainsFunc(line, isUnseen) || bytes.Contains(line, []byte("\n")) {
		t.Errorf("the log holds %q", line)
	}
	var got struct{ Msg, Tool string }
	if err := json.Unmarshal(line, &got); err != nil || got.Msg != said || got.Tool != said {
		t.Errorf("%s is %+q, %v", line, got, err)
	}
}
