package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/recent"
)

const (
	// defaultCalls is the number of past calls without a limit in the query.
	defaultCalls = 100
	// auditBytes and auditTime bound the part of the audit log that one request reads.
	auditBytes = 64 << 20
	auditTime  = 3 * time.Second
	// maxAuditReads bounds the requests that read the audit log at once.
	maxAuditReads = 2
	// maxCalls is the maximum number of past calls in a response.
	maxCalls = 1000
)

// checkQuery sets the defaults of a query, or rejects it.
func checkQuery(q *control.CallQuery) error {
	q.Limit = cmp.Or(q.Limit, defaultCalls)
	if q.Limit < 1 || q.Limit > maxCalls {
		return fmt.Errorf("limit is from 1 to %d calls", maxCalls)
	}
	return nil
}

// watchCalls starts a stream of calls: the recent ones, and then each one that ends.
func (o *runningServer) watchCalls(q control.CallQuery) (any, error) {
	if err := checkQuery(&q); err != nil {
		return nil, err
	}
	if q.Before > 0 {
		return nil, errors.New("before is for the audit log")
	}
	o.server.Inside().Recent().Start()
	return control.Stream{Result: struct{}{}, Serve: func(ctx context.Context, conn *control.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			defer cancel()
			_, _ = io.Copy(io.Discard, conn) // the client sends nothing, and closes its end
		}()
		o.sendCalls(ctx, conn, q)
		_ = conn.SetReadDeadline(time.Now())
		<-closed
	}}, nil
}

// sendCalls sends calls until ctx is done, or until the client does not read.
func (o *runningServer) sendCalls(ctx context.Context, conn *control.Conn, q control.CallQuery) {
	ring := o.server.Inside().Recent()
	var past []control.Call
	last := uint64(0)
	for _, c := range ring.Last(recent.Size) {
		last = c.Seq
		if row := o.callOf(&c); q.Matches(&row) {
			past = append(past, row)
		}
	}
	for _, row := range past[max(0, len(past)-q.Limit):] {
		if conn.Send(row) != nil {
			return
		}
	}
	for c := range ring.Watch(ctx, recent.Size) {
		if row := o.callOf(&c); c.Seq > last && q.Matches(&row) && conn.Send(row) != nil {
			return
		}
	}
}

// callOf converts a recent call, without secrets in texts that its client has chosen.
func (o *runningServer) callOf(c *recent.Call) control.Call {
	redact := o.server.Inside().Redact
	return control.Call{
		Time: c.Time.Add(-c.Duration).UTC(), CallID: c.CallID, RootID: c.RootID, ParentID: c.ParentID, Depth: c.Depth, Kind: c.Kind, Name: redact(c.Name),
		Principal: c.Principal, AuthKind: c.AuthKind, Issuer: c.Issuer, Scopes: c.Scopes, Groups: c.Groups, Agent: redact(c.Agent), Via: c.Via, Listener: c.Listener,
		Outcome: c.Outcome, DeniedBy: c.DeniedBy, DurationMS: milliseconds(c.Duration), RequestID: redact(c.RequestID), TraceID: c.TraceID, Revision: c.Revision,
	}
}

// auditedCall converts a call of the audit log.
func auditedCall(c *audit.Call) control.Call {
	caller := &c.Caller
	return control.Call{
		Seq: c.Seq, Time: c.Began.UTC(), CallID: c.Call, RootID: c.Root, ParentID: c.Parent, Depth: c.Depth, Kind: c.Kind, Name: c.Name,
		Principal: caller.Principal.ID, AuthKind: string(caller.Principal.Kind), Issuer: caller.Principal.Issuer, Via: c.Via,
		Scopes: caller.Principal.Scopes, Groups: caller.Principal.Groups, Agent: caller.Agent.AgentID,
		Listener: caller.Source.Listener, Outcome: c.Outcome, DeniedBy: c.DeniedBy, Message: c.Message, DurationMS: milliseconds(c.Duration),
		RequestID: caller.Agent.RequestID, TraceID: c.TraceID, Revision: c.Revision,
	}
}

// noAuditLog is the reason why there are no earlier calls.
const noAuditLog = "the server writes no audit log; to get one, add an audit block to mcpd.hcl and restart mcpd"

// auditedCalls returns calls of the audit log, newest first.
func (o *runningServer) auditedCalls(ctx context.Context, q control.CallQuery) (any, error) {
	if err := checkQuery(&q); err != nil {
		return nil, err
	}
	row := control.AuditResult{Calls: []control.Call{}}
	log := o.server.Inside().AuditLog()
	if log == nil {
		row.Problem = noAuditLog
		return row, nil
	}
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	select {
	case o.auditReads <- struct{}{}:
		defer func() { <-o.auditReads }()
	case <-ctx.Done():
		return nil, errors.New("the server is reading the audit log for other requests; try again")
	}
	next, err := audit.CallsBefore(ctx, log.Path(), q.Before, auditBytes, func(c *audit.Call) bool {
		found := auditedCall(c)
		if !q.Matches(&found) {
			return true
		}
		if len(row.Calls) == q.Limit {
			row.More = true
			return false
		}
		row.Calls = append(row.Calls, found)
		row.Next = found.Seq
		return true
	})
	if err != nil {
		return nil, err
	}
	if next > 0 {
		row.More, row.Next = true, next
	}
	if !row.More {
		row.Next = 0
	}
	return row, nil
}
