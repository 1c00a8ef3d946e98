package hclfile

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
)

// Decode evaluates a tool file. The definitions are complete only when the
// list holds no error.
func (f *File) Decode(s Scope) (Definitions, diag.List) {
	d := newDecoder(f, s)
	r := fileRules[ToolsKind]
	d.check(f.body, r, "a tool file", f.body.SrcRange)
	var defs Definitions
	taken := map[string]named{}
	for _, b := range blocks(f.body, r) {
		if b.Type == "locals" {
			d.check(b.Body, rules["locals"], "a locals block", b.DefRange())
			continue
		}
		d.claimDefinition(taken, b)
		switch b.Type {
		case "tool":
			defs.Tools = append(defs.Tools, d.tool(b))
		case "resource":
			defs.Resources = append(defs.Resources, d.resource(b))
		case "resource_folder":
			defs.Folders = append(defs.Folders, d.folder(b))
		case "resource_template":
			defs.Templates = append(defs.Templates, d.template(b))
		case "prompt":
			defs.Prompts = append(defs.Prompts, d.prompt(b))
		case "policy":
			defs.Policies = append(defs.Policies, d.policy(b))
		case "limit":
			defs.Limits = append(defs.Limits, d.limit(b))
		case "hook":
			defs.Hooks = append(defs.Hooks, d.hook(b))
		case "test":
			defs.Tests = append(defs.Tests, d.test(b))
		}
	}
	return defs, f.finish(d.problems)
}

// claimDefinition notes the name of a definition. Resources, folders and
// templates share their names, since policies and hooks name them alike.
func (d *decoder) claimDefinition(taken map[string]named, b *hclsyntax.Block) {
	kind := b.Type
	if kind == "resource_folder" || kind == "resource_template" {
		kind = "resource"
	}
	if taken[kind] == nil {
		taken[kind] = named{}
	}
	d.claimName(taken[kind], b.Labels[0], b.LabelRanges[0], "there is a second "+kind+" %q", b.Labels[0])
}
