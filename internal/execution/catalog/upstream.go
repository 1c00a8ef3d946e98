package catalog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// addUpstreams returns what the operator's file says, with the upstreams that the program
// names beside those of the file.
func (b *Builder) addUpstreams(config *definition.Config) (with *definition.Config, problems diag.List) {
	if len(b.options.Upstreams) == 0 {
		return config, nil
	}
	more := *config
	more.Upstreams = slices.Clone(config.Upstreams)
	for _, u := range b.options.Upstreams {
		if i := slices.IndexFunc(config.Upstreams, func(other definition.Upstream) bool { return other.Name == u.Name }); i >= 0 {
			problems = append(problems, diag.Diagnostic{
				Code: "duplicate-upstream", Range: config.Upstreams[i].NameRange,
				Summary: fmt.Sprintf("the upstream %q is named by %s, too", u.Name, u.NameRange.File), Detail: "remove the block, or give one of the two another name",
			})
			continue
		}
		more.Upstreams = append(more.Upstreams, u)
	}
	return &more, problems
}

// placed returns upstreams with paths that are relative to the operator's file made those
// that the process opens.
func (b *Builder) placed(blocks []definition.Upstream) []definition.Upstream {
	folder := filepath.Dir(filepath.FromSlash(b.options.ConfigPath))
	blocks = slices.Clone(blocks)
	for i := range blocks {
		u := &blocks[i]
		u.Dir = within(folder, u.Dir)
		if len(u.Command) > 0 && strings.ContainsAny(u.Command[0], `/\`) {
			u.Command = slices.Clone(u.Command)
			if u.Command[0] = within(folder, u.Command[0]); !strings.ContainsAny(u.Command[0], `/\`) {
				u.Command[0] = "." + string(filepath.Separator) + u.Command[0] // and not one of PATH
			}
		}
	}
	return blocks
}
