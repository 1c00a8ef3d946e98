package rest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
)

func TestExecute_asksClientsThatCanBeAsked(t *testing.T) {
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
		t.Errorf("the client can be asked %+v", f.got.Can)
	}
	for _, body := range []string{`{"tool":"get_customer"}`, `{"tool":"get_customer","can":["sample"]}`} {
		if got := f.send(http.MethodPost, ExecutePath, http.Header{}, body); got.Code != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
}

func TestExecute_takesAnswersWithTheirState(t *testing.T) {
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
		t.Error("a call was made")
	}
}
