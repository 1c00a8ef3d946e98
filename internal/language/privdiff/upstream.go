package privdiff

import (
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// upstream returns what an upstream block says: which server is run or reached, with
// what, and what of it is offered.
func (s *Side) upstream(u hclfile.Upstream) account {
	a := account{kind: "upstream", name: u.Name, where: u.NameRange}
	a.encoded(grant.Judged, "command", append([]string{u.Dir}, u.Command...))
	a.encoded(grant.Judged, "url", []string{u.URL, u.Transport})
	a.when(u.Private && !strings.HasPrefix(u.URL, "https:"), grant.Gives, "private_networks") // else the grant says it
	a.encoded(grant.Judged, "pin", u.Pin)
	a.encoded(grant.Told, "lazy", u.Lazy)
	for _, v := range u.Env {
		part := `env "` + v.Name + `"`
		a.add(grant.Fact{Part: part}, a.where)
		a.add(grant.Fact{Part: part, Option: "value", Sense: grant.Judged, Value: encode(v.Value)}, a.where)
	}
	if u.Container != nil {
		a.encoded(grant.Judged, "container", plainContainer(*u.Container))
	}
	for _, kind := range u.Offer {
		a.say(grant.Gives, "offer", kind)
	}
	a.when(u.Instructions, grant.Gives, "instructions")
	for _, name := range u.Escape {
		a.say(grant.Gives, "escape", name)
	}
	a.names(grant.Gives, "include", u.Include)
	for _, n := range u.Exclude {
		a.add(grant.Fact{Option: "exclude", Sense: grant.Holds, Value: n.Text, Pattern: true}, n.Range)
	}
	a.encoded(grant.Judged, "prefix", u.Prefix)
	a.encoded(grant.Judged, "rename", u.Rename)
	for _, o := range u.Overrides {
		a.override(o)
	}
	a.encoded(grant.Judged, "labels", u.Labels)
	a.bounds(u.Bounds, unknown)
	a.add(grant.TimeFact("", "ask_timeout", u.AskTimeout), a.where)
	a.add(grant.TimeFact("", "start_timeout", u.Start), a.where)
	a.add(grant.SizeFact("", "max_message", u.MaxMessage), a.where)
	set := grant.Set{Ask: &u.Ask}
	if u.URL != "" {
		set.HTTP = []grant.HTTP{u.Grant}
	}
	a.grants(s, set, nil)
	return a
}

// override adds what is said of a tool in the place of what its server says, of which
// policies know the half.
func (a *account) override(o hclfile.Override) {
	part := `override "` + o.Tool + `"`
	b := o.Bounds
	a.add(grant.Fact{Part: part, Sense: grant.Judged}, o.Range)
	say := func(sense grant.Sense, option string, value any) {
		a.add(grant.Fact{Part: part, Option: option, Sense: sense, Value: encode(value)}, o.Range)
	}
	say(grant.Judged, "annotations", []any{o.ReadOnly, o.Destructive, o.Idempotent, o.OpenWorld})
	say(grant.Judged, "labels", o.Labels)
	say(grant.Judged, "limits", []any{b.Timeout, b.Memory, b.Output, b.Concurrency})
	say(grant.Told, "text", []any{o.Title, o.Description})
	if o.Cache == nil {
		return
	}
	say(grant.Told, "cache", o.Cache.TTL)
	if o.Cache.Scope != hclfile.CachePrincipal {
		a.add(grant.Fact{Part: part, Option: "cache scope", Value: o.Cache.Scope}, o.Range)
	}
}

// plainContainer returns a container without where it stands.
func plainContainer(c hclfile.Container) hclfile.Container {
	c.Range = noRange
	c.Volumes = slices.Clone(c.Volumes)
	for i := range c.Volumes {
		c.Volumes[i].NameRange = noRange
	}
	return c
}

// codeact returns what the codeact block says: which tools the code of agents may call,
// and how much.
func codeact(c *hclfile.Codeact) account {
	a := account{kind: "codeact", where: c.Range}
	a.names(grant.Gives, "tools", c.Tools)
	a.number("max_calls", c.MaxCalls, unknown)
	a.number("max_parallel", c.MaxParallel, unknown)
	a.add(grant.SizeFact("", "max_stdout", int64(c.MaxStdout)), a.where)
	a.when(c.Search, grant.Gives, "search")
	a.encoded(grant.Judged, "labels", c.Labels)
	a.bounds(c.Bounds, unknown)
	a.add(grant.TimeFact("", "ask_timeout", c.AskTimeout), a.where)
	return a
}
