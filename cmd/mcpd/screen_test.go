package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

const steering = "red \x1b[31m\u009b31m\u202e\r\nnext\tline\r"

func TestResultsDoNotSteerATerminal(t *testing.T) {
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
		if err := print(env{stdout: &shown, screen: true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := shown.String(), "red \ufffd[31m\ufffd31m\ufffd\nnext\tline\n"; got != want {
			t.Errorf("%s shows %q, want %q", name, got, want)
		}
		if err := print(env{stdout: &piped}); err != nil || piped.String() != steering+"\n" {
			t.Errorf("%s, into a pipe: %q, %v", name, piped.String(), err)
		}
	}
}
