package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// linker joins tools, policies and hooks into a snapshot.
type linker struct {
	loader     *loader
	found      *loading
	registered []*Tool
	goPolicies []Policy
	names      []string
	snap       *Snapshot
}

// link checks everything that concerns more than one definition. It returns a
// snapshot even when it has found mistakes; found tells.
func (k *linker) link() *Snapshot {
	config := k.found.config
	k.snap = &Snapshot{
		revision: k.found.revision, info: infoOf(k.loader.options, config.Server),
		entries:       map[string]*entry{},
		hooks:         k.found.hooks,
		policyCount:   len(config.Policies) + len(k.goPolicies) + len(k.found.policies),
		denyByDefault: config.Server.DefaultDecision == hclfile.DecideDeny || config.Server.Mode == hclfile.Production,
		concurrency:   cmp.Or(config.Limits.Concurrency, defaultConcurrency),
		requireTests:  config.Reload.RequireTests,
		secretKeys:    map[string]string{},
		listen:        Listen{Address: config.Listen.Address, Hosts: config.Listen.Hosts, Origins: config.Listen.Origins},
		watch:         config.Reload.Watch,
		tests:         k.found.tests,
	}
	for _, b := range config.Secrets {
		def := secrets.Def{Name: b.Name, Env: b.Env, File: b.File, Command: b.Command}
		k.snap.secrets, k.snap.secretKeys[b.Name] = append(k.snap.secrets, def), def.Key()
	}
	k.addTools()
	k.bindPolicies()
	k.bindHooks()
	return k.snap
}

func (k *linker) addTools() {
	for _, tool := range slices.Concat(k.registered, k.found.tools) {
		if k.snap.entries[tool.metadata.Name] != nil {
			continue // a mistake that crossref has reported
		}
		if check := k.loader.options.CheckTool; check != nil {
			if err := check(tool.metadata); err != nil {
				k.report(diag.Diagnostic{
					Code: "unlistable-tool", Range: tool.where,
					Summary: fmt.Sprintf("tool %q cannot be shown to clients: %v", tool.metadata.Name, err),
					Detail:  "correct its schema",
				})
				continue
			}
		}
		e := &entry{tool: tool}
		k.snap.entries[tool.metadata.Name] = e
		k.snap.order = append(k.snap.order, e)
		k.names = append(k.names, tool.metadata.Name)
	}
	slices.SortFunc(k.snap.order, func(a, b *entry) int {
		return strings.Compare(a.tool.metadata.Name, b.tool.metadata.Name)
	})
}

func (k *linker) bindHooks() {
	for _, e := range k.snap.order {
		for _, h := range k.snap.hooks {
			if hclfile.Covers(h.tools, e.tool.metadata.Name) {
				e.hooks = append(e.hooks, h)
			}
		}
	}
}

func (k *linker) report(d diag.Diagnostic) { k.found.report(diag.List{d}) }

func infoOf(o Options, s hclfile.Server) Info {
	return Info{
		Name: cmp.Or(s.Name, o.Name), Title: cmp.Or(s.Title, o.Title), Version: cmp.Or(s.Version, o.Version),
		Description: cmp.Or(s.Description, o.Description), Instructions: cmp.Or(s.Instructions, o.Instructions),
	}
}
