package serve

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// agentContradicted is the event of the audit log that a request was refused which two
// agents would have made: agent is the one that the credential of principal is bound to,
// claimed the other one, and by says what of the request names that: its claim, or its
// connection.
const agentContradicted = "agent.contradicted"

// contradicted has it logged and written down who claims to be another agent than its
// credential is bound to.
func (a *access) contradicted(c mcp.Contradiction) {
	about := map[string]string{
		"claimed": c.Caller.Agent.AgentID, "by": "claim",
		"method": c.Method, "name": cut(c.Name), "trace_id": traceOf(c.Trace),
	}
	a.tellContradiction(c.Caller.Principal, c.Caller.Source, c.Caller.Agent.RequestID, about)
}

// conflicted is contradicted for who comes by the connection of another agent.
func (a *access) conflicted(r *http.Request, c authn.Conflict) {
	a.tellContradiction(c.Principal, c.Source, c.RequestID, map[string]string{
		"claimed": c.Agent, "by": "connection", "path": cut(r.URL.Path), "trace_id": traceOf(mcp.TraceOf(r.Header)),
	})
}

// tellContradiction has a request logged, sparingly, and written down each time.
func (a *access) tellContradiction(p identity.Principal, from identity.Source, request string, about map[string]string) {
	maps.Copy(about, map[string]string{"principal": p.ID, "kind": string(p.Kind), "issuer": p.Issuer, "agent": p.Agent, "ip": from.IP, "listener": from.Listener, "request_id": request})
	maps.DeleteFunc(about, func(_, value string) bool { return value == "" })
	a.engine.Audit(agentContradicted, about)
	withheld, tell := a.contradictions.Tell(time.Now())
	if !tell {
		return
	}
	var attributes []slog.Attr
	for _, name := range slices.Sorted(maps.Keys(about)) {
		attributes = append(attributes, slog.String(name, about[name]))
	}
	if withheld > 0 {
		attributes = append(attributes, slog.Int("not_logged_before", withheld))
	}
	a.engine.Logger().LogAttrs(context.Background(), slog.LevelWarn, "a caller claims to be another agent than its credential is bound to", attributes...)
}

// traceOf returns the id of the trace that a request comes from, "" for none.
func traceOf(t call.Trace) string {
	return cmp.Or(observe.Parent(t.Parent, "").Trace(), observe.Parent(t.CarrierParent, "").Trace())
}

// cut returns the beginning of what a caller calls something. A request that is refused may
// name it by as much text as a message holds, and the log, unlike the audit log, has no bound
// of its own.
func cut(name string) string {
	left := 256 // characters
	for i := range name {
		if left == 0 {
			return name[:i] + "…"
		}
		left--
	}
	return name
}
