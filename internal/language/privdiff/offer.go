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
	a := subject{kind: "resource", name: r.Name, where: r.NameRange}
	a.addOption(grant.Opaque, "uri", r.URI)
	a.encoded(grant.Opaque, "title", r.Title)
	a.encoded(grant.Neutral, "description", r.Description)
	a.encoded(grant.Neutral, "mime_type", r.MIMEType)
	a.encoded(grant.Neutral, "size", r.Size)
	a.encoded(grant.Neutral, "annotations", r.Annotations)
	a.encoded(grant.Neutral, "icons", r.Icons)
	s.call(&a, &r.Call)
	a.content(r.Content)
	a.code(grant.Neutral, "script", r.Run)
	return a
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
	a := subject{kind: "resource_folder", name: f.Name, where: f.NameRange}
	a.add(grant.Fact{Option: "root", Value: f.Root}, f.RootRange)
	for _, glob := range f.Glob {
		a.addOption(grant.Increases, "glob", glob)
	}
	for _, glob := range f.Exclude {
		a.addOption(grant.Restricts, "exclude", glob)
	}
	a.add(grant.Fact{Option: "uri_prefix", Direction: grant.Opaque, Value: f.URIPrefix}, f.PrefixRange)
	a.encoded(grant.Neutral, "mime_types", f.MIMETypes)
	a.add(grant.SizeFact("", "max_file", f.MaxFile), a.where)
	a.encoded(grant.Opaque, "labels", f.Labels)
	a.encoded(grant.Neutral, "description", f.Description)
	a.encoded(grant.Neutral, "annotations", f.Annotations)
	a.encoded(grant.Neutral, "icons", f.Icons)
	return a
}

func (s *Snapshot) template(t *definition.Template) subject {
	a := subject{kind: "resource_template", name: t.Name, where: t.NameRange}
	a.addOption(grant.Opaque, "uri_template", t.URITemplate.String())
	for _, p := range t.Params {
		part := `param "` + p.Name + `"`
		a.encoded(grant.Neutral, part+" description", p.Description)
		if p.Pattern != "" {
			a.add(grant.Fact{Part: part, Option: "pattern", Direction: grant.Restricts, Value: p.Pattern}, p.Range)
		}
		a.complete(part, p.Complete)
	}
	a.encoded(grant.Opaque, "title", t.Title)
	a.encoded(grant.Neutral, "description", t.Description)
	a.encoded(grant.Neutral, "mime_type", t.MIMEType)
	a.encoded(grant.Neutral, "annotations", t.Annotations)
	a.encoded(grant.Neutral, "icons", t.Icons)
	s.call(&a, &t.Call)
	a.encoded(grant.Neutral, "text", t.Text)
	a.code(grant.Neutral, "script", t.Run)
	return a
}

func (s *Snapshot) prompt(p *definition.Prompt) subject {
	a := subject{kind: "prompt", name: p.Name, where: p.NameRange}
	a.encoded(grant.Opaque, "title", p.Title)
	a.encoded(grant.Neutral, "description", p.Description)
	a.encoded(grant.Neutral, "icons", p.Icons)
	for _, argument := range p.Arguments {
		part := `argument "` + argument.Name + `"`
		a.encoded(grant.Neutral, part, []any{argument.Title, argument.Description, argument.Required})
		a.complete(part, argument.Complete)
	}
	s.call(&a, &p.Call)
	a.encoded(grant.Neutral, "messages", withoutRanges(p.Messages))
	a.code(grant.Neutral, "script", p.Run)
	return a
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
	a := subject{kind: "upstream", name: u.Name, where: u.NameRange}
	a.encoded(grant.Opaque, "command", append([]string{u.Dir}, u.Command...))
	a.encoded(grant.Opaque, "url", []string{u.URL, u.Transport})
	a.addIf(u.Private && !strings.HasPrefix(u.URL, "https:"), grant.Increases, "private_networks") // otherwise the grant has it
	a.encoded(grant.Opaque, "pin", u.Pin)
	a.encoded(grant.Neutral, "lazy", u.Lazy)
	for _, v := range u.Env {
		part := `env "` + v.Name + `"`
		a.add(grant.Fact{Part: part}, a.where)
		a.add(grant.Fact{Part: part, Option: "value", Direction: grant.Opaque, Value: encode(v.Value)}, a.where)
	}
	if u.Container != nil {
		a.encoded(grant.Opaque, "container", plainContainer(*u.Container))
	}
	for _, kind := range u.Offer {
		a.addOption(grant.Increases, "offer", kind)
	}
	a.addIf(u.Instructions, grant.Increases, "instructions")
	for _, name := range u.Escape {
		a.addOption(grant.Increases, "escape", name)
	}
	a.names(grant.Increases, "include", u.Include)
	for _, n := range u.Exclude {
		a.add(grant.Fact{Option: "exclude", Direction: grant.Restricts, Value: n.Text, Pattern: true}, n.Range)
	}
	a.encoded(grant.Opaque, "prefix", u.Prefix)
	a.encoded(grant.Opaque, "rename", u.Rename)
	for _, o := range u.Overrides {
		a.override(o)
	}
	a.encoded(grant.Opaque, "labels", u.Labels)
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

// codeact returns the facts of the codeact block: the callable tools and the limits.
func codeact(c *definition.Codeact) subject {
	a := subject{kind: "codeact", where: c.Range}
	a.names(grant.Increases, "tools", c.Tools)
	a.number("max_calls", c.MaxCalls, unknown)
	a.number("max_parallel", c.MaxParallel, unknown)
	a.add(grant.SizeFact("", "max_stdout", int64(c.MaxStdout)), a.where)
	a.addIf(c.Search, grant.Increases, "search")
	a.encoded(grant.Opaque, "labels", c.Labels)
	a.bounds(c.Bounds, unknown)
	a.add(grant.TimeFact("", "ask_timeout", c.AskTimeout), a.where)
	return a
}
