package examples_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

func TestLimit_retryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := load(t, "limits", engine.Options{Now: func() time.Time { return now }})
	passes(t, server, 1)
	report := func(tenant string) string {
		result := server.Execute(t.Context(), call.Request{
			Name: "report", Arguments: json.RawMessage(`{"tenant":"` + tenant + `"}`), Caller: identity.Caller{Principal: identity.Anonymous()},
		})
		if result.Err == nil {
			return string(result.Value)
		}
		now = now.Add(result.Err.RetryAfter)
		return result.Err.Error()
	}
	var got []string
	for _, tenant := range []string{"acme", "acme", "acme", "acme", "b", "c", "d", "e", "f"} {
		got = append(got, report(tenant))
	}
	want := []string{
		`"report of acme"`, `"report of acme"`, "POLICY_DENIED: Reports are dear; try again in 180 s", `"report of acme"`,
		`"report of b"`, `"report of c"`, `"report of d"`, `"report of e"`, "POLICY_DENIED: over the limit of 60 calls a minute; try again in 1 s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
