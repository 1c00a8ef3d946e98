package deployment

import (
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/language/privdiff"
)

// used returns the names of the secrets that the server has a use for: those of
// grants, of how upstreams are reached, and of OAuth clients. What only a container
// has is not among them.
func used(said privdiff.Side) map[string]bool {
	names := map[string]bool{}
	use := func(name string) { names[name] = true }
	for _, g := range grants(said) {
		for _, name := range g.SecretNames() {
			use(name)
		}
	}
	for i := range said.Config.Upstreams {
		u := &said.Config.Upstreams[i]
		for _, h := range u.Grant.Headers {
			h.Value.EachSecret(use)
		}
	}
	for _, s := range said.Config.Secrets {
		if s.OAuth != nil && names[s.Name] {
			use(s.OAuth.ClientSecret)
		}
	}
	return names
}

// grants returns what is granted anywhere in the files.
func grants(said privdiff.Side) []grant.Set {
	var all []grant.Set
	hooks := func(list []hclfile.Hook) {
		for i := range list {
			all = append(all, list[i].Grant)
		}
	}
	hooks(said.Config.Hooks)
	for _, f := range said.Files {
		hooks(f.Hooks)
		for i := range f.Tools {
			all = append(all, f.Tools[i].Grant)
		}
		for i := range f.Resources {
			all = append(all, f.Resources[i].Grant)
		}
		for i := range f.Templates {
			all = append(all, f.Templates[i].Grant)
		}
		for i := range f.Prompts {
			all = append(all, f.Prompts[i].Grant)
		}
	}
	return all
}
