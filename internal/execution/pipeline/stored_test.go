package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/reply"
)

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// outcomes are all kinds of outcomes of a leg.
var outcomes = map[string]struct {
	result call.Result
	err    *call.Error
}{
	"nothing":    {result: call.Result{Value: raw("null"), Content: reply.NoContent()}},
	"null":       {result: call.Result{Value: raw("null"), Content: reply.ValueContent(raw("null"))}},
	"text":       {result: call.Result{Value: raw(`"<a & b>"`), Content: reply.TextContent(raw(`"<a & b>"`))}},
	"a value":    {result: call.Result{Value: raw(`{"a":"<\u2028>"}`), Content: reply.ValueContent(raw(`{"a":"<\u2028>"}`))}},
	"structured": {result: call.Result{Value: raw(`[1.50]`), Content: reply.ValueContent(raw(`[1.50]`)), Structured: raw(`[1.50]`)}},
	"rich":       {result: call.Result{Value: raw(`{"a":1}`), Content: raw(`[{"type":"text","text":"one"}]`), Structured: raw(`{"a":1}`), Rich: true}},
	"a reply":    {result: call.Result{Reply: raw(`{"contents":[]}`)}},
	"a question": {result: call.Result{Ask: &call.Ask{Requests: []call.AskRequest{{Key: "k", Method: "m", Params: raw(`{}`)}}, State: "sealed", Wait: time.Second}}},
	"an error": {err: &call.Error{
		Code: call.PolicyDenied, Message: "no", Violations: []call.Violation{{Path: "/a", Message: "must"}}, Schema: raw(`{}`), Nearest: "near", RemovedIn: "r1",
		Details: raw(`{"a":1}`), Required: raw(`{}`), RPC: &call.RPCError{Code: 1, Message: "m", Data: raw(`[]`)}, RetryAfter: time.Second, Limited: true, Trace: "at x",
		Overloaded: true, DeniedBy: "p", Cause: errors.New("the operator's to know"),
	}},
}

func TestStoredOutcome_roundTrip(t *testing.T) {
	for name, want := range outcomes {
		encoded, err := new(execution).encodeOutcome(want.result, want.err)
		if err != nil {
			t.Fatal(err)
		}
		result, failure := new(execution).decodeOutcome(encoded)
		if diff := cmp.Diff(want.result, result); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(want.err, failure, cmpopts.IgnoreFields(call.Error{}, "Cause")); diff != "" || failure != nil && failure.Cause != nil {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestStoredOutcome_size(t *testing.T) {
	value := raw(`"` + strings.Repeat("x", 1<<20) + `"`)
	encoded, err := new(execution).encodeOutcome(call.Result{Value: value, Content: reply.ValueContent(value), Structured: value}, nil)
	if err != nil || len(encoded) > len(value)+1<<10 {
		t.Errorf("a value of %d bytes is stored in %d, %v", len(value), len(encoded), err)
	}
}

// A failure of the store is no fault of the client, which may send its answer again.
func TestStateError(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code call.Code
		rpc  int
	}{
		"a used state":       {fmt.Errorf("claim: %w", state.ErrLost), call.InvalidInput, -32602},
		"a full store":       {&state.FullError{What: "claims", Wait: time.Second}, call.ExecutionError, 0},
		"a store that fails": {errors.New("PostgreSQL at db:5432 cannot be reached"), call.ExecutionError, -32603},
	} {
		e := stateError(test.err)
		rpc := 0
		if e.RPC != nil {
			rpc = int(e.RPC.Code)
		}
		if e.Code != test.code || rpc != test.rpc || strings.Contains(e.Message, "PostgreSQL") {
			t.Errorf("%s: %s, %d: %s", name, e.Code, rpc, e.Message)
		}
	}
}
