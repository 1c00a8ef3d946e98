package crossref

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
)

// checkProduction refuses what production mode demands and the files lack. Builtin
// tools have an output schema without a block: that of their type.
func (c *checker) checkProduction(files []*hclfile.Definitions, builtin []hclfile.Name) {
	policies := slices.Clone(c.config.Policies)
	for _, f := range files {
		policies = append(policies, f.Policies...)
	}
	policies = slices.DeleteFunc(policies, func(p hclfile.Policy) bool { return p.OnResult }) // they let any call be made
	if c.config.Audit == nil && !c.unread.holds("audit") {
		c.report(diag.Diagnostic{
			Code: "production-no-audit", Range: c.config.Server.Range,
			Summary: "no audit block says where calls are written down, and production mode demands one",
			Detail:  "add audit { path = \"…\" }",
		})
	}
	all := !c.unread.holds("policy") && !c.unread.holds("tools") && !c.unread.holds("resources") && !c.unread.holds("prompts")
	covered := func(kind, name string, where diag.Range, names func(*hclfile.Policy) []hclfile.Name) {
		if all && !slices.ContainsFunc(policies, func(p hclfile.Policy) bool { return hclfile.Covers(names(&p), name) }) {
			c.report(diag.Diagnostic{
				Code: "production-no-policy", Range: where,
				Summary: fmt.Sprintf("no policy covers %s %q, and production mode demands one", kind, name),
				Detail:  fmt.Sprintf("add a policy block whose %ss match it", kind),
			})
		}
	}
	inTools := func(p *hclfile.Policy) []hclfile.Name { return p.Tools }
	inResources := func(p *hclfile.Policy) []hclfile.Name { return p.Resources }
	inPrompts := func(p *hclfile.Policy) []hclfile.Name { return p.Prompts }
	for _, name := range builtin {
		covered("tool", name.Text, name.Range, inTools)
	}
	for _, f := range files {
		for i := range f.Tools {
			covered("tool", f.Tools[i].Name, f.Tools[i].NameRange, inTools)
			c.checkOutput(&f.Tools[i])
		}
		for i := range f.Resources {
			covered("resource", f.Resources[i].Name, f.Resources[i].NameRange, inResources)
		}
		for i := range f.Folders {
			covered("resource", f.Folders[i].Name, f.Folders[i].NameRange, inResources)
		}
		for i := range f.Templates {
			covered("resource", f.Templates[i].Name, f.Templates[i].NameRange, inResources)
		}
		for i := range f.Prompts {
			covered("prompt", f.Prompts[i].Name, f.Prompts[i].NameRange, inPrompts)
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
