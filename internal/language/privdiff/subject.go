package privdiff

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// fact is a fact with its range.
type fact struct {
	grant.Fact
	where diag.Range
}

// subject holds the facts of one definition.
type subject struct {
	kind, name string
	// direction is the effect of the existence of the definition.
	direction grant.Direction
	where     diag.Range
	facts     []fact
}

func (s *subject) add(f grant.Fact, where diag.Range) { s.facts = append(s.facts, fact{f, where}) }

// addOption adds a fact of the definition itself.
func (s *subject) addOption(direction grant.Direction, option, value string) {
	s.add(grant.Fact{Option: option, Direction: direction, Value: value}, s.where)
}

// addIf adds a fact without a value if the condition holds.
func (s *subject) addIf(is bool, direction grant.Direction, option string) {
	if is {
		s.addOption(direction, option, "")
	}
}

// encoded adds a fact with plain data as value.
func (s *subject) encoded(direction grant.Direction, option string, value any) {
	s.addOption(direction, option, encode(value))
}

// number adds a limit on a count. 0 means otherwise, which is +Inf or NaN.
func (s *subject) number(option string, n int, otherwise float64) {
	s.add(orUnbounded(grant.CountFact("", option, n), otherwise), s.where)
}

// orUnbounded returns a limit. An unknown limit becomes otherwise, which is +Inf or NaN.
func orUnbounded(f grant.Fact, otherwise float64) grant.Fact {
	if math.IsNaN(f.Amount) && math.IsInf(otherwise, 1) {
		f.Value, f.Amount = "no limit", otherwise
	}
	return f
}

// code adds the fact of code. Only its change is reported, never its text.
func (s *subject) code(direction grant.Direction, option string, b *definition.Code) {
	if b == nil {
		return
	}
	s.add(grant.Fact{Option: option, Direction: direction, Value: b.Language + "\x00" + b.Text.Body()}, rangeOfCode(b, s.where))
}

// rangeOfCode returns the range of inline code. For code in a file, it is the range of the
// reference.
func rangeOfCode(b *definition.Code, otherwise diag.Range) diag.Range {
	if b.Path != "" || b.Text.IsZero() {
		return otherwise
	}
	return b.Text.All()
}

// names adds a list of names and patterns. A nil list matches everything.
func (s *subject) names(direction grant.Direction, option string, list []definition.Name) {
	if list == nil {
		s.add(grant.Fact{Option: option, Direction: direction, Value: "*", Pattern: true}, s.where)
	}
	for _, n := range list {
		s.add(grant.Fact{Option: option, Direction: direction, Value: n.Text, Pattern: true}, n.Range)
	}
}

// targets adds the targets of a policy, a limit or a hook.
func (s *subject) targets(direction grant.Direction, t definition.Targets) {
	s.names(direction, "tools", t.Tools)
	s.names(direction, "resources", t.Resources)
	s.names(direction, "prompts", t.Prompts)
}

// bounds adds the limits of calls. A limit that is not set becomes otherwise.
func (s *subject) bounds(b definition.Bounds, otherwise float64) {
	at := len(s.facts)
	s.add(grant.TimeFact("", "timeout", b.Timeout), s.where)
	s.add(grant.SizeFact("", "memory", b.Memory), s.where)
	s.add(grant.SizeFact("", "output", b.Output), s.where)
	s.number("concurrency", b.Concurrency, math.Inf(1))
	for i := range s.facts[at:] {
		f := &s.facts[at+i]
		f.Fact = orUnbounded(f.Fact, otherwise)
		if where, written := b.Ranges[f.Option]; written {
			f.where = where
		}
	}
}

// grants adds the facts of an allow block.
func (s *subject) grants(snap *Snapshot, set grant.Set, ranges map[string]diag.Range) {
	for _, f := range set.Facts(snap.ToolsDir) {
		s.add(f, rangeOf(ranges, f, s.where))
	}
	for _, g := range set.FS {
		s.addResolvedLinks("fs."+g.Name, ".root", snap.resolveLinks(g.Root, g.Relative), ranges)
	}
	for _, g := range set.SQL {
		s.addResolvedLinks("sql."+g.Name, ".path", snap.resolveLinks(g.Path, g.Relative), ranges)
	}
	for _, g := range set.Exec {
		s.addResolvedLinks("exec."+g.Name, ".path", snap.resolveLinks(g.Path, false), ranges)
	}
}

// addResolvedLinks adds the resolved path of an object if links change it.
func (s *subject) addResolvedLinks(of, path, target string, ranges map[string]diag.Range) {
	if target != "" {
		f := grant.Fact{Object: of, Option: "links of its path", Direction: grant.Opaque, Value: target, RangeKey: of + path}
		s.add(f, rangeOf(ranges, f, s.where))
	}
}

// rangeOf returns the range of a fact, or else of its object.
func rangeOf(ranges map[string]diag.Range, f grant.Fact, otherwise diag.Range) diag.Range {
	for _, key := range []string{f.RangeKey, f.Object} {
		for ; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
			if where, ok := ranges[key]; ok {
				return where
			}
		}
	}
	return otherwise
}

// encode returns plain data as JSON.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("privdiff: plain data did not encode: " + err.Error())
	}
	return string(b)
}

// unknown is the amount of a limit that the config file or mcpd decides.
var unknown = math.NaN()

// tool returns the facts of a tool. Facts that policies read must be reviewed: a tool that
// claims to be read-only passes policies on writing.
func (s *Snapshot) tool(t *definition.Tool) subject {
	sub := subject{kind: "tool", name: t.Name, where: t.NameRange}
	sub.encoded(grant.Opaque, "title", t.Title)
	sub.encoded(grant.Neutral, "description", []any{t.HasDescription, t.Description})
	sub.encoded(grant.Neutral, "icons", t.Icons)
	sub.encoded(grant.Opaque, "idempotent", t.Idempotent)
	sub.encoded(grant.Opaque, "read_only", t.ReadOnly)
	sub.encoded(grant.Opaque, "destructive", t.Destructive)
	sub.encoded(grant.Opaque, "open_world", t.OpenWorld)
	s.call(&sub, &t.Call)
	sub.addIf(t.Task != "", grant.Increases, "task")
	sub.encoded(grant.Neutral, "task", t.Task)
	sub.add(grant.Fact{Option: "task_ttl", Direction: grant.Limit, Value: t.TaskTTL.String(), Amount: float64(t.TaskTTL)}, sub.where)
	sub.encoded(grant.Neutral, "ask_first", t.AskFirst)
	sub.cache(t.Cache)
	sub.schema("input", t.Input, t.InputOrigin)
	if t.Output != nil {
		sub.add(grant.Fact{Part: "output", Direction: grant.Restricts}, t.OutputRange)
	}
	sub.schema("output", t.Output, t.OutputOrigin)
	for _, from := range t.From {
		part := `input "` + from.Name + `" of the server`
		sub.add(grant.Fact{Part: part, Direction: grant.Restricts}, from.Range)
		sub.add(grant.Fact{Part: part, Option: "from", Direction: grant.Opaque, Value: from.Expr.Text.Body() + "\x00" + string(from.Schema)}, from.Range)
	}
	sub.pointers("sensitive input", t.Sensitive)
	sub.pointers("sensitive output", t.SensitiveOutput)
	sub.code(grant.Neutral, "script", &t.Run)
	sub.code(grant.Neutral, "dry_run script", t.DryRun)
	return sub
}

// cache adds the callers that share cached results. Caching itself gives no privilege.
func (s *subject) cache(c *definition.Cache) {
	if c == nil {
		return
	}
	s.encoded(grant.Neutral, "cache", c.TTL)
	if c.Scope != definition.CachePrincipal {
		s.add(grant.Fact{Option: "cache scope", Value: c.Scope}, c.Range)
	}
}

// pointers adds sensitive parts of values.
func (s *subject) pointers(option string, list []string) {
	for _, pointer := range list {
		s.addOption(grant.Restricts, option, pointer)
	}
}

// policy returns the facts of a policy. It limits privilege, unless calls without a policy are
// denied: then an allow rule may give privilege.
func (s *Snapshot) policy(p *definition.Policy, operators bool) subject {
	sub := subject{kind: "policy", name: p.Name, where: p.NameRange, direction: grant.Restricts}
	if p.Allow != nil && s.deniesByDefault() {
		sub.direction = grant.Opaque
	}
	sub.addIf(operators, grant.Restricts, inConfigFile)
	sub.targets(sub.direction, p.Targets)
	if p.OnResult {
		sub.addOption(grant.Opaque, "on", "result")
	}
	sub.code(grant.Opaque, "when", p.When)
	sub.code(grant.Opaque, "allow", p.Allow)
	sub.code(grant.Opaque, "deny", p.Deny)
	sub.code(grant.Opaque, "requires_approval", p.Approval)
	sub.encoded(grant.Neutral, "reason", p.Reason)
	sub.code(grant.Neutral, "reason", p.ReasonExpr)
	sub.addOption(grant.Opaque, "disclose", p.Disclose)
	return sub
}

// inConfigFile is the fact that tool files cannot remove the rule.
const inConfigFile = "is in the config file"

func (s *Snapshot) deniesByDefault() bool {
	server := s.Config.Server
	return server.DefaultDecision == definition.DecideDeny || server.Mode == definition.Production
}

func limit(l *definition.Limit, operators bool) subject {
	s := subject{kind: "limit", name: l.Name, where: l.NameRange, direction: grant.Restricts}
	s.addIf(operators, grant.Restricts, inConfigFile)
	s.targets(grant.Restricts, l.Targets)
	s.code(grant.Opaque, "key", l.Key)
	rate := grant.Fact{Option: "rate", Direction: grant.Limit, Value: "no bound", Amount: math.Inf(1)}
	if l.Calls > 0 && l.Per > 0 {
		rate.Value = strconv.Itoa(l.Calls) + " in " + l.Per.String()
		rate.Amount = float64(l.Calls) * float64(time.Hour) / float64(l.Per)
	}
	s.add(rate, s.where)
	s.number("burst", l.Burst, math.Inf(1))
	s.number("concurrency", l.Concurrency, math.Inf(1))
	s.addIf(l.FailOpen, grant.Increases, "allows calls while the shared store fails")
	s.encoded(grant.Neutral, "reason", l.Reason)
	return s
}

// hook returns the facts of a hook. Seeing more is a privilege, and seeing less removes a
// safeguard, so both must be reviewed.
func (s *Snapshot) hook(h *definition.Hook, operators bool) subject {
	sub := subject{kind: "hook", name: h.Name, where: h.NameRange, direction: grant.Opaque}
	sub.addIf(operators, grant.Restricts, inConfigFile)
	for _, phase := range h.On {
		sub.addOption(grant.Opaque, "on", phase)
	}
	sub.targets(grant.Opaque, h.Targets)
	sub.add(grant.TimeFact("", "timeout", h.Timeout), sub.where)
	sub.grants(s, h.Grant, h.GrantRanges)
	sub.code(grant.Neutral, "script", &h.Run)
	return sub
}
