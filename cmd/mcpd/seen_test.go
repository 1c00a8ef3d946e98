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

// TestJSONThatAVerbPrintsHoldsNoCharacterThatIsNotSeen, on a terminal as in a pipe, and
// reads as what was said.
func TestJSONThatAVerbPrintsHoldsNoCharacterThatIsNotSeen(t *testing.T) {
	const said = "a\u009b2J\u202egpj.exe\x7f\u2028<é>\n"
	raw, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	for name, screen := range map[string]bool{"a pipe": false, "a terminal": true} {
		var out bytes.Buffer
		if err := printJSON(env{stdout: &out, screen: screen}.text(), []any{said, json.RawMessage(raw)}); err != nil {
			t.Fatal(err)
		}
		if want := "[\n  \"a\\u009b2J\\u202egpj.exe\\u007f\\u2028<é>\\n\",\n  "; !bytes.HasPrefix(out.Bytes(), []byte(want)) || bytes.ContainsFunc(out.Bytes(), isUnseen) {
			t.Errorf("%s shows %q", name, out.Bytes())
		}
		var got []string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 2 || got[0] != said || got[1] != said {
			t.Errorf("%s: %s is %+q, %v", name, out.Bytes(), got, err)
		}
	}
}
