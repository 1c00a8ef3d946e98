package privdiff

import (
	"math"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// policy returns what a policy says. It holds power back, unless calls that no
// policy covers are denied: an allow rule may open a way then.
func (s *Side) policy(p *hclfile.Policy, operators bool) account {
	a := account{kind: "policy", name: p.Name, where: p.NameRange, sense: grant.Holds}
	if p.Allow != nil && s.deniesByDefault() {
		a.sense = grant.Judged
	}
	a.when(operators, grant.Holds, inOperatorsFile)
	a.targets(a.sense, p.Targets)
	if p.OnResult {
		a.say(grant.Judged, "on", "result")
	}
	a.body(grant.Judged, "when", p.When)
	a.body(grant.Judged, "allow", p.Allow)
	a.body(grant.Judged, "deny", p.Deny)
	a.body(grant.Judged, "requires_approval", p.Approval)
	a.encoded(grant.Told, "reason", p.Reason)
	a.body(grant.Told, "reason", p.ReasonExpr)
	a.say(grant.Judged, "disclose", p.Disclose)
	return a
}

// inOperatorsFile is the fact that no tool file can take a rule away.
const inOperatorsFile = "stands in the operator's file"

func (s *Side) deniesByDefault() bool {
	said := s.Config.Server
	return said.DefaultDecision == hclfile.DecideDeny || said.Mode == hclfile.Production
}

func limit(l *hclfile.Limit, operators bool) account {
	a := account{kind: "limit", name: l.Name, where: l.NameRange, sense: grant.Holds}
	a.when(operators, grant.Holds, inOperatorsFile)
	a.targets(grant.Holds, l.Targets)
	a.body(grant.Judged, "key", l.Key)
	rate := grant.Fact{Option: "rate", Sense: grant.UpTo, Value: "no bound", Amount: math.Inf(1)}
	if l.Calls > 0 && l.Per > 0 {
		rate.Value = strconv.Itoa(l.Calls) + " in " + l.Per.String()
		rate.Amount = float64(l.Calls) * float64(time.Hour) / float64(l.Per)
	}
	a.add(rate, a.where)
	a.number("burst", l.Burst, math.Inf(1))
	a.number("concurrency", l.Concurrency, math.Inf(1))
	a.encoded(grant.Told, "reason", l.Reason)
	return a
}

// hook returns what a hook says. One that sees more has more power, and one that
// sees less tells somebody less: both are to be read.
func (s *Side) hook(h *hclfile.Hook, operators bool) account {
	a := account{kind: "hook", name: h.Name, where: h.NameRange, sense: grant.Judged}
	a.when(operators, grant.Holds, inOperatorsFile)
	for _, phase := range h.On {
		a.say(grant.Judged, "on", phase)
	}
	a.targets(grant.Judged, h.Targets)
	a.add(grant.TimeFact("", "timeout", h.Timeout), a.where)
	a.grants(s, h.Grant, h.GrantRanges)
	a.body(grant.Told, "body", &h.Run)
	return a
}
