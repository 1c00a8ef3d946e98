package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

const typical = `{"tool":"get_customer","arguments":{"customer_id":"C-1042","limit":10}}`

func TestExecute_allocations(t *testing.T) {
	f := customers(t).answers(`{"customer_id":"C-1042","status":"active"}`)
	h := New(f, Options{})
	body := strings.NewReader("")
	r := httptest.NewRequest("POST", ExecutePath, io.NopCloser(body))
	r.ContentLength = int64(len(typical))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "req-1")
	reader := r.Body
	const budget = 20
	if n := testing.AllocsPerRun(100, func() {
		body.Reset(typical)
		r.Body = reader
		h.ServeHTTP(discard{http.Header{}}, r)
	}); n > budget {
		t.Errorf("%v allocations, want at most %d", n, budget)
	} else {
		t.Logf("%v allocations", n)
	}
	if f.got.Name != "get_customer" {
		t.Errorf("backend call: %+v", f.got)
	}
}

func BenchmarkExecute(b *testing.B) {
	h := New(customers(b).answers(`{"customer_id":"C-1042","status":"active"}`), Options{})
	body := strings.NewReader("")
	r := httptest.NewRequest("POST", ExecutePath, io.NopCloser(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "req-1")
	reader := r.Body
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(typical)
		r.Body = reader
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}

// FuzzDecode compares decode with encoding/json for texts that pass the JSON
// guard, except for the case of names.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		typical, `{"tool":"a"}`, ` { "agent" : {"agent_id":"x"} , "tool" : "\u0061" } `, `{"tool":"a","arguments":null}`,
		`{"tool":"a","can":["form"],"state":"s","answers":{"k":{"a":[1]}}}`, `{"tool":1}`, `[]`, `{"a":[1,{"b":"}"}],"tool":"x"}`, `{"Tool":"a"}`, `{"tool":"a","arguments":{"x":-1.5e3,"y":[true,null]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if jsonguard.Check(body, jsonguard.Client()) != nil {
			return
		}
		got, err := decode(body)
		want, ok := decodeSlowly(body)
		if (err == nil) != ok {
			t.Fatalf("%q: error %v, want success %v", body, err, ok)
		}
		if err == nil && (got.tool != want.tool || !bytes.Equal(got.arguments, want.arguments) || !bytes.Equal(got.agent, want.agent)) {
			t.Errorf("decode(%q) = %q, want %q", body, got, want)
		}
	})
}

// decodeSlowly is decode with encoding/json.
func decodeSlowly(raw []byte) (c body, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return body{}, false
	}
	hasTool := false
	for name, value := range members {
		isNull := string(value) == "null"
		switch {
		case name == "tool":
			if isNull || json.Unmarshal(value, &c.tool) != nil {
				return body{}, false
			}
			hasTool = true
		case name == "arguments" && isNull, name == "agent" && isNull:
		case name == "arguments":
			if value[0] != '{' {
				return body{}, false
			}
			c.arguments = value
		case name == "agent":
			c.agent = value
		case name == "can", name == "state", name == "answers":
		default:
			return body{}, false
		}
	}
	return c, hasTool
}

func TestExecute_ask(t *testing.T) {
	f := customers(t)
	f.respond = call.Result{Ask: &call.Ask{
		Requests: []call.AskRequest{{Key: "approval", Method: "elicitation/create", Params: []byte(`{"message":"Sure?"}`)}}, State: "sealed", Wait: time.Minute,
	}}
	got := f.send(http.MethodPost, ExecutePath, http.Header{}, `{"tool":"get_customer","can":["form","roots"]}`)
	const want = `{"ask":{"requests":[{"key":"approval","method":"elicitation/create","params":{"message":"Sure?"}}],"state":"sealed","wait_ms":60000}}`
	if got.Code != http.StatusOK || got.Body.String() != want {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	if !f.got.Can.Form || !f.got.Can.Roots || f.got.Can.URL || f.got.Can.Sample || !f.got.Can.NoApproval {
		t.Errorf("capabilities: %+v", f.got.Can)
	}
	for _, body := range []string{`{"tool":"get_customer"}`, `{"tool":"get_customer","can":["sample"]}`} {
		if got := f.send(http.MethodPost, ExecutePath, http.Header{}, body); got.Code != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
}

func TestExecute_resume(t *testing.T) {
	f := customers(t).answers(`1`)
	f.send(http.MethodPost, ExecutePath, http.Header{}, `{"tool":"get_customer","can":["form"],"state":"sealed","answers":{"approval":{"action":"accept"}}}`)
	want := &call.Resume{State: "sealed", Responses: map[string]json.RawMessage{"approval": json.RawMessage(`{"action":"accept"}`)}}
	if diff := cmp.Diff(want, f.got.Resume); diff != "" {
		t.Error(diff)
	}
	calls := f.calls
	for _, body := range []string{
		`{"tool":"get_customer","answers":{}}`, `{"tool":"get_customer","state":""}`, `{"tool":"get_customer","state":1}`,
		`{"tool":"get_customer","state":"s","answers":{"a":1}}`, `{"tool":"get_customer","state":"s","answers":[]}`, `{"tool":"get_customer","can":"form"}`,
	} {
		if got := f.send(http.MethodPost, ExecutePath, http.Header{}, body); got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	if f.calls != calls {
		t.Error("an invalid call reached the backend")
	}
}
