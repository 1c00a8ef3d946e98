package privdiff

import (
	"math"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// unknown is the amount of a bound that the operator's file or mcpd decides.
var unknown = math.NaN()

// tool returns what a tool says. What policies know of it is not for the tool to
// change unseen: a tool that calls itself read-only passes policies on writing.
func (s *Side) tool(t *hclfile.Tool) account {
	a := account{kind: "tool", name: t.Name, where: t.NameRange}
	a.encoded(grant.Told, "title", t.Title)
	a.encoded(grant.Told, "description", []any{t.HasDescription, t.Description})
	a.encoded(grant.Told, "icons", icons(t.Icons))
	a.encoded(grant.Judged, "idempotent", t.Idempotent)
	a.encoded(grant.Judged, "read_only", t.ReadOnly)
	a.encoded(grant.Judged, "destructive", t.Destructive)
	a.encoded(grant.Judged, "open_world", t.OpenWorld)
	s.call(&a, &t.Call)
	a.when(t.Task != "", grant.Gives, "task")
	a.encoded(grant.Told, "task", t.Task)
	a.add(grant.Fact{Option: "task_ttl", Sense: grant.UpTo, Value: t.TaskTTL.String(), Amount: float64(t.TaskTTL)}, a.where)
	a.encoded(grant.Told, "ask_first", t.AskFirst)
	a.cache(t.Cache)
	a.schema("input", t.Input, t.InputOrigin)
	if t.Output != nil {
		a.add(grant.Fact{Part: "output", Sense: grant.Holds}, t.OutputRange)
	}
	a.schema("output", t.Output, t.OutputOrigin)
	for _, from := range t.From {
		part := `input "` + from.Name + `" of the server`
		a.add(grant.Fact{Part: part, Sense: grant.Holds}, from.Range)
		a.add(grant.Fact{Part: part, Option: "from", Sense: grant.Judged, Value: from.Expr.Text.Body() + "\x00" + string(from.Schema)}, from.Range)
	}
	a.pointers("sensitive input", t.Sensitive)
	a.pointers("sensitive output", t.SensitiveOutput)
	a.body(grant.Told, "body", &t.Run)
	a.body(grant.Told, "dry_run body", t.DryRun)
	return a
}

// cache adds to whom results are given again. That they are is no power.
func (a *account) cache(c *hclfile.Cache) {
	if c == nil {
		return
	}
	a.encoded(grant.Told, "cache", c.TTL)
	if c.Scope != hclfile.CachePrincipal {
		a.add(grant.Fact{Option: "cache scope", Value: c.Scope}, c.Range)
	}
}

// pointers adds what is shown to nobody else.
func (a *account) pointers(option string, list []string) {
	for _, pointer := range list {
		a.say(grant.Holds, option, pointer)
	}
}

// icons returns icons without where they stand.
func icons(list []hclfile.Icon) []hclfile.Icon {
	plain := make([]hclfile.Icon, len(list))
	for i, icon := range list {
		icon.Range = noRange
		plain[i] = icon
	}
	return plain
}
