package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// calls begins a stream of calls.
func (a *controlledServer) calls(t *testing.T, q control.CallQuery) *control.Conn {
	t.Helper()
	r, err := control.NewRequest(control.Calls, q)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := control.Open(t.Context(), a.socket, r, &struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// nextCall returns the next call of a stream.
func nextCall(t *testing.T, conn *control.Conn) control.Call {
	t.Helper()
	var row control.Call
	if err := conn.Receive(&row); err != nil {
		t.Fatal(err)
	}
	return row
}

func lineOfCall(r control.Call) string {
	return strings.Join([]string{r.Kind, r.Name, r.Outcome, r.DeniedBy, r.Via, r.Listener, fmt.Sprint(r.Depth)}, "|")
}

func TestControl_calls(t *testing.T) {
	t.Parallel()
	a := startControlled(t, controlAudit)
	live := a.calls(t, control.CallQuery{})
	twice, _ := a.result(t, toolCall("twice", `{"n":2}`))
	_, _ = a.result(t, toolCall("pay", `{}`))
	_, _ = a.result(t, control.TryCall{ItemName: control.ItemName{Kind: "resource", Address: "page://secret"}})
	_, _ = a.result(t, control.TryCall{ItemName: control.ItemName{Kind: "resource", Address: "other://secret"}})
	want := []string{
		"tool|add|ok||tool|console|1", "tool|twice|ok||client|console|0", "tool|pay|POLICY_DENIED|leads_pay|client|console|0",
		"resource|page|ok||client|console|0", "resource||TOOL_NOT_FOUND||client|console|0",
	}
	var got []string
	for i := range want {
		row := nextCall(t, live)
		got = append(got, lineOfCall(row))
		if row.CallID == "" || row.Time.IsZero() || row.Principal == "" || row.AuthKind != "local" || row.Agent != "mcpd-console" || row.Revision == "" || i == 0 && row.ParentID != twice.CallID {
			t.Errorf("got %+v", row)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("live (-want +got)\n%s", diff)
	}
	past := a.calls(t, control.CallQuery{CallID: twice.CallID})
	if first, second := nextCall(t, past), nextCall(t, past); lineOfCall(first) != want[0] || lineOfCall(second) != want[1] {
		t.Errorf("got %+v, %+v", first, second)
	}
	// The stream ends when the client closes its end.
	if err := past.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := past.Receive(&control.Call{}); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}

	var audited control.AuditResult
	a.must(t, control.Audit, control.CallQuery{Limit: 2}, &audited)
	if len(audited.Calls) != 2 || !audited.More || audited.Next != audited.Calls[1].Seq || lineOfCall(audited.Calls[1]) != want[3] {
		t.Fatalf("got %+v", audited)
	}
	var older control.AuditResult
	a.must(t, control.Audit, control.CallQuery{Before: audited.Next}, &older)
	got = nil
	for _, row := range older.Calls {
		got = append(got, lineOfCall(row))
	}
	if diff := cmp.Diff([]string{want[2], want[1], want[0]}, got); diff != "" || older.More {
		t.Errorf("audit (-want +got)\n%s", diff)
	}
	a.must(t, control.Audit, control.CallQuery{Outcome: "POLICY_DENIED"}, &audited)
	if len(audited.Calls) != 1 || audited.Calls[0].DeniedBy != "leads_pay" || audited.Calls[0].Message != "only leads pay" {
		t.Errorf("got %+v", audited)
	}
	for want, q := range map[string]control.CallQuery{"limit is from 1 to 1000 calls": {Limit: 1001}, "limit is from 1 to 1000": {Limit: -1}} {
		for _, do := range []control.Action{control.Calls, control.Audit} {
			if err := a.ask(t, do, q, &struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %s", err, want)
			}
		}
	}
}

// At most maxAuditReads requests read the audit log at once. Others wait for as long as one may take.
func TestControl_auditReads(t *testing.T) {
	s := deniedCalls(t, 1)
	synctest.Test(t, func(*testing.T) {
		o := &runningServer{server: s, auditReads: make(chan struct{}, maxAuditReads)}
		for range maxAuditReads {
			o.auditReads <- struct{}{}
		}
		if _, err := o.auditedCalls(context.Background(), control.CallQuery{}); err == nil || !strings.Contains(err.Error(), "reading the audit log for other requests") {
			t.Errorf("got error %v", err)
		}
		<-o.auditReads
		got, err := o.auditedCalls(context.Background(), control.CallQuery{})
		if row, _ := got.(control.AuditResult); err != nil || len(row.Calls) != 1 || len(o.auditReads) != maxAuditReads-1 {
			t.Errorf("%+v, %v, %d reads", got, err, len(o.auditReads))
		}
	})
}

func TestControl_auditWithoutLog(t *testing.T) {
	t.Parallel()
	a := startControlled(t, "")
	var got control.AuditResult
	a.must(t, control.Audit, nil, &got)
	if got.Problem != noAuditLog || got.Calls == nil || got.More {
		t.Errorf("got %+v", got)
	}
}
