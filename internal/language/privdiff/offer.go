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

// noRange replaces ranges, which are not compared.
var noRange diag.Range

func (s *Snapshot) resource(r *definition.Resource) subject {
	sub := subject{kind: "resource", name: r.Name, where: r.NameRange}
	sub.addOption(grant.Opaque, "uri", r.URI)
	sub.encoded(grant.Opaque, "title", r.Title)
	sub.encoded(grant.Neutral, "description", r.Description)
	sub.encoded(grant.Neutral, "mime_type", r.MIMEType)
	sub.encoded(grant.Neutral, "size", r.Size)
	sub.encoded(grant.Neutral, "annotations", r.Annotations)
	sub.encoded(grant.Neutral, "icons", r.Icons)
	s.call(&sub, &r.Call)
	sub.content(r.Content)
	sub.code(grant.Neutral, "script", r.Run)
	return sub
}

// content adds static content. Only the fact that it changed is reported.
func (s *subject) content(c *definition.Content) {
	if c == nil {
		return
	}
	hash := sha256.Sum256(c.Bytes)
	s.encoded(grant.Neutral, "content", []string{hex.EncodeToString(hash[:]), c.MIMEType, c.Path, strconv.FormatBool(c.Binary)})
}

// folder returns the facts of a resource folder. It provides all its files.
func folder(f *definition.Folder) subject {
	s := subject{kind: "resource_folder", name: f.Name, where: f.NameRange}
	s.add(grant.Fact{Option: "root", Value: f.Root}, f.RootRange)
	for _, glob := range f.Glob {
		s.addOption(grant.Increases, "glob", glob)
	}
	for _, glob := range f.Exclude {
		s.addOption(grant.Restricts, "exclude", glob)
	}
	s.add(grant.Fact{Option: "uri_prefix", Direction: grant.Opaque, Value: f.URIPrefix}, f.PrefixRange)
	s.encoded(grant.Neutral, "mime_types", f.MIMETypes)
	s.add(grant.SizeFact("", "max_file", f.MaxFile), s.where)
	s.encoded(grant.Opaque, "labels", f.Labels)
	s.encoded(grant.Neutral, "description", f.Description)
	s.encoded(grant.Neutral, "annotations", f.Annotations)
	s.encoded(grant.Neutral, "icons", f.Icons)
	return s
}

func (s *Snapshot) template(t *definition.Template) subject {
	sub := subject{kind: "resource_template", name: t.Name, where: t.NameRange}
	sub.addOption(grant.Opaque, "uri_template", t.URITemplate.String())
	for _, p := range t.Params {
		part := `param "` + p.Name + `"`
		sub.encoded(grant.Neutral, part+" description", p.Description)
		if p.Pattern != "" {
			sub.add(grant.Fact{Part: part, Option: "pattern", Direction: grant.Restricts, Value: p.Pattern}, p.Range)
		}
		sub.complete(part, p.Complete)
	}
	sub.encoded(grant.Opaque, "title", t.Title)
	sub.encoded(grant.Neutral, "description", t.Description)
	sub.encoded(grant.Neutral, "mime_type", t.MIMEType)
	sub.encoded(grant.Neutral, "annotations", t.Annotations)
	sub.encoded(grant.Neutral, "icons", t.Icons)
	s.call(&sub, &t.Call)
	sub.encoded(grant.Neutral, "text", t.Text)
	sub.code(grant.Neutral, "script", t.Run)
	return sub
}

func (s *Snapshot) prompt(p *definition.Prompt) subject {
	sub := subject{kind: "prompt", name: p.Name, where: p.NameRange}
	sub.encoded(grant.Opaque, "title", p.Title)
	sub.encoded(grant.Neutral, "description", p.Description)
	sub.encoded(grant.Neutral, "icons", p.Icons)
	for _, argument := range p.Arguments {
		part := `argument "` + argument.Name + `"`
		sub.encoded(grant.Neutral, part, []any{argument.Title, argument.Description, argument.Required})
		sub.complete(part, argument.Complete)
	}
	s.call(&sub, &p.Call)
	sub.encoded(grant.Neutral, "messages", withoutRanges(p.Messages))
	sub.code(grant.Neutral, "script", p.Run)
	return sub
}

// withoutRanges returns messages without their ranges.
func withoutRanges(list []definition.Message) []definition.Message {
	plain := make([]definition.Message, len(list))
	for i, m := range list {
		m.Range = noRange
		plain[i] = m
	}
	return plain
}

// complete adds the completion of a value.
func (s *subject) complete(part string, c *definition.Complete) {
	if c == nil {
		return
	}
	s.encoded(grant.Neutral, part+" completion", c.Values)
	s.code(grant.Neutral, part+" completion", c.Run)
}

// upstream returns the facts of an upstream block: the server, its settings, and the provided
// items.
func (s *Snapshot) upstream(u *definition.Upstream) subject {
	sub := subject{kind: "upstream", name: u.Name, where: u.NameRange}
	sub.encoded(grant.Opaque, "command", append([]string{u.Dir}, u.Command...))
	sub.encoded(grant.Opaque, "url", []string{u.URL, u.Transport})
	sub.addIf(u.Private && !strings.HasPrefix(u.URL, "https:"), grant.Increases, "private_networks") // otherwise the grant has it
	sub.encoded(grant.Opaque, "pin", u.Pin)
	sub.encoded(grant.Neutral, "lazy", u.Lazy)
	for _, v := range u.Env {
		part := `env "` + v.Name + `"`
		sub.add(grant.Fact{Part: part}, sub.where)
		sub.add(grant.Fact{Part: part, Option: "value", Direction: grant.Opaque, Value: encode(v.Value)}, sub.where)
	}
	if u.Container != nil {
		sub.encoded(grant.Opaque, "container", plainContainer(*u.Container))
	}
	for _, kind := range u.Offer {
		sub.addOption(grant.Increases, "offer", kind)
	}
	sub.addIf(u.Instructions, grant.Increases, "instructions")
	for _, name := range u.Escape {
		sub.addOption(grant.Increases, "escape", name)
	}
	sub.names(grant.Increases, "include", u.Include)
	for _, n := range u.Exclude {
		sub.add(grant.Fact{Option: "exclude", Direction: grant.Restricts, Value: n.Text, Pattern: true}, n.Range)
	}
	sub.encoded(grant.Opaque, "prefix", u.Prefix)
	sub.encoded(grant.Opaque, "rename", u.Rename)
	for _, o := range u.Overrides {
		sub.override(o)
	}
	sub.encoded(grant.Opaque, "labels", u.Labels)
	sub.bounds(u.Bounds, unknown)
	sub.add(grant.TimeFact("", "ask_timeout", u.AskTimeout), sub.where)
	sub.add(grant.TimeFact("", "start_timeout", u.Start), sub.where)
	sub.add(grant.SizeFact("", "max_message", u.MaxMessage), sub.where)
	set := grant.Set{Ask: &u.Ask}
	if u.URL != "" {
		set.HTTP = []grant.HTTP{u.Grant}
	}
	sub.grants(s, set, nil)
	return sub
}

// override adds replaced metadata of a tool. Policies read some of it.
func (s *subject) override(o definition.Override) {
	part := `override "` + o.Tool + `"`
	b := o.Bounds
	s.add(grant.Fact{Part: part, Direction: grant.Opaque}, o.Range)
	say := func(direction grant.Direction, option string, value any) {
		s.add(grant.Fact{Part: part, Option: option, Direction: direction, Value: encode(value)}, o.Range)
	}
	say(grant.Opaque, "annotations", []any{o.ReadOnly, o.Destructive, o.Idempotent, o.OpenWorld})
	say(grant.Opaque, "labels", o.Labels)
	say(grant.Opaque, "limits", []any{b.Timeout, b.Memory, b.Output, b.Concurrency})
	say(grant.Neutral, "text", []any{o.Title, o.Description})
	if o.Cache == nil {
		return
	}
	say(grant.Neutral, "cache", o.Cache.TTL)
	if o.Cache.Scope != definition.CachePrincipal {
		s.add(grant.Fact{Part: part, Option: "cache scope", Value: o.Cache.Scope}, o.Range)
	}
}

// plainContainer returns a container without its ranges.
func plainContainer(c definition.Container) definition.Container {
	c.Range = noRange
	c.Volumes = slices.Clone(c.Volumes)
	for i := range c.Volumes {
		c.Volumes[i].NameRange = noRange
	}
	return c
}

// console returns the facts of the console block: who may look, operate and impersonate.
func console(c *definition.Console) subject {
	s := subject{kind: "console", where: c.Range}
	s.code(grant.Opaque, "allow", c.Allow)
	s.addIf(c.Operate != nil, grant.Increases, "operate")
	s.code(grant.Opaque, "operate", c.Operate)
	s.addIf(c.Impersonate != nil, grant.Increases, "impersonate")
	s.code(grant.Opaque, "impersonate", c.Impersonate)
	return s
}

// codeact returns the facts of the codeact block: the callable tools and the limits.
func codeact(c *definition.Codeact) subject {
	s := subject{kind: "codeact", where: c.Range}
	s.names(grant.Increases, "tools", c.Tools)
	s.number("max_calls", c.MaxCalls, unknown)
	s.number("max_parallel", c.MaxParallel, unknown)
	s.add(grant.SizeFact("", "max_stdout", int64(c.MaxStdout)), s.where)
	s.addIf(c.Search, grant.Increases, "search")
	s.encoded(grant.Opaque, "labels", c.Labels)
	s.bounds(c.Bounds, unknown)
	s.add(grant.TimeFact("", "ask_timeout", c.AskTimeout), s.where)
	return s
}
