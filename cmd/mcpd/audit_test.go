package main

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/audit"
)

// cmdAudited writes an audit log of N calls, one per minute from 9:30 on.
func cmdAudited(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: audited path number")
	}
	number, err := strconv.Atoi(args[1])
	ts.Check(err)
	now := time.Date(2026, 7, 28, 9, 30, 0, 0, time.UTC)
	l, err := audit.Open(audit.Options{Path: ts.MkAbs(args[0]), Mode: audit.Strict, Now: func() time.Time { return now }})
	ts.Check(err)
	for i := range number {
		err = errors.Join(err, l.Outcome(&audit.Record{
			Call: "c-" + strconv.Itoa(i), Via: "client", Kind: "tool", Name: "refund", Method: "tools/call",
			Caller:    identity.Caller{Principal: identity.Principal{ID: "alice", Kind: identity.KindLocal}},
			Arguments: json.RawMessage(`{"amount":` + strconv.Itoa(i) + `}`),
			Outcome:   "POLICY_DENIED", DeniedBy: "small_refunds_only", Message: "not \u202eyou", Duration: time.Millisecond,
		}))
		now = now.Add(time.Minute)
	}
	ts.Check(errors.Join(err, l.Close()))
}
