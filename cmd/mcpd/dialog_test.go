package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
)

func TestDialog_answers(t *testing.T) {
	const form = `{"message":"Order\u001b[31m\u202e it\u200b\nnow?","requestedSchema":{"type":"object","required":["n","mail","kind"],"properties":{
		"n":{"type":"integer","minimum":2,"title":"How many"},"mail":{"type":"string","format":"email","minLength":3},
		"kind":{"type":"string","oneOf":[{"const":"a","title":"First"},{"const":"b","title":"Second"}]},
		"tags":{"type":"array","items":{"type":"string","enum":["x","y"]},"maxItems":1},
		"fast":{"type":"boolean","default":true},"note":{"type":"string"},"rate":{"type":"number"}}}}`
	for name, c := range map[string]struct{ method, params, typed, want string }{
		"a form": {
			methodElicit, form, "x\n1\n2.5\n3\n\nme\nme@example.com\n2\nz\ny\n\n\n1e1\nperhaps\ny\n",
			`{"action":"accept","content":{"fast":true,"kind":"b","mail":"me@example.com","n":3,"rate":1e1,"tags":["y"]}}`,
		},
		"a form that is not sent": {methodElicit, form, "3\nme@example.com\na\n\nno\nhello\n\nn\n", declined},
		"a form that is left":     {methodElicit, form, "3\n", `{"action":"cancel"}`},
		"consent":                 {methodElicit, `{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`, "\nyes\n", `{"action":"accept","content":{}}`},
		"no consent":              {methodElicit, `{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`, "NO\n", declined},
		"a page":                  {methodElicit, `{"message":"Log in","mode":"url","url":"https://example.com/\u001b"}`, "y\n", `{"action":"accept"}`},
		"a model": {
			methodSample, `{"systemPrompt":"be brief","messages":[{"role":"user","content":{"type":"text","text":"Hi \u001b]0;x\u0007"}}]}`, "one\n\ntwo\n.\n",
			`{"content":{"text":"one\n\ntwo","type":"text"},"model":"mcpd-call","role":"assistant","stopReason":"endTurn"}`,
		},
		"no model": {methodSample, `{"messages":[]}`, ".\n", declined},
		"no roots": {methodRoots, `null`, "n\n", declined},
		"nothing":  {methodRoots, `{}`, "", `{"action":"cancel"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var screen bytes.Buffer
			d := newDialog(env{streams: streams{stdin: strings.NewReader(c.typed), stderr: &screen}})
			got, err := d.ask(call.AskRequest{Key: "k", Method: c.method, Params: json.RawMessage(c.params)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("-want +got\n%s\n%s", diff, &screen)
			}
			if strings.ContainsAny(screen.String(), "\x1b\x07\u202e\u200b") {
				t.Errorf("untrusted text controls the terminal: %q", screen.String())
			}
			for line := range strings.Lines(screen.String()) {
				if strings.HasPrefix(line, "now?") {
					t.Errorf("untrusted line without indent: %q", screen.String())
				}
			}
		})
	}
}

func TestAnswersOf_malformed(t *testing.T) {
	for _, pair := range []string{"x", "=1", "x=", `x=1,"y":2`, "x={", "x=yes", "x=" + strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if _, err := answersOf(env{}, []string{pair}); err == nil {
			t.Errorf("%.20s is accepted", pair)
		}
	}
	if _, err := answersOf(env{}, []string{"x=1", "x=2"}); err == nil {
		t.Error("a duplicate key is accepted")
	}
}
