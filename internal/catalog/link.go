package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/host/secrets"
)

// linker joins items, policies and hooks into a catalog.
type linker struct {
	*Builder
	found   *build
	catalog *Catalog
	sound   soundPolicies
}

// link checks everything that concerns more than one definition. It returns a
// catalog even when it has found mistakes; found tells.
func (b *Builder) link(found *build, registered []*Item) *Catalog {
	config := found.config
	k := &linker{Builder: b, found: found, catalog: &Catalog{
		Revision: b.revision(found, registered), Server: said(config.Server, b.options.Server),
		Listen: config.Listen, Reload: config.Reload, Limits: config.Limits,
		Hooks:         found.hooks,
		Policies:      len(config.Policies) + b.options.GoPolicies + len(found.policies),
		DenyByDefault: config.Server.DefaultDecision == hclfile.DecideDeny || config.Server.Mode == hclfile.Production,
		SecretKeys:    map[string]string{},
		Tests:         found.tests,
		byName:        map[string]*Entry{},
	}, sound: newSoundPolicies(b.maxPolicies)}
	k.addSecrets()
	k.addItems(slices.Concat(registered, found.items))
	k.addPolicies()
	k.addHooks()
	return k.catalog
}

// said fills what the operator's file does not say from what the program says.
func said(first, second hclfile.Server) hclfile.Server {
	first.Name, first.Version = cmp.Or(first.Name, second.Name), cmp.Or(first.Version, second.Version)
	first.Title = cmp.Or(first.Title, second.Title)
	first.Description = cmp.Or(first.Description, second.Description)
	first.Instructions = cmp.Or(first.Instructions, second.Instructions)
	return first
}

func (k *linker) addSecrets() {
	for _, s := range k.found.config.Secrets {
		def := secrets.Def{Name: s.Name, Env: s.Env, File: s.File, Command: s.Command}
		k.catalog.Secrets, k.catalog.SecretKeys[s.Name] = append(k.catalog.Secrets, def), def.Key()
	}
}

func (k *linker) addItems(items []*Item) {
	for _, item := range items {
		if k.catalog.byName[item.Name] != nil {
			continue // a mistake that crossref has reported
		}
		if k.options.Check != nil && item.Input != nil {
			if err := k.options.Check(item); err != nil {
				k.found.report(diag.List{{
					Code: "unlistable-tool", Range: item.Where,
					Summary: fmt.Sprintf("tool %q cannot be shown to clients: %v", item.Name, err),
					Detail:  "correct its schema",
				}})
				continue
			}
		}
		e := &Entry{Item: item}
		k.catalog.byName[item.Name] = e
		k.catalog.Entries = append(k.catalog.Entries, e)
	}
	slices.SortFunc(k.catalog.Entries, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
}

func (k *linker) addHooks() {
	for _, e := range k.catalog.Entries {
		for _, h := range k.catalog.Hooks {
			if hclfile.Covers(h.names, e.Name) {
				e.Hooks = append(e.Hooks, h)
			}
		}
	}
}
