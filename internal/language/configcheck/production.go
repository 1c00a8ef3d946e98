package configcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// checkProduction refuses what production mode demands and the files lack. Builtin
// tools have an output schema without a block: that of their type.
func (c *checker) checkProduction(files []*hclfile.Definitions, builtin []hclfile.Name) {
	policies := c.beforeCalls(files)
	if c.config.Audit == nil && !c.config.Incomplete {
		c.report(diag.Diagnostic{
			Code: "production-no-audit", Range: c.config.Server.Range,
			Summary: "no audit block says where calls are written down, and production mode demands one",
			Detail:  "add audit { path = \"…\" }",
		})
	}
	var open lacking
	served(files, builtin, func(kind, name string, where diag.Range, names func(*hclfile.Policy) []hclfile.Name) {
		if !c.incomplete && !slices.ContainsFunc(policies, func(p hclfile.Policy) bool { return hclfile.Covers(names(&p), name) }) {
			open.add(kind, name, where)
		}
	})
	for _, l := range open {
		what, them := l.words()
		c.report(diag.Diagnostic{
			Code: "production-no-policy", Range: l.where,
			Summary: fmt.Sprintf("no policy covers %s, and production mode demands one", what), Detail: fmt.Sprintf("add a policy block whose %ss match %s", l.kind, them),
		})
	}
	for _, f := range files {
		for i := range f.Tools {
			c.checkOutput(&f.Tools[i])
		}
	}
}

// warnOfDenied warns of what no call of can be allowed, where the default is to deny. In
// production mode, what no policy covers at all is an error already.
func (c *checker) warnOfDenied(files []*hclfile.Definitions, builtin []hclfile.Name) {
	policies := c.beforeCalls(files)
	production := c.config.Server.Mode == hclfile.Production
	var denied lacking
	served(files, builtin, func(kind, name string, where diag.Range, names func(*hclfile.Policy) []hclfile.Name) {
		covered, allowed := false, false
		for i := range policies {
			if hclfile.Covers(names(&policies[i]), name) {
				covered, allowed = true, allowed || policies[i].Allow != nil
			}
		}
		if !c.incomplete && !allowed && (covered || !production) {
			denied.add(kind, name, where)
		}
	})
	for _, l := range denied {
		what, them := l.words()
		c.report(diag.Diagnostic{
			Severity: diag.Warning, Code: "production-no-allow", Range: l.where,
			Summary: fmt.Sprintf("no allow policy covers %s: every call of %s is denied", what, them),
			Detail:  fmt.Sprintf("add a policy block whose %ss match %s, with allow = \"…\"; a call that no such policy allows is denied here", l.kind, them),
		})
	}
}

// lacking is what lacks a policy. Things that one block brings are told together.
type lacking []lack

type lack struct {
	kind  string
	where diag.Range
	names []string
}

func (l *lacking) add(kind, name string, where diag.Range) {
	if last := len(*l) - 1; last >= 0 && (*l)[last].where == where && (*l)[last].kind == kind {
		(*l)[last].names = append((*l)[last].names, name)
		return
	}
	*l = append(*l, lack{kind, where, []string{name}})
}

// words returns what they are, and their pronoun.
func (l lack) words() (what, them string) {
	if len(l.names) == 1 {
		return fmt.Sprintf("%s %q", l.kind, l.names[0]), "it"
	}
	quoted := make([]string, len(l.names))
	for i, name := range l.names {
		quoted[i] = strconv.Quote(name)
	}
	last := len(quoted) - 1
	return fmt.Sprintf("%ss %s and %s", l.kind, strings.Join(quoted[:last], ", "), quoted[last]), "them"
}

// beforeCalls returns the policies but those over results, which let any call be made.
func (c *checker) beforeCalls(files []*hclfile.Definitions) []hclfile.Policy {
	policies := slices.Clone(c.config.Policies)
	for _, f := range files {
		policies = append(policies, f.Policies...)
	}
	return slices.DeleteFunc(policies, func(p hclfile.Policy) bool { return p.OnResult })
}

// served calls see with each tool, resource and prompt, and with what names those of its
// kind in a policy.
func served(files []*hclfile.Definitions, builtin []hclfile.Name, see func(kind, name string, where diag.Range, names func(*hclfile.Policy) []hclfile.Name)) {
	inTools := func(p *hclfile.Policy) []hclfile.Name { return p.Tools }
	inResources := func(p *hclfile.Policy) []hclfile.Name { return p.Resources }
	inPrompts := func(p *hclfile.Policy) []hclfile.Name { return p.Prompts }
	for _, name := range builtin {
		see("tool", name.Text, name.Range, inTools)
	}
	for _, f := range files {
		for i := range f.Tools {
			see("tool", f.Tools[i].Name, f.Tools[i].NameRange, inTools)
		}
		for i := range f.Resources {
			see("resource", f.Resources[i].Name, f.Resources[i].NameRange, inResources)
		}
		for i := range f.Folders {
			see("resource", f.Folders[i].Name, f.Folders[i].NameRange, inResources)
		}
		for i := range f.Templates {
			see("resource", f.Templates[i].Name, f.Templates[i].NameRange, inResources)
		}
		for i := range f.Prompts {
			see("prompt", f.Prompts[i].Name, f.Prompts[i].NameRange, inPrompts)
		}
	}
}

func (c *checker) checkOutput(tool *hclfile.Tool) {
	if tool.Output == nil && tool.OutputOrigin == nil {
		c.report(diag.Diagnostic{
			Code: "production-no-output", Range: tool.NameRange,
			Summary: fmt.Sprintf("tool %q declares no output, and production mode demands one", tool.Name),
			Detail:  "add output blocks for what it returns",
		})
	}
}

// checkEncryption tells of upstreams whose headers bring a secret to where others can read
// it, which production mode does not allow.
func (c *checker) checkEncryption() {
	d := diag.Diagnostic{Severity: diag.Warning, Code: "unencrypted-secret", Detail: "write https://; where its host is one of your own network, say so with private_networks = true"}
	demanded := ""
	if c.config.Server.Mode == hclfile.Production {
		d.Severity, demanded = diag.Error, ", and production mode demands https"
	}
	for i := range c.config.Upstreams {
		u := &c.config.Upstreams[i]
		if header := u.Unencrypted(); header != "" {
			d.Range, d.Summary = u.PlaceRange, fmt.Sprintf("the header %q brings a secret to this server unencrypted%s", header, demanded)
			c.report(d)
		}
	}
}
