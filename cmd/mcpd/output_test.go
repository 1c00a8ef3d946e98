package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// JSON logs escape non-printable characters and decode to the original text.
func TestLog_jsonIsPrintable(t *testing.T) {
	const said = "a\u202egpj.exe\x07\u200b\x7f\U000e0041é \"\\u202e\""
	var out bytes.Buffer
	logger, err := (&logging{format: "json"}).logger(env{streams: streams{stderr: &out}}, &slog.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	logger.Info(said, "tool", said)
	line := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if bytes.ContainsFunc(line, isInvisible) || bytes.Contains(line, []byte("\n")) {
		t.Errorf("the log contains %q", line)
	}
	var got struct{ Msg, Tool string }
	if err := json.Unmarshal(line, &got); err != nil || got.Msg != said || got.Tool != said {
		t.Errorf("%s is %+q, %v", line, got, err)
	}
}

// JSON output escapes non-printable characters, on a terminal and in a pipe, and
// decodes to the original text.
func TestPrintJSON_isPrintable(t *testing.T) {
	const said = "a\u009b2J\u202egpj.exe\x7f\u2028<é>\n"
	raw, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	for name, screen := range map[string]bool{"a pipe": false, "a terminal": true} {
		var out bytes.Buffer
		if err := printJSON(env{streams: streams{stdout: &out, stdoutIsTerminal: screen}}.text(), []any{said, json.RawMessage(raw)}); err != nil {
			t.Fatal(err)
		}
		if want := "[\n  \"a\\u009b2J\\u202egpj.exe\\u007f\\u2028<é>\\n\",\n  "; !bytes.HasPrefix(out.Bytes(), []byte(want)) || bytes.ContainsFunc(out.Bytes(), isInvisible) {
			t.Errorf("%s prints %q", name, out.Bytes())
		}
		var got []string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != 2 || got[0] != said || got[1] != said {
			t.Errorf("%s: %s is %+q, %v", name, out.Bytes(), got, err)
		}
	}
}

const steering = "red \x1b[31m\u009b31m\u202e\r\nnext\tline\r"

func TestOutput_escapesTerminalControls(t *testing.T) {
	result, err := json.Marshal(steering)
	if err != nil {
		t.Fatal(err)
	}
	for name, print := range map[string]func(e env) error{
		"a tool": func(e env) error { return printAnswer(e, answer{Result: result}, false) },
		"a resource": func(e env) error {
			return reply{result: []byte(`{"contents":[{"text":` + string(result) + `}]}`)}.print(e, false, printContents)
		},
		"a blob": func(e env) error {
			return reply{result: []byte(`{"contents":[{"blob":"cmVkIBtbMzFtwpszMW3igK4NCm5leHQJbGluZQ0K"}]}`)}.print(e, false, printContents)
		},
	} {
		var shown, piped bytes.Buffer
		if err := print(env{streams: streams{stdout: &shown, stdoutIsTerminal: true}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := shown.String(), "red \ufffd[31m\ufffd31m\ufffd\nnext\tline\n"; got != want {
			t.Errorf("%s shows %q, want %q", name, got, want)
		}
		if err := print(env{streams: streams{stdout: &piped}}); err != nil || piped.String() != steering+"\n" {
			t.Errorf("%s in a pipe: %q, %v", name, piped.String(), err)
		}
	}
}

// A database without TLS may be played by somebody else, whose errors must not look like rows of the table.
func TestStatusRow_printsOneLineEach(t *testing.T) {
	var out bytes.Buffer
	row := statusResult{StatusResult: control.StatusResult{Status: "the state database is away", State: &control.StateReach{Away: true, Error: "gone\nstatus       healthy\x1b[2J"}}}
	if err := row.print(env{streams: streams{stdout: &out}}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count("\n"+text, "\nstatus ") != 1 || strings.Contains(text, "\x1b") || !strings.Contains(text, "gone") {
		t.Errorf("%s", text)
	}
}

// run_code returns a value and the image that the program returned.
func TestPrintAnswer_describesContent(t *testing.T) {
	var out, told bytes.Buffer
	a := answer{Result: []byte(`{"result":{"type":"image","block":0}}`), Content: []byte(`[{"type":"text","text":"{}"},` +
		`{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"audio","data":"AAEC","mimeType":"audio/x\u001b[31m"},` +
		`{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///b","blob":"AA=="}}]`)}
	if err := printAnswer(env{streams: streams{stdout: &out, stderr: &told}}, a, false); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "{\n  \"result\": {\n    \"type\": \"image\",\n    \"block\": 0\n  }\n}\n"; got != want {
		t.Errorf("stdout is %q, want %q", got, want)
	}
	want := "(image, image/png, 3 bytes)\n(audio, audio/x\ufffd[31m, 3 bytes)\n(a link to file:///a: a)\n(the resource file:///b, 1 byte)\n"
	if got := told.String(); got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
	told.Reset()
	for _, a := range []answer{{Result: []byte(`{"a":1}`)}, {Result: []byte(`{"a":1}`), Content: []byte(`[{"type":"text","text":"{}"}]`)}, {Result: []byte(`1`), Content: []byte(`{`)}, {Result: []byte(`1`), Content: []byte(`[{"type":"image","data":"?"}]`)}} {
		if err := printAnswer(env{streams: streams{stdout: &out, stderr: &told}}, a, false); err != nil || told.Len() > 0 {
			t.Errorf("%s %s prints %q, %v", a.Result, a.Content, told.String(), err)
		}
	}
}

func TestSummaryOf(t *testing.T) {
	for _, row := range []struct{ said, want string }{
		{"  Adds two\nnumbers.\r\n\r\nIn words.", "Adds two numbers."},
		{strings.Repeat("über ", 24), strings.TrimSpace(strings.Repeat("über ", 24))},
		{strings.Repeat("über ", 25), strings.Repeat("über ", 24) + "…"},
		{strings.Repeat("x", 200), strings.Repeat("x", 120) + " …"},
	} {
		if got := summaryOf(row.said); got != row.want {
			t.Errorf("%q: %q", row.said, got)
		}
	}
}
