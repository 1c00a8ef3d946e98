package main

import (
	"bytes"
	"testing"
)

// TestContentBesideAResultIsTold: run_code returns a value, and behind it the image that the
// program returned.
func TestContentBesideAResultIsTold(t *testing.T) {
	var out, told bytes.Buffer
	a := answer{Result: []byte(`{"result":{"type":"image","block":0}}`), Content: []byte(`[{"type":"text","text":"{}"},` +
		`{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"audio","data":"AAEC","mimeType":"audio/x\u001b[31m"},` +
		`{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///b","blob":"AA=="}}]`)}
	if err := printAnswer(env{stdout: &out, stderr: &told}, a, false); err != nil {
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
		if err := printAnswer(env{stdout: &out, stderr: &told}, a, false); err != nil || told.Len() > 0 {
			t.Errorf("of %s %s is told %q, %v", a.Result, a.Content, told.String(), err)
		}
	}
}
