package privdiff

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// noRange is the place of what is compared wherever it stands.
var noRange diag.Range

func (s *Side) resource(r *definition.Resource) account {
	a := account{kind: "resource", name: r.Name, where: r.NameRange}
	a.say(grant.Judged, "uri", r.URI)
	a.encoded(grant.Told, "title", r.Title)
	a.encoded(grant.Told, "description", r.Description)
	a.encoded(grant.Told, "mime_type", r.MIMEType)
	a.encoded(grant.Told, "size", r.Size)
	a.encoded(grant.Told, "annotations", r.Annotations)
	a.encoded(grant.Told, "icons", r.Icons)
	s.call(&a, &r.Call)
	a.content(r.Content)
	a.body(grant.Told, "body", r.Run)
	return a
}

// content adds what stays the same until the files change. Who wants to know
// what it holds reads it.
func (a *account) content(c *definition.Content) {
	if c == nil {
		return
	}
	hash := sha256.Sum256(c.Bytes)
	a.encoded(grant.Told, "content", []string{hex.EncodeToString(hash[:]), c.MIMEType, c.Path, strconv.FormatBool(c.Binary)})
}

// folder returns what a folder of resources says: every file of it is offered.
func folder(f *definition.Folder) account {
	a := account{kind: "resource_folder", name: f.Name, where: f.NameRange}
	a.add(grant.Fact{Option: "root", Value: f.Root}, f.RootRange)
	for _, glob := range f.Glob {
		a.say(grant.Gives, "glob", glob)
	}
	for _, glob := range f.Exclude {
		a.say(grant.Holds, "exclude", glob)
	}
	a.add(grant.Fact{Option: "uri_prefix", Sense: grant.Judged, Value: f.URIPrefix}, f.PrefixRange)
	a.encoded(grant.Told, "mime_types", f.MIMETypes)
	a.add(grant.SizeFact("", "max_file", f.MaxFile), a.where)
	a.encoded(grant.Judged, "labels", f.Labels)
	a.encoded(grant.Told, "description", f.Description)
	a.encoded(grant.Told, "annotations", f.Annotations)
	a.encoded(grant.Told, "icons", f.Icons)
	return a
}

func (s *Side) template(t *definition.Template) account {
	a := account{kind: "resource_template", name: t.Name, where: t.NameRange}
	a.say(grant.Judged, "uri_template", t.URITemplate.String())
	for _, p := range t.Params {
		part := `param "` + p.Name + `"`
		a.encoded(grant.Told, part+" description", p.Description)
		if p.Pattern != "" {
			a.add(grant.Fact{Part: part, Option: "pattern", Sense: grant.Holds, Value: p.Pattern}, p.Range)
		}
		a.complete(part, p.Complete)
	}
	a.encoded(grant.Told, "title", t.Title)
	a.encoded(grant.Told, "description", t.Description)
	a.encoded(grant.Told, "mime_type", t.MIMEType)
	a.encoded(grant.Told, "annotations", t.Annotations)
	a.encoded(grant.Told, "icons", t.Icons)
	s.call(&a, &t.Call)
	a.encoded(grant.Told, "text", t.Text)
	a.body(grant.Told, "body", t.Run)
	return a
}

func (s *Side) prompt(p *definition.Prompt) account {
	a := account{kind: "prompt", name: p.Name, where: p.NameRange}
	a.encoded(grant.Told, "title", p.Title)
	a.encoded(grant.Told, "description", p.Description)
	a.encoded(grant.Told, "icons", p.Icons)
	for _, argument := range p.Arguments {
		part := `argument "` + argument.Name + `"`
		a.encoded(grant.Told, part, []any{argument.Title, argument.Description, argument.Required})
		a.complete(part, argument.Complete)
	}
	s.call(&a, &p.Call)
	a.encoded(grant.Told, "messages", placeless(p.Messages))
	a.body(grant.Told, "body", p.Run)
	return a
}

// placeless returns messages without where they stand.
func placeless(list []definition.Message) []definition.Message {
	plain := make([]definition.Message, len(list))
	for i, m := range list {
		m.Range = noRange
		plain[i] = m
	}
	return plain
}

// complete adds what a value is completed by.
func (a *account) complete(part string, c *definition.Complete) {
	if c == nil {
		return
	}
	a.encoded(grant.Told, part+" completion", c.Values)
	a.body(grant.Told, part+" completion", c.Run)
}

// upstream returns what an upstream block says: which server is run or reached, with
// what, and what of it is offered.
func (s *Side) upstream(u *definition.Upstream) account {
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
func (a *account) override(o definition.Override) {
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
	if o.Cache.Scope != definition.CachePrincipal {
		a.add(grant.Fact{Part: part, Option: "cache scope", Value: o.Cache.Scope}, o.Range)
	}
}

// plainContainer returns a container without where it stands.
func plainContainer(c definition.Container) definition.Container {
	c.Range = noRange
	c.Volumes = slices.Clone(c.Volumes)
	for i := range c.Volumes {
		c.Volumes[i].NameRange = noRange
	}
	return c
}

// codeact returns what the codeact block says: which tools the code of agents may call,
// and how much.
func codeact(c *definition.Codeact) account {
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
