package host

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/scripting"
)

// The recorded value of a key is the one at the start of the call.
func TestRecorder_pairs(t *testing.T) {
	type step struct{ op, payload, answer string }
	for name, c := range map[string]struct {
		steps []step
		want  map[string]string
	}{
		"read":                   {[]step{{"get", `{"key":"a"}`, `{"value":{"n":1}}`}, {"get", `{"key":"a"}`, `{"value":2}`}}, map[string]string{"a": `{"n":1}`}},
		"absent":                 {[]step{{"get", `{"key":"a"}`, `{}`}, {"put", `{"key":"a","value":1}`, `{"done":true}`}, {"get", `{"key":"a"}`, `{"value":1}`}}, nil},
		"written first":          {[]step{{"put", `{"key":"a","value":1}`, `{"done":true}`}, {"get", `{"key":"a"}`, `{"value":1}`}}, nil},
		"counted":                {[]step{{"incr", `{"key":"n","by":3}`, `{"value":10}`}, {"incr", `{"key":"n","by":3}`, `{"value":13}`}}, map[string]string{"n": "7"}},
		"counted from nothing":   {[]step{{"incr", `{"key":"n"}`, `{"value":1}`}}, nil},
		"swapped":                {[]step{{"cas", `{"key":"a","expected":"x","value":"y"}`, `{"done":true}`}}, map[string]string{"a": `"x"`}},
		"taken":                  {[]step{{"put", `{"key":"a","value":1,"if_absent":true}`, `{"done":false}`}}, map[string]string{"a": "true"}},
		"listed":                 {[]step{{"list", `{"prefix":""}`, `{"keys":["a","b"]}`}, {"get", `{"key":"b"}`, `{"value":2}`}}, map[string]string{"a": "true", "b": "2"}},
		"removed":                {[]step{{"delete", `{"key":"a"}`, `{"done":true}`}, {"get", `{"key":"a"}`, `{}`}}, nil},
		"answer that is no JSON": {[]step{{"get", `{"key":"a"}`, `{`}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var r Recorder
			for _, s := range c.steps {
				r.pair("notes", kv.Prefix+s.op, []byte(s.payload), []byte(s.answer), nil)
			}
			got := map[string]string{}
			for _, m := range r.Mocks() {
				if m.Object != "kv.notes" {
					t.Errorf("object %s", m.Object)
				}
				got[m.Request] = string(m.JSON)
			}
			if c.want == nil {
				c.want = map[string]string{}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Answers that a mock cannot hold are noted, and headers that may hold credentials are left out.
func TestRecorder_answers(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		group, method, answer string
		want                  Recorded
		notes                 int
	}{
		"json":          {"http", "", `{"status":200,"headers":{"content-type":"application/json","set-cookie":"a=b","authorization":"x"},"body":"{\"a\":1}"}`, Recorded{Status: 200, Headers: map[string]string{"content-type": "application/json"}, JSON: json.RawMessage(`{"a":1}`)}, 0},
		"text":          {"http", "", `{"status":404,"headers":{},"body":"{\"a\":1}"}`, Recorded{Status: 404, Text: text(`{"a":1}`)}, 0},
		"empty":         {"http", "", `{"status":204,"headers":{},"body":""}`, Recorded{Status: 204}, 0},
		"bytes":         {"http", "", `{"status":200,"headers":{},"body64":"/w=="}`, Recorded{}, 1},
		"lines":         {"fs", "lines", `{"lines":["a","b"]}`, Recorded{Text: text("a\nb\n")}, 0},
		"file bytes":    {"fs", "readBytes", `{"data64":"YQ=="}`, Recorded{Text: text("a")}, 0},
		"other bytes":   {"fs", "readBytes", `{"data64":"/w=="}`, Recorded{}, 1},
		"list":          {"fs", "list", `{"entries":[{"name":"a","type":"file"}]}`, Recorded{JSON: json.RawMessage(`[{"name":"a","type":"file"}]`)}, 0},
		"program":       {"exec", "run", `{"code":1,"stdout":"a","stderr64":"/w=="}`, Recorded{}, 1},
		"rows":          {"sql", "query", `{"columns":["b","a"],"rows":[[1,"x"],[2,null]]}`, Recorded{JSON: json.RawMessage(`[{"b":1,"a":"x"},{"b":2,"a":null}]`)}, 0},
		"open":          {"sql", "open", `{}`, Recorded{}, 0},
		"secret":        {"secret", "", `{"name":"key","value":"hunter2"}`, Recorded{Text: text("recorded ")}, 0},
		"not an answer": {"http", "", `[`, Recorded{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r Recorder
			var got Recorded
			if !r.body(&got, c.group, c.method, []byte(c.answer)) {
				got = Recorded{}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if notes := r.Notes(); len(notes) != c.notes {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// A recorder keeps at most 1 MiB, in one answer or in many. Then it keeps nothing.
func TestRecorder_bound(t *testing.T) {
	run := &RunHost{Grants: &Grants{}}
	call := func(r *Recorder, tool string, answer []byte) {
		payload := []byte(`{"tool":"` + tool + `"}`)
		r.end(r.begin(run, scripting.OpCall, payload), run, scripting.OpCall, payload, answer, nil)
	}
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n) + `"`) }
	for name, c := range map[string]struct {
		answers, size int
		full          bool
	}{
		"small":     {3, 1000, false},
		"one large": {1, maxRecorded + 1, true},
		"many":      {100, 10_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Recorder
			for n := range c.answers {
				call(&r, fmt.Sprintf("tool%d", n), text(c.size))
			}
			kept := c.answers
			if c.full {
				kept = 0
			}
			if r.IsFull() != c.full || len(r.Mocks()) != kept || len(r.Called()) != kept || len(r.Calls()) != kept {
				t.Errorf("full %v with %d mocks and %d calls, want %v and %d", r.IsFull(), len(r.Mocks()), len(r.Calls()), c.full, kept)
			}
			call(&r, "later", text(1))
			r.AddAnswer(Recorded{Object: "elicit", Request: "elicit", JSON: text(1)})
			if c.full && len(r.Mocks())+len(r.Calls()) != 0 {
				t.Errorf("a full recorder keeps %v", r.Calls())
			}
		})
	}
}

// A second response to an input request replaces the first, which was incomplete.
func TestRecorder_answersAgain(t *testing.T) {
	var r Recorder
	for _, answer := range []string{`{"action":"decline"}`, `{"action":"accept"}`} {
		r.AddAnswer(Recorded{Object: "elicit", Request: "elicit", JSON: json.RawMessage(answer)})
	}
	want := []Recorded{{Object: "elicit", Request: "elicit", JSON: json.RawMessage(`{"action":"accept"}`)}}
	if diff := cmp.Diff(want, r.Mocks()); diff != "" || len(r.Calls()) != 1 {
		t.Errorf("calls %q (-want +got)\n%s", r.Calls(), diff)
	}
}
