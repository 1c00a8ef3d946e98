package hclfile

import "github.com/mcpd/mcpd/diag"

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
		if taken[b.Type] == nil {
			taken[b.Type] = named{}
		}
		d.claim(taken[b.Type], b)
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
		case "hook":
			defs.Hooks = append(defs.Hooks, d.hook(b))
		case "test":
			defs.Tests = append(defs.Tests, d.test(b))
		}
	}
	return defs, f.finish(d.problems)
}
